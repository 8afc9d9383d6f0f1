"""Judgement of a history: one verdict, and per anomaly a count with evidence.

Every engine (local, Spark) returns the same `Judgement` for the same history. The JSON form is the public one that
`kafkatrial check --json` prints.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from linearizability.printable import cut

EVIDENCE_MAX = 10
"""The maximum number of evidence rows per anomaly and verdict; the count is always exact."""


class Verdict(StrEnum):
    """Verdict of a history, an anomaly or a requirement.

    `PERMITTED` is only for an anomaly, `NOT_APPLICABLE` only for a requirement; a history has neither.
    """

    OK = "ok"
    VIOLATION = "violation"
    UNKNOWN = "unknown"
    PERMITTED = "permitted"
    NOT_APPLICABLE = "not-applicable"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One occurrence of an anomaly: rows of the history, and a sentence that explains it."""

    op_ids: tuple[int, ...]
    topic: str | None
    partition: int | None
    offset: int | None
    value: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Anomaly:
    """All occurrences with one name and one verdict, in a shard or in a whole history; `evidence` has the first few."""

    name: str
    verdict: Verdict
    count: int
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a whole history; `reasons` are the reasons for an unknown verdict."""

    operations: int
    records: int
    anomalies: tuple[Anomaly, ...]
    reasons: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """Violation if any anomaly is a violation, else unknown if any is unknown or there is a reason, else ok."""
        found = {anomaly.verdict for anomaly in self.anomalies}
        if Verdict.VIOLATION in found:
            return Verdict.VIOLATION
        return Verdict.UNKNOWN if Verdict.UNKNOWN in found or self.reasons else Verdict.OK

    @property
    def undecided(self) -> tuple[str, ...]:
        """Undecided checks, one line each: anomalies with their counts, then the reasons."""
        anomalies = (each for each in self.anomalies if each.verdict is Verdict.UNKNOWN and each.count)
        return (*(f"{each.name} ({each.count})" for each in anomalies), *self.reasons)

    def as_json(self) -> dict[str, object]:
        """Return the object of `check --json`: violations first, then unknown, then permitted, each by name."""
        return {
            "verdict": str(self.verdict),
            "operations": self.operations,
            "records": self.records,
            "anomalies": [_anomaly_json(anomaly) for anomaly in in_report_order(self.anomalies)],
            "reasons": [cut(reason) for reason in self.reasons],
        }


_REPORT_ORDER = (Verdict.VIOLATION, Verdict.UNKNOWN, Verdict.PERMITTED)


def in_report_order(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """Return the anomalies with a count above zero, worst verdict first, then by name."""
    found = [anomaly for anomaly in anomalies if anomaly.count]
    return sorted(found, key=lambda anomaly: (_REPORT_ORDER.index(anomaly.verdict), anomaly.name))


def _anomaly_json(anomaly: Anomaly) -> dict[str, object]:
    evidence = [
        {
            "op_ids": list(row.op_ids),
            "topic": row.topic,
            "partition": row.partition,
            "offset": row.offset,
            "value": row.value,
            "text": cut(row.text),
        }
        for row in anomaly.evidence[:EVIDENCE_MAX]
    ]
    return {"name": anomaly.name, "verdict": str(anomaly.verdict), "count": anomaly.count, "evidence": evidence}
