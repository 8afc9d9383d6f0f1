"""Applicability of requirements to a target, decided before any check runs."""

import re
from collections.abc import Collection, Mapping

from conformance.requirements.requirement import Requirement
from fixtures.targets.target import Capability


def reason_not_applicable(
    requirement: Requirement,
    *,
    capabilities: Collection[Capability],
    version: str | None,
    nodes: int,
    reasons: Mapping[Capability, str],
) -> str | None:
    """Return why a requirement does not apply to a target, in one line; None if it applies.

    :param capabilities: the capabilities of the target.
    :param version: the target's Kafka version. If it is None (unknown), the versions of the requirement are ignored.
    :param nodes: the number of the target's nodes.
    :param reasons: for each capability that the target lacks, the reason that it gives, if any.
    """
    lacking = sorted(requirement.needs - set(capabilities))
    if lacking:
        explanations = dict.fromkeys(reasons[each] for each in lacking if each in reasons)
        return f"needs {', '.join(lacking)}" + (f" ({'; '.join(explanations)})" if explanations else "")
    if nodes < requirement.nodes_min:
        return f"needs {requirement.nodes_min} nodes, there are {nodes} (--nodes {requirement.nodes_min})"
    if version is None:
        return None
    if requirement.since is not None and _numbers(version) < _numbers(requirement.since):
        return f"holds since Kafka {requirement.since}, this is {version}"
    if requirement.until is not None:
        last = _numbers(requirement.until)
        if _numbers(version)[: len(last)] > last:  # so that 4.1 includes 4.1.2
            return f"holds until Kafka {requirement.until}, this is {version}"
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return `4.3.1` as (4, 3, 1); a suffix such as `-rc1` is ignored."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0]))
