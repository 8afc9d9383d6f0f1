"""Applicability of requirements, decided from the target's declaration before anything runs."""

import re
from collections.abc import Collection, Mapping

from conformance.requirements.requirement import Requirement
from fixtures.targets.target import Capability


def missing(
    requirement: Requirement,
    *,
    capabilities: Collection[Capability],
    version: str | None,
    nodes: int,
    reasons: Mapping[Capability, str],
) -> str | None:
    """Return what the target lacks, in one line; None if the requirement applies.

    If the target's version is unknown (None), the versions of the requirement are not checked.

    :param reasons: the target's reasons for missing capabilities; it may have none for some of them.
    """
    lacking = sorted(requirement.needs - set(capabilities))
    if lacking:
        explained = dict.fromkeys(reasons[each] for each in lacking if each in reasons)
        return f"needs {', '.join(lacking)}" + (f" ({'; '.join(explained)})" if explained else "")
    if nodes < requirement.nodes_min:
        return f"needs {requirement.nodes_min} nodes, there are {nodes} (--nodes {requirement.nodes_min})"
    if version is None:
        return None
    if requirement.since is not None and _key(version) < _key(requirement.since):
        return f"holds since Kafka {requirement.since}, this is {version}"
    if requirement.until is not None and _key(version)[: len(_key(requirement.until))] > _key(requirement.until):
        return f"holds until Kafka {requirement.until}, this is {version}"
    return None


def _key(version: str) -> tuple[int, ...]:
    """Return `4.3.1` as (4, 3, 1); a suffix such as `-rc1` is ignored."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0]))
