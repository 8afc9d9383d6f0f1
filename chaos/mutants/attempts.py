"""Attempts to detect a mutant: seeds, all post-run checks, saved counterexamples of defects, and all requirements.

Any process can make an attempt by its name:

- a number: the trial of this seed;
- `post-run-checks-` and a number: a trial without faults, whose seed is this number and selects the checks;
- the name of a defect: its saved counterexample;
- the id of a requirement: the requirement, on a separate simulated cluster.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from chaos.defects.saved import COUNTEREXAMPLES, saved_counterexample
from chaos.simulation.post_run_checks import CHECKS_PER_RUN, POST_RUN_CHECKS
from chaos.simulation.run import run
from chaos.simulation.seeds import trial_of_seed
from chaos.simulation.target import Simulation
from conformance.engine import run_requirements
from conformance.events import RequirementJudged
from conformance.profiles import Profile
from conformance.registry import REQUIREMENTS
from conformance.requirements.requirement import Requirement
from conformance.targets import FREQUENT_CLEANUP
from conformance.trial.trial import Topic, Trial
from linearizability.judgement import Verdict
from linearizability.temporary_folder import TemporaryFolder

_PROFILE = Profile("mutants", scripts_max=5, shrink_seconds=0.0)
_SEED = 1
_POST_RUN_CHECKS = "post-run-checks-"


def names(seeds: int) -> Iterator[str]:
    """Yield the names of all attempts.

    :param seeds: number of seeds.
    """
    yield from (str(seed) for seed in range(seeds))
    yield from (f"{_POST_RUN_CHECKS}{seed}" for seed in range(-(-len(POST_RUN_CHECKS) // CHECKS_PER_RUN)))
    yield from sorted(path.stem for path in COUNTEREXAMPLES.glob("*.json"))
    yield from _requirements()


def attempt(name: str) -> str:
    """Make one attempt; return the violation, or an empty text if there is none. A mutant may raise any exception."""
    if "/" not in name:
        violation = run(_trial(name)).violation
        return "" if violation is None else violation.name
    with TemporaryFolder() as directory:
        requirement = _requirements()[name]
        target = Simulation(properties=FREQUENT_CLEANUP)  # as in `kafkatrial run`, for retention and compaction
        events = run_requirements([target], [requirement], seed=_SEED, profile=_PROFILE, run_dir=Path(directory))
        judged = [event.finding for event in events if isinstance(event, RequirementJudged)]
    broken = [finding for finding in judged if finding.verdict is Verdict.VIOLATION]
    return "; ".join(f"{finding.requirement} {finding.verdict}" for finding in broken)


def _trial(name: str) -> Trial:
    """Return the trial of an attempt that is not a requirement."""
    if name.isdecimal():
        return trial_of_seed(int(name))
    if name.startswith(_POST_RUN_CHECKS):
        return Trial(topics=(Topic(partitions=2),), seed=int(name.removeprefix(_POST_RUN_CHECKS)))
    saved = saved_counterexample(name)
    assert saved is not None
    return saved.trial


@cache
def _requirements() -> dict[str, Requirement]:
    return {requirement.id: requirement for requirement in REQUIREMENTS}
