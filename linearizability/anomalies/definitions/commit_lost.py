"""`commit-lost`: a group offset is gone although its commit was acknowledged.

[Which commits explain a group offset](#which-commits-explain-a-group-offset) defines when a commit ended, and which
groups are judged.
"""

from collections.abc import Iterable

from linearizability.anomalies.definition import Definition
from linearizability.anomalies.group_offsets import stale_findings
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly

NAME = "commit-lost"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the finding, if any; it counts groups, with the offset that should have been found for each."""
    if log.ambiguous:
        return
    yield from stale_findings(log, NAME, lambda _: "no offset", lost=True)


COMMIT_LOST = Definition(
    name=NAME,
    text="Two fetches after healing both found no group offset, although a commit had been acknowledged before them.",
    levels="A violation; permitted if `__consumer_offsets` could have lost content.",
    counted="groups and partitions",
    evidence="the newest commit acknowledged before the first fetch, and the two lowest such fetches",
    find=find,
)
