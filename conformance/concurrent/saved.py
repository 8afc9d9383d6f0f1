"""A concurrent script with the requirement that it is for: the trial that a failed requirement saves."""

from dataclasses import dataclass

from conformance.concurrent.script import ConcurrentScript
from fixtures.python_source import AsPython


@dataclass(frozen=True, slots=True, repr=False)
class RequirementTrial(AsPython):
    """A script, and by its requirement the post-condition of its history.

    :param nodes: of the cluster for which the script was generated.
    """

    requirement: str
    nodes: int
    script: ConcurrentScript
