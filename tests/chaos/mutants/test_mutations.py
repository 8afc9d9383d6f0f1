"""Mutants are changes of one place that Python takes; the same source has the same ones."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from chaos.mutants.mutations import mutants_of, mutated
from chaos.mutants.report import SURVIVORS, Survivor, load_survivors, score
from chaos.mutants.sample import all_mutants, draw
from chaos.mutants.trial import Verdict

ROOT = Path(__file__).parents[3]
SOURCE = textwrap.dedent('''
    """A module."""

    LIMIT = 7


    def keeps(self, offset: int = 0) -> bool:
        """Whether it does."""
        if offset < self.end and not self.closed:
            self.count += 1
            return True
        return min(offset, 3) in self.kept


    def __repr__(self) -> str:
        return f"{self.end + 1}"
''')


def changes():
    return {(mutant.before, mutant.after) for mutant in mutants_of("module", SOURCE)}


def test_each_operator_makes_its_mistake():
    assert changes() == {
        ("offset < self.end and (not self.closed)", "True"),
        ("offset < self.end and (not self.closed)", "False"),
        ("offset < self.end and (not self.closed)", "offset < self.end or not self.closed"),
        ("offset < self.end and (not self.closed)", "not self.closed"),
        ("offset < self.end and (not self.closed)", "offset < self.end"),
        ("offset < self.end", "offset <= self.end"),
        ("not self.closed", "self.closed"),
        ("self.count += 1", ""),
        ("1", "2"),
        ("True", "False"),
        ("min(offset, 3)", "max(offset, 3)"),
        ("3", "4"),
        ("min(offset, 3) in self.kept", "min(offset, 3) not in self.kept"),
    }


def test_a_mutant_differs_in_one_place_and_can_be_compiled():
    original = ast.unparse(ast.parse(SOURCE))
    for mutant in mutants_of("module", SOURCE):
        text = ast.unparse(mutated(SOURCE, mutant.number))
        compile(text, "module", "exec")
        assert text != original


def test_the_core_has_thousands_and_a_seed_draws_the_same():
    mutants = list(all_mutants(ROOT))
    assert len(mutants) > 5000
    assert len({mutant.id for mutant in mutants}) == len(mutants)
    assert draw(mutants, 200, 1) == draw(list(all_mutants(ROOT)), 200, 1)
    assert draw(mutants, 200, 1) != draw(mutants, 200, 2)


def test_a_process_that_installs_a_mutant_runs_it():
    mutants = mutants_of(
        "reference_broker.core.topic_names", (ROOT / "reference_broker/core/topic_names.py").read_text()
    )
    program = """
        import sys
        from chaos.mutants.loading import install
        from chaos.mutants.mutations import mutants_of
        source = open("reference_broker/core/topic_names.py").read()
        mutant = mutants_of("reference_broker.core.topic_names", source)[int(sys.argv[1])]
        install(mutant)
        import reference_broker.core.topic_names as module
        import inspect
        print([function.__code__.co_code.hex() for _, function in inspect.getmembers(module, inspect.isfunction)])
        print([function.__code__.co_consts for _, function in inspect.getmembers(module, inspect.isfunction)])
    """
    outputs = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(number)],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout
        for number in range(min(3, len(mutants)))
    }  # fmt: skip
    assert len(outputs) > 1


def test_what_nobody_has_looked_at_is_a_hole():
    one, other, killed = (Verdict(mutant, "", 1.0, 1) for mutant in mutants_of("module", SOURCE)[:3])
    verdicts = [one, other, Verdict(killed.mutant, "lost-write", 1.0, 1)]
    found = score(verdicts, {one.mutant.id: Survivor("equivalent", "nobody can tell")})
    assert (found.killed, found.equivalent, found.holes) == (1, 1, 1)
    assert found.share == pytest.approx(0.5)


def test_every_survivor_on_record_is_a_mutant_of_this_source():
    known = {mutant.id for mutant in all_mutants(ROOT)}
    for id_, survivor in load_survivors(SURVIVORS).items():
        assert id_ in known
        assert survivor.verdict in {"equivalent", "hole"}
        assert survivor.why
