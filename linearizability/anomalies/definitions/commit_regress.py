"""`commit-regress`: a fetched group offset is older than the last commit.

[Which commits explain a group offset](#which-commits-explain-a-group-offset) defines this, and which groups are judged.
No group is judged if any client of the run commits automatically (`enable.auto.commit`), because the history does not
contain those commits.
"""

from collections.abc import Iterable

from linearizability.anomalies.definition import Definition
from linearizability.anomalies.group_offsets import Stale, stale_findings
from linearizability.anomalies.log import PartitionLog
from linearizability.judgement import Anomaly

NAME = "commit-regress"


def find(log: PartitionLog) -> Iterable[Anomaly]:
    """Return the finding, if any; it counts groups, with the offset that should have been found for each."""
    if any(client.get("enable.auto.commit") == "true" for client in log.context.clients.values()):
        return
    yield from stale_findings(log, NAME, _superseded, lost=False)


def _superseded(stale: Stale) -> str:
    return f"offset {stale.found}, which was not written by any commit that may be the last one"


COMMIT_REGRESS = Definition(
    name=NAME,
    text="Two fetches after healing both found a group offset that no commit explains, although a commit had been"
    " acknowledged before them. A commit explains an offset if it wrote the offset and may be the last commit.",
    levels="A violation; permitted if `__consumer_offsets` could have lost content.",
    counted="groups and partitions",
    evidence="the newest commit acknowledged before the first fetch, and the two lowest such fetches",
    find=find,
)
