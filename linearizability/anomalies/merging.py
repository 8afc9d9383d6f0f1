"""Merge of the anomalies of all shards into those of a judgement.

An anomaly counts every occurrence, and its evidence is the lowest few in the order of topic, partition, offset (unknown
last), op_ids and value. Each evidence that is among the lowest of the history is also among the lowest of its shard,
so the result does not depend on how the history is divided into shards.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from linearizability.judgement import EVIDENCE_MAX, Anomaly, Evidence, Verdict, in_report_order


def evidence_order(evidence: Evidence) -> tuple[Any, ...]:
    """Return the sort key of evidence: topic, partition, offset (unknown last), op_ids, then value."""
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
    """Return the first EVIDENCE_MAX in evidence order."""
    return tuple(sorted(evidence, key=evidence_order)[:EVIDENCE_MAX])


def merge_anomalies(anomalies: Iterable[Anomaly]) -> tuple[Anomaly, ...]:
    """Return one anomaly per name and verdict, in report order."""
    counts: dict[tuple[str, Verdict], int] = defaultdict(int)
    shown: dict[tuple[str, Verdict], list[Evidence]] = defaultdict(list)
    for anomaly in anomalies:
        key = (anomaly.name, anomaly.verdict)
        counts[key] += anomaly.count
        shown[key] = list(lowest_evidence([*shown[key], *anomaly.evidence]))
    merged = [Anomaly(name, verdict, count, tuple(shown[name, verdict])) for (name, verdict), count in counts.items()]
    return tuple(in_report_order(merged))
