"""Check that exposes its scripts, so that a comparison of two targets can generate them, too."""

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis.strategies import SearchStrategy

from conformance.check_context import Check, CheckContext
from conformance.sequential.steps import Script
from linearizability.finding import Finding


@dataclass(frozen=True, slots=True)
class ScriptedCheck:
    """The check of a sequential requirement."""

    check: Check
    scripts: SearchStrategy[Script]
    cost: int
    """Duration of one of these scripts, as a multiple of an ordinary one; the number of scripts is divided by it."""

    def __call__(self, context: CheckContext) -> Mapping[str, Finding]:
        """Check the requirement on all targets."""
        return self.check(context)
