"""`commit-regress`: a group offset is one that some commit wrote last.

What counts as a commit, and when it may stand last, `group_offsets` says. Not judged where a client commits by itself
(`enable.auto.commit`), because nobody records what.
"""

from collections.abc import Iterable

from linearizability.anomalies.definition import Definition
from linearizability.anomalies.group_offsets import Stale, stale_findings
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly

NAME = "commit-regress"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Per group and partition, at the offset that should have been found."""
    if any(client.get("enable.auto.commit") == "true" for client in log.context.clients.values()):
        return
    yield from stale_findings(log, NAME, _superseded, lost=False)


def _superseded(stale: Stale) -> str:
    return f"offset {stale.found}, which no commit wrote that may stand last"


COMMIT_REGRESS = Definition(
    name=NAME,
    text="Two fetches after healing both found a group offset that no commit which may stand last has written, though a"
    " commit had been acknowledged before them.",
    levels="A violation; permitted where `__consumer_offsets` could have lost content.",
    counted="groups and partitions",
    evidence="the newest commit acknowledged before the first fetch, and the two lowest such fetches",
    find=find,
)
