"""Targets of requirements: properties that follow from the name, and the settings with which they start."""

from collections.abc import Mapping
from typing import Final

from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Target

FREQUENT_CLEANUP: Final[Mapping[str, str]] = {
    "log.cleaner.backoff.ms": "300",
    "log.initial.task.delay.ms": "300",
    "log.retention.check.interval.ms": "300",
}
"""Settings with which scripts can await retention and compaction. Kafka's defaults are up to five minutes."""


def starts_nodes(name: str) -> bool:
    """Whether kafkatrial starts the nodes of the target, so that their number can be chosen."""
    return not name.startswith("bootstrap:")


def target_of_requirements(name: str, nodes: int | None = None) -> Target:
    """Return the target of that name, not started, with frequent retention and compaction if it accepts settings.

    Raises `UnknownTargetError` and `NotInstalledError`.
    """
    return parse_target(name, nodes, preferred=FREQUENT_CLEANUP)
