"""Judgement of linearizability by a model, for any object (with the generic checker) and for the objects of Kafka.

A subhistory that no order explains is a violation, with the anomaly `not-linearizable`. An undecided subhistory is a
reason for the verdict unknown. So the result has the same form as a judgement by anomalies.

A Kafka history shows two kinds of objects: every partition's log (`append-log`, `linearizable-log`), judged exactly by
`partition_log`, and every offset that a group committed (`committed-offset`). These models are stricter than Kafka's
guarantees: they reject some histories with faults in which the check for anomalies finds no violation.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.groups import DELETES_OFFSETS
from linearizability.explain import Explanation
from linearizability.history.errors import HistoryError, NotARunError
from linearizability.history.reader import History, open_history
from linearizability.history.topic_ids import TopicIds
from linearizability.history.validate import validate
from linearizability.judgement import EVIDENCE_MAX, Anomaly, Evidence, Judgement, Verdict
from linearizability.model import Model, ModelError
from linearizability.models.committed_offset import committed_offset
from linearizability.operation import UNKNOWN, Event, EventKind, Operation, Outcome
from linearizability.partition_log import partition_columns
from linearizability.verify import Budget, SubhistoryVerdict, Verification, check

NOT_LINEARIZABLE: Final = "not-linearizable"
EXPLANATION_STEPS: Final = 500_000
"""The argument `steps` of `explain` for an explanation in a few seconds."""

Place = tuple[str, str | None, int]
"""Topic, topic id, partition."""


def judge_operations(
    history: Sequence[Operation] | Sequence[Event], model: Model, budget: Budget | None = None
) -> tuple[Judgement, Verification, Explanation | None]:
    """Return the judgement, the verification, and the explanation of the first violation (None if there is none).

    Raises HistoryError if the history is invalid, or if the model raises ModelError, for example for an unknown input.
    """
    try:
        verification = check(history, model, budget)
        violations = [one for one in verification.outcomes if one.verdict is Verdict.VIOLATION]
        explanation = verification.explain(violations[0], steps=EXPLANATION_STEPS) if violations else None
    except ModelError as error:
        raise HistoryError(str(error)) from error
    evidence = []
    if explanation is not None:
        evidence = [_explained(violations[0], explanation), *map(_blocked, violations[1:])]
    judgement = Judgement(
        operations=sum(not isinstance(one, Event) or one.kind is EventKind.INVOKE for one in history),
        records=0,
        anomalies=_anomalies(len(violations), evidence),
        reasons=_undecided(verification),
    )
    return judgement, verification, explanation


def judge_object(run_dir: Path, model: str, budget: Budget | None = None) -> Judgement:
    """Judge the history of a run directory by one of `KAFKA_OBJECTS`. Raises HistoryError or NotARunError."""
    history = open_history(run_dir)
    validate(history)
    return judge_kafka_object(history, model, budget)


def judge_kafka_object(history: History, name: str, budget: Budget | None = None) -> Judgement:
    """Judge a Kafka history by one of `KAFKA_OBJECTS`. The caller has validated the history.

    Raises NotARunError for a model of another object.
    """
    if name not in KAFKA_OBJECTS:
        known = ", ".join(KAFKA_OBJECTS)
        raise NotARunError(f"{history.run_dir}: a Kafka history has no {name}; use {known}, or no model")
    judgement = KAFKA_OBJECTS[name](history, budget or Budget())
    return replace(judgement, reasons=(*history.run.unfinished_reasons, *judgement.reasons))


def _judge_logs(history: History, budget: Budget, *, linearizable: bool) -> Judgement:
    """Judge every partition's log. No search is needed; the time budget is checked before each partition."""
    ends_s = None if budget.time_s is None else time.monotonic() + budget.time_s
    evidence: list[Evidence] = []
    reasons: list[str] = []
    places = _places(history, "records") | _places(history, "positions")
    for topic, partition in sorted({(topic, partition) for topic, _, partition in places}):
        where = f"{topic}-{partition}"
        if ends_s is not None and time.monotonic() >= ends_s:
            reasons.append(f"{where}: the time budget of {budget.time_s:g} s was used up")
            continue
        try:
            found = partition_columns(history, topic, partition).find_conflict(linearizable=linearizable)
        except HistoryError as error:
            reasons.append(f"{where} is not judged: {error}")
            continue
        if found is not None:
            op_ids = tuple(sorted({*found.sends, *found.fetches}))
            evidence.append(Evidence(op_ids, topic, partition, found.offset, None, found.text))
    return Judgement(
        operations=_count(history, "operations"),
        records=_count(history, "records"),
        anomalies=_anomalies(len(evidence), evidence),
        reasons=tuple(reasons) if places else ("there is no record and no read",),
    )


def _judge_committed_offsets(history: History, budget: Budget) -> Judgement:
    """Judge the committed offset of each group and partition separately."""
    ends_s = None if budget.time_s is None else time.monotonic() + budget.time_s
    evidence: list[Evidence] = []
    reasons: list[str] = []
    violations = 0
    subhistories = _offset_subhistories(history)
    for (group, (topic, _, partition)), (operations, excluded) in subhistories.items():
        where = f"group {group}, {topic}-{partition}: "
        if excluded:
            reasons.append(where + excluded)
            continue
        left_s = None if ends_s is None else max(0.0, ends_s - time.monotonic())
        own = Budget(steps=budget.steps, time_s=left_s, memory_mb=budget.memory_mb)
        try:
            judgement, _, _ = judge_operations(operations, committed_offset(), own)
        except HistoryError as error:
            reasons.append(f"{where}is not judged: {error}")
            continue
        reasons += [where + reason for reason in judgement.reasons]
        for anomaly in judgement.anomalies:
            violations += anomaly.count
            evidence += [
                Evidence(row.op_ids, topic, partition, None, None, where + row.text) for row in anomaly.evidence
            ]
    return Judgement(
        operations=_count(history, "operations"),
        records=_count(history, "records"),
        anomalies=_anomalies(violations, evidence),
        reasons=tuple(dict.fromkeys(reasons)) if subhistories else ("no group commits or fetches an offset",),
    )


def _offset_subhistories(history: History) -> dict[tuple[str, Place], tuple[list[Operation], str]]:
    """Return the commits and fetches of each group and partition.

    The text beside the operations is the reason why they cannot be judged; it is empty if they can be judged.
    """
    topic_ids = TopicIds.of(history)
    rows = topic_ids.fill(history.table("offsets")).to_pylist()
    wanted = pa.array(sorted({row["op_id"] for row in rows}), pa.int64())
    calls: dict[int, dict[str, Any]] = {}
    deletion = ""
    for table in history.batches("operations"):
        calls |= {row["op_id"]: row for row in table.filter(pc.is_in(table["op_id"], value_set=wanted)).to_pylist()}
        deletes = pc.and_(pc.match_substring_regex(table["f"], _DELETES), pc.not_equal(table["outcome"], "fail"))
        for op_id in table["op_id"].filter(deletes).to_pylist():
            deletion = deletion or f"operation {op_id} may have deleted the offset"
    found: dict[tuple[str, Place], tuple[list[Operation], str]] = defaultdict(lambda: ([], deletion))
    without_id = {
        (row["group"], row["topic"], row["partition"])
        for row in rows
        if row["topic_id"] is None and row["topic"] in topic_ids.ambiguous
    }
    for row in rows:
        key = row["group"], (row["topic"], row["topic_id"], row["partition"])
        operations, excluded = found[key]
        if (row["group"], row["topic"], row["partition"]) in without_id:
            excluded = excluded or f"topic {row['topic']} has several ids, and a commit or fetch of it has none"
        operations.append(_offset_operation(row, calls[row["op_id"]], key))
        if row["direction"] == "commit" and calls[row["op_id"]]["txn_seq"] is not None:
            excluded = excluded or f"operation {row['op_id']} commits inside a transaction and takes effect with it"
        found[key] = operations, excluded
    return found


_DELETES: Final = f"{DELETES_OFFSETS}|^delete.*topic"


def _offset_operation(row: Mapping[str, Any], call: Mapping[str, Any], key: object) -> Operation:
    commits, outcome = row["direction"] == "commit", Outcome(call["outcome"])
    if outcome is Outcome.OK and call["complete_ns"] is None:
        outcome = Outcome.INFO
    return Operation(
        op_id=row["op_id"],
        input=("commit", key, row["offset"]) if commits else ("fetch", key),
        output=UNKNOWN if outcome is not Outcome.OK else None if commits else row["offset"],
        invoke_ns=call["invoke_ns"],
        complete_ns=call["complete_ns"],
        outcome=outcome,
    )


KAFKA_OBJECTS: Final[dict[str, Callable[[History, Budget], Judgement]]] = {
    "append-log": lambda history, budget: _judge_logs(history, budget, linearizable=False),
    "linearizable-log": lambda history, budget: _judge_logs(history, budget, linearizable=True),
    "committed-offset": _judge_committed_offsets,
}
"""The models of the objects in a Kafka history."""


def _places(history: History, table: str) -> set[Place]:
    columns = ("topic", "topic_id", "partition")
    places: set[Place] = set()
    for batch in history.batches(table, columns):
        distinct = batch.group_by(list(columns)).aggregate([])
        places.update(zip(*(distinct[name].to_pylist() for name in columns), strict=True))
    return places


def _count(history: History, table: str) -> int:
    return sum(batch.num_rows for batch in history.batches(table, ("op_id",)))


def _anomalies(count: int, evidence: Sequence[Evidence]) -> tuple[Anomaly, ...]:
    return (Anomaly(NOT_LINEARIZABLE, Verdict.VIOLATION, count, tuple(evidence[:EVIDENCE_MAX])),) if count else ()


def _undecided(verification: Verification) -> tuple[str, ...]:
    if not any(outcome.operations for outcome in verification.outcomes):
        return ("no operation is known to have happened",)
    unknown = [one for one in verification.outcomes if one.verdict is Verdict.UNKNOWN]
    return tuple(f"{_subhistory(one)}{one.reason}" for one in unknown)


def _subhistory(outcome: SubhistoryVerdict) -> str:
    return "" if outcome.key is None else f"key {outcome.key!r}: "


def _blocked(outcome: SubhistoryVerdict) -> Evidence:
    assert outcome.blocked is not None
    return _evidence([outcome.blocked.op_id], f"{_subhistory(outcome)}{outcome.reason}")


def _explained(outcome: SubhistoryVerdict, explanation: Explanation) -> Evidence:
    """Return evidence: the few operations that show the violation, and the state after the longest linearization."""
    few = sorted(explanation.shrunk, key=lambda operation: operation.invoke_ns)
    best = next((f"; in state {path.state}: {path.reason}" for path in explanation.partial_linearizations), "")
    return _evidence([one.op_id for one in few], f"{_subhistory(outcome)}{outcome.reason}{best}")


def _evidence(op_ids: Iterable[object], text: str) -> Evidence:
    return Evidence(tuple(op_id for op_id in op_ids if isinstance(op_id, int)), None, None, None, None, text)
