"""What one round has shown: the verdict, what was lost lawfully, how long the cluster took, and what it came to."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from chaos.live.injector import Injected
from chaos.live.round import Round
from fixtures.targets.replica_logs import Divergence
from linearizability.judgement import Judgement, Verdict


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must never be: `name` of an anomaly, or `node-ended`, `replicas-differ`, `not-recovered`."""

    name: str
    text: str


class Kept(StrEnum):
    """What became of the records of one kind of produce."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Report:
    """One round on one target.

    :ivar produced: records by acks and by what became of them.
    :ivar errors: of produces, by acks and name.
    :ivar silence_max_s: the longest time without a record acknowledged.
    :ivar recovery_s: from the last heal until every partition had a leader and a full ISR; null if that took too long.
    """

    round: Round
    target: str
    judgement: Judgement
    divergences: tuple[Divergence, ...] = ()
    deaths: tuple[tuple[int, str], ...] = ()
    injected: tuple[Injected, ...] = ()
    produced: Counter[tuple[int, Kept]] = field(default_factory=Counter)
    errors: Counter[tuple[int, str]] = field(default_factory=Counter)
    coverage: Counter[str] = field(default_factory=Counter)
    silence_max_s: float = 0.0
    recovery_s: float | None = 0.0
    recovery_bound_s: float = 0.0
    work_s: float = 0.0
    overhead_s: float = 0.0
    """Of draining and judging."""
    complete: bool = True

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All that must never be; empty where all is well."""
        found = [
            Violation(each.name, f"{each.count}: {each.evidence[0].text if each.evidence else each.name}")
            for each in self.judgement.anomalies
            if each.verdict is Verdict.VIOLATION and each.count
        ]
        found += [Violation("node-ended", f"node {node} ended by itself: {words}") for node, words in self.deaths]
        found += [Violation("replicas-differ", str(divergence)) for divergence in self.divergences]
        if self.recovery_s is None:
            bound = f"{self.recovery_bound_s:.0f} s"
            found.append(Violation("not-recovered", f"{bound} after the last heal not every partition is in order"))
        return tuple(found)

    @property
    def permitted(self) -> dict[str, int]:
        """Anomalies outside of what Kafka promises, by name, with their counts; lost records are `lost-write`."""
        return {
            each.name: each.count
            for each in self.judgement.anomalies
            if each.verdict is Verdict.PERMITTED and each.count
        }

    @property
    def unknown(self) -> tuple[str, ...]:
        """What could not be decided, a line each."""
        open_ones = (each for each in self.judgement.anomalies if each.verdict is Verdict.UNKNOWN and each.count)
        return (*(f"{each.name} ({each.count})" for each in open_ones), *self.judgement.reasons)

    @property
    def acknowledged(self) -> int:
        """Records, whatever their acks."""
        return sum(count for (_, kept), count in self.produced.items() if kept is Kept.ACKNOWLEDGED)

    @property
    def verdict(self) -> Verdict:
        """Violation, unknown or ok."""
        if self.violations:
            return Verdict.VIOLATION
        return Verdict.UNKNOWN if self.unknown or not self.complete else Verdict.OK
