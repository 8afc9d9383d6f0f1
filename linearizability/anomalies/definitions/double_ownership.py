"""`double-ownership`: two members own one partition in one generation (KIP-345, KIP-848).

A member owns a partition from the event that assigned it until its process loses the partition (a `revoked` or `lost`
event), leaves the group, or gets a fencing error. If none of these is known, it owns the partition until the last
operation or event of its process. If that is the assignment itself, it owns the partition only at that moment.

Choices: ownerships that only touch at one moment do not overlap. A second member of the same process is no second
owner, nor is a member with the same instance id, which replaces the old member without notice. Events without a group
or generation are not judged; nor are share groups. A group that is created again after a DeleteGroups begins with the
first generation again, so two ownerships are compared only if no deletion lies between their starts. A DeleteGroups of
unknown outcome may take effect at any later time, so ownerships that begin after it are not compared. If
`__consumer_offsets` could have lost content, generations may start again, so a second owner is permitted.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from linearizability.anomalies.acknowledgements import no_offsets
from linearizability.anomalies.columns import NO_OFFSET
from linearizability.anomalies.definition import Definition, Shown, finding, place
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.group_offsets import group_verdict
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly

NAME = "double-ownership"

_Key = tuple[str, int, int]
"""Group, its incarnation, and generation."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """The time during which a member owned the partition; empty if its assignment is the last trace of its process."""

    begin_ns: int
    end_ns: int
    process: int
    member: str
    instance_id: str | None


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the findings; each counts groups and generations."""
    if log.ambiguous:
        return
    held = _ownerships(log)
    pairs = [(key, pair) for key in sorted(held) for pair in [_overlap(held[key])] if pair is not None]
    show, everything = partial(_show, log, pairs), np.ones(len(pairs), np.bool_)
    yield from finding(log, NAME, group_verdict(log), everything, offsets=no_offsets(len(pairs)), show=show)


def _ownerships(log: PartitionLog) -> dict[_Key, list[Ownership]]:
    """Return the ownerships by group, its incarnation, and generation, sorted by their begin."""
    rows, groups = log.rows.assignments, log.context.groups
    ends_ns: dict[tuple[int, str | None], list[int]] = defaultdict(list)
    for row in np.flatnonzero(~rows.is_assigned):
        ends_ns[int(rows.process[row]), rows.group[row]].append(int(rows.at_ns[row]))
    sorted_ends = {key: np.sort(np.array(own, np.int64)) for key, own in ends_ns.items()}
    departures = defaultdict(list)
    for departure in groups.departures:
        departures[departure.process, departure.group].append(departure)
    held: dict[_Key, list[Ownership]] = defaultdict(list)
    for row in np.flatnonzero(rows.is_assigned & (rows.generation != NO_OFFSET)):
        group, process, begin_ns = rows.group[row], int(rows.process[row]), int(rows.at_ns[row])
        if group is None or group in groups.shared:
            continue
        incarnation = groups.incarnation(group, begin_ns)
        if incarnation is None:
            continue
        end_ns = NEVER_NS
        for key in ((process, group), (process, None)):
            ends = sorted_ends.get(key, np.empty(0, np.int64))
            following = np.searchsorted(ends, begin_ns)
            end_ns = min(end_ns, int(np.append(ends, NEVER_NS)[following]))
            for departure in departures.get(key, ()):
                if departure.complete_ns >= begin_ns:
                    end_ns = min(end_ns, max(begin_ns, departure.invoke_ns))
        member = rows.member_id[row] or f"process {process}"
        if end_ns > begin_ns:
            known_until_ns = min(end_ns, groups.last_seen_ns[process])
            ownership = Ownership(begin_ns, known_until_ns, process, member, rows.instance_id[row])
            held[group, incarnation, int(rows.generation[row])].append(ownership)
    for own in held.values():
        own.sort(key=lambda one: (one.begin_ns, one.process, one.member, one.instance_id or "", one.end_ns))
    return held


def _overlap(held: Sequence[Ownership]) -> tuple[Ownership, Ownership] | None:
    """Return the first two simultaneous owners, if any."""
    standing: dict[tuple[int, str, str | None], Ownership] = {}
    for one in held:
        for other in standing.values():
            if other.end_ns <= one.begin_ns:
                continue
            replaced = one.instance_id is not None and one.instance_id == other.instance_id
            if other.begin_ns == one.begin_ns == one.end_ns:
                continue
            if one.process != other.process and one.member != other.member and not replaced:
                return other, one
        owner = one.process, one.member, one.instance_id
        if owner not in standing or standing[owner].end_ns < one.end_ns:
            standing[owner] = one
    return None


def _show(log: PartitionLog, pairs: list[tuple[_Key, tuple[Ownership, Ownership]]], index: int) -> Shown:
    (group, _, generation), (one, other) = pairs[index]
    text = (
        f"in generation {generation} of group {group}, {other.member} (process {other.process}) was given"
        f" {place(log, NO_OFFSET)} at {other.begin_ns} ns, while {one.member} (process {one.process}) had owned it"
        f" since {one.begin_ns} ns"
    )
    return Shown((), None, text)


DOUBLE_OWNERSHIP = Definition(
    name=NAME,
    text="Two members of a group owned one partition in one generation at the same time, although neither had been"
    " fenced, or replaced by a member with the same instance id.",
    levels="A violation; permitted if `__consumer_offsets` could have lost content.",
    counted="groups, generations and partitions",
    evidence="none: assignments belong to no operation",
    find=find,
)
