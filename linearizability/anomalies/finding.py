"""What a check says of one shard, and how the findings of all shards become a judgement's anomalies.

A finding counts everything and shows the lowest few: by topic, partition, offset, op_ids, an unknown offset last. The
lowest of the whole are among the lowest of the parts, so the merge is exact however a history was cut into shards.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from linearizability.judgement import EVIDENCE_MAX, Anomaly, Evidence, Verdict, in_report_order


@dataclass(frozen=True, slots=True)
class Finding:
    """All that one check found in one shard under one verdict; `evidence` holds the lowest, at most EVIDENCE_MAX."""

    name: str
    verdict: Verdict
    count: int
    evidence: tuple[Evidence, ...]


def evidence_order(evidence: Evidence) -> tuple[Any, ...]:
    """The sort key of evidence: topic, partition, offset (unknown last), op_ids, then value."""
    offset = evidence.offset
    value = evidence.value
    return (
        evidence.topic or "",
        -1 if evidence.partition is None else evidence.partition,
        offset is None,
        offset or 0,
        evidence.op_ids,
        value is None,
        value or 0,
    )


def lowest_evidence(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The first EVIDENCE_MAX in evidence order."""
    return tuple(sorted(evidence, key=evidence_order)[:EVIDENCE_MAX])


def merge_findings(findings: Iterable[Finding]) -> tuple[Anomaly, ...]:
    """One anomaly per name and verdict, in report order."""
    counts: dict[tuple[str, Verdict], int] = defaultdict(int)
    shown: dict[tuple[str, Verdict], list[Evidence]] = defaultdict(list)
    for finding in findings:
        key = (finding.name, finding.verdict)
        counts[key] += finding.count
        shown[key] = list(lowest_evidence([*shown[key], *finding.evidence]))
    merged = [Anomaly(name, verdict, count, tuple(shown[name, verdict])) for (name, verdict), count in counts.items()]
    return tuple(in_report_order(merged))
