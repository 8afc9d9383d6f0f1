"""Concurrent script of a requirement: the trial that is saved when the requirement fails."""

from dataclasses import dataclass

from conformance.concurrent.script import ConcurrentScript
from fixtures.python_source import AsPython


@dataclass(frozen=True, slots=True, repr=False)
class RequirementTrial(AsPython):
    """A script, and the requirement by which its history is judged.

    :param nodes: number of nodes of the cluster for which the script was generated.
    """

    requirement: str
    nodes: int
    script: ConcurrentScript
