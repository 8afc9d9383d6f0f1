"""Targets on which requirements are checked: their creation by name, with settings that shorten the scripts."""

from collections.abc import Mapping
from typing import Final

from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import Target

FREQUENT_CLEANUP: Final[Mapping[str, str]] = {
    "log.cleaner.backoff.ms": "300",
    "log.initial.task.delay.ms": "300",
    "log.retention.check.interval.ms": "300",
}
"""Broker settings that shorten the wait for retention and compaction. Kafka's defaults are up to five minutes."""


def starts_nodes(name: str) -> bool:
    """Whether kafkatrial starts the nodes of the target with this name, and so can choose their number."""
    return not name.startswith("bootstrap:")


def target_of_requirements(name: str, nodes: int | None = None) -> Target:
    """Return the target with this name, not started. If it accepts settings, they are `FREQUENT_CLEANUP`.

    Raises `UnknownTargetError` and `NotInstalledError`.
    """
    return parse_target(name, nodes, preferred=FREQUENT_CLEANUP)
