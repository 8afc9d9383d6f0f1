"""Report of one round: the verdict, permitted losses, recovery times and coverage."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaos.campaign.violation import Violation
from chaos.live.coverage import coverage_of
from chaos.live.injector import Injected
from conformance.trial.trial import Trial
from fixtures.targets.replica_logs import Divergence
from linearizability.anomalies.settings import Settings
from linearizability.check import judge_history
from linearizability.history.reader import History
from linearizability.judgement import Judgement, Verdict
from linearizability.operation import Outcome

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """Facts about a round that its history does not contain.

    :ivar recovery_s: time from the last heal until every partition had a leader and a full ISR; None if it took
        longer than `bound_s`.
    :ivar bound_s: time allowed for the recovery.
    :ivar work_s: time from the start of the clients to the end of the healed phase.
    :ivar unwritten: partitions that accepted no record after the recovery, within the bound.
    :ivar unhealed: faults that are still in force after healing.
    :ivar client_violations: violations that clients with steps have found.
    :ivar unfinished: steps of clients that were not done in time, so that the history may lack them.
    """

    injected: tuple[Injected, ...] = ()
    deaths: tuple[tuple[int, str], ...] = ()
    divergences: tuple[Divergence, ...] = ()
    recovery_s: float | None = 0.0
    bound_s: float = 0.0
    work_s: float = 0.0
    unwritten: tuple[int, ...] = ()
    unhealed: tuple[str, ...] = ()
    client_violations: tuple[Violation, ...] = ()
    unfinished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Result of one round on one target.

    :ivar produced: number of records by acks and outcome.
    :ivar lost: number of acknowledged records by acks (with acks=0: of all records) that no replica has at the end; not
        counted if records of the topic may be deleted.
    :ivar errors: number of failed produce operations by acks and error.
    :ivar silences_s: by acks, the longest time between two successive acknowledgements.
    :ivar overhead_s: time from the end of the healed phase to the verdict, in which the topics are read back.
    :ivar residue: processes, mounts and rules that are left on this machine after the cluster was stopped.
    """

    trial: Trial
    target: str
    judgement: Judgement
    facts: RoundFacts
    produced: Counter[tuple[int, Outcome]] = field(default_factory=Counter)
    lost: Counter[int] = field(default_factory=Counter)
    errors: Counter[tuple[int, str]] = field(default_factory=Counter)
    coverage: Counter[str] = field(default_factory=Counter)
    silences_s: Mapping[int, float] = field(default_factory=dict)
    overhead_s: float = 0.0
    residue: tuple[str, ...] = ()

    @property
    def violations(self) -> tuple[Violation, ...]:
        """All violations of the round."""
        found = [
            Violation(each.name, f"{each.count}: {each.evidence[0].text if each.evidence else each.name}")
            for each in self.judgement.anomalies
            if each.verdict is Verdict.VIOLATION and each.count
        ]
        found += [
            Violation("node-ended", f"node {node} ended by itself: {last_line}")
            for node, last_line in self.facts.deaths
        ]
        found += self.facts.client_violations
        found += [Violation("replicas-differ", str(divergence)) for divergence in self.facts.divergences]
        found += [Violation("residue", line) for line in (*self.facts.unhealed, *self.residue)]
        return (*found, *(Violation("not-recovered", text) for text in self._not_recovered()))

    def _not_recovered(self) -> Iterator[str]:
        bound = f"{self.facts.bound_s:.0f} s after the last heal"
        unwritten = ", ".join(f"partition {each}" for each in self.facts.unwritten)
        if self.facts.recovery_s is None:
            yield f"some partitions have no leader or no full ISR {bound}"
        if self.facts.unwritten:
            yield f"no record was acknowledged within {bound} by {unwritten}"

    @property
    def permitted(self) -> dict[str, int]:
        """Permitted anomalies by name, with their counts; lost records are `lost-write`."""
        return {
            each.name: each.count
            for each in self.judgement.anomalies
            if each.verdict is Verdict.PERMITTED and each.count
        }

    @property
    def unknown(self) -> tuple[str, ...]:
        """Reasons for the verdict unknown, a line each."""
        return (*self.judgement.undecided, *self.facts.unfinished)

    @property
    def acknowledged(self) -> int:
        """Number of acknowledged records, with any acks."""
        return sum(count for (_, outcome), count in self.produced.items() if outcome is Outcome.OK)

    @property
    def silence_max_s(self) -> float:
        """The longest time in `silences_s`."""
        return max(self.silences_s.values(), default=0.0)

    @property
    def verdict(self) -> Verdict:
        """Violation, unknown or ok."""
        if self.violations:
            return Verdict.VIOLATION
        return Verdict.UNKNOWN if self.unknown else Verdict.OK


def report_of(history: History, trial: Trial, target: str, facts: RoundFacts) -> Report:
    """Judge the history of a round, and count its outcomes."""
    topic = trial.topic
    produced = {row["op_id"]: row for row in history.table("operations").to_pylist() if row["f"] == "produce"}
    records = history.table("records", ["op_id", "direction", "topic", "partition", "value"]).to_pylist()
    sent = [(produced[row["op_id"]], row) for row in records if row["direction"] == "send" and row["op_id"] in produced]
    properties = Settings({topic.name: dict(topic.properties)}, history.run.cluster, ())
    needed = min(properties.numbers(topic.name, "min.insync.replicas"), default=1)
    return Report(
        trial=trial,
        target=target,
        judgement=judge_history(history),
        facts=facts,
        produced=Counter((operation["acks"], Outcome(operation["outcome"])) for operation, _ in sent),
        lost=Counter()
        if topic.name in trial.shortened_topics
        else _lost(history, records, (each for each in sent if each[1]["topic"] == topic.name)),
        errors=Counter((row["acks"], row["error"]) for row in produced.values() if row["error"] is not None),
        coverage=coverage_of(history, topic.name, needed),
        silences_s=_silences_s(produced.values()),
    )


def _silences_s(produced: Iterable[Row]) -> dict[int, float]:
    times: defaultdict[int, list[int]] = defaultdict(list)
    for row in produced:
        if row["outcome"] == "ok":
            times[row["acks"]].append(row["complete_ns"])
    return {acks: _longest_ns(sorted(own)) / 1e9 for acks, own in times.items()}


def _longest_ns(times: Sequence[int]) -> int:
    return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0)


def _lost(history: History, records: Sequence[Row], sent: Iterable[tuple[Row, Row]]) -> Counter[int]:
    """Count, by acks, the records that were acknowledged or sent with acks=0, and that are on no replica's disk.

    If no replica was read, the result is empty.
    """
    operations = history.table("operations", ["op_id", "f"]).to_pylist()
    on_disk = {row["op_id"] for row in operations if row["f"] == "read_replica"}
    if not on_disk:
        return Counter()
    held = {(row["partition"], row["value"]) for row in records if row["op_id"] in on_disk}
    return Counter(
        operation["acks"]
        for operation, row in sent
        if (operation["outcome"] == "ok" or operation["acks"] == 0) and (row["partition"], row["value"]) not in held
    )
