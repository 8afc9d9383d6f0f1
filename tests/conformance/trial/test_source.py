"""Python source of a trial: its value is the trial, and its lines are short."""

from chaos.simulation.seeds import trial_of_seed
from conformance.trial.source import imports_of, printed


def test_a_trial_equals_the_value_of_its_source():
    for seed in range(60):
        generated = trial_of_seed(seed)
        names = {}
        exec(imports_of(generated), names)
        assert eval(printed(generated), names) == generated == eval(repr(generated), names)


def test_lines_are_short():
    lines = [line for seed in range(30) for line in printed(trial_of_seed(seed), used=9).splitlines()]
    assert max(map(len, lines)) <= 120
