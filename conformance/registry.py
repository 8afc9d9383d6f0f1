"""All requirements in the order of their areas. The area with hostile input (`negotiation`) is the last one.

Requirements run in this order, but those that share a cluster (`conformance.side_by_side`) run before all others.
"""

from collections.abc import Collection
from typing import Final

from conformance.concurrent import requirements as concurrent
from conformance.requirements import (
    admin,
    compaction,
    compatibility,
    configs,
    consistency,
    epochs,
    error_fields,
    fetch,
    groups,
    idempotence,
    leadership,
    members,
    merged,
    metadata,
    negotiation,
    offsets,
    produce,
    quotas,
    reassignment,
    recovery,
    retention,
    security,
    single_requests,
    survival,
    versions,
)
from conformance.requirements.requirement import Level, Requirement

_AREAS: Final = (
    "produce",
    "fetch",
    "ordering",
    "idempotence",
    "offsets",
    "retention",
    "compaction",
    "epochs",
    "leadership",
    "metadata",
    "groups",
    "transactions",
    "admin",
    "configs",
    "quotas",
    "security",
    "reassignment",
    "replication",
    "membership",
    "quorum",
    "storage",
    "versions",
    "compatibility",
    "merged",
    "consistency",
    "negotiation",
)

_ALL: Final = (
    *produce.REQUIREMENTS,
    *fetch.REQUIREMENTS,
    *idempotence.REQUIREMENTS,
    *offsets.REQUIREMENTS,
    *retention.REQUIREMENTS,
    *compaction.REQUIREMENTS,
    *epochs.REQUIREMENTS,
    *leadership.REQUIREMENTS,
    *metadata.REQUIREMENTS,
    *groups.REQUIREMENTS,
    *members.REQUIREMENTS,
    *admin.REQUIREMENTS,
    *configs.REQUIREMENTS,
    *quotas.REQUIREMENTS,
    *security.REQUIREMENTS,
    *reassignment.REQUIREMENTS,
    *recovery.REQUIREMENTS,
    *error_fields.REQUIREMENTS,
    *single_requests.REQUIREMENTS,
    *versions.REQUIREMENTS,
    *compatibility.REQUIREMENTS,
    *merged.REQUIREMENTS,
    *consistency.REQUIREMENTS,
    *negotiation.REQUIREMENTS,
    *survival.REQUIREMENTS,
    *concurrent.REQUIREMENTS,
)

REQUIREMENTS: Final[tuple[Requirement, ...]] = tuple(
    sorted(_ALL, key=lambda requirement: _AREAS.index(requirement.area))
)
"""Requirements in the order of their areas. Within an area, sequential ones precede concurrent ones."""

_STRENGTH: Final = {Level.MUST: 2, Level.SHOULD: 1, Level.MAY: 0}


def select(wanted: Collection[str], level: Level = Level.SHOULD) -> tuple[Requirement, ...]:
    """Return the wanted requirements of a level or a stronger one. Raises `KeyError` for an unknown id or area.

    :param wanted: ids and areas; empty for all requirements.
    :param level: the weakest level. A requirement that is named by its id is returned whatever its level.
    """
    known = {requirement.id for requirement in REQUIREMENTS} | {requirement.area for requirement in REQUIREMENTS}
    if unknown := set(wanted) - known:
        raise KeyError(f"no requirement and no area {min(unknown)}")
    return tuple(
        requirement
        for requirement in REQUIREMENTS
        if requirement.id in wanted
        or ((not wanted or requirement.area in wanted) and _STRENGTH[requirement.level] >= _STRENGTH[level])
    )
