"""Judges a history that is one file: what is of Kafka by the anomaly catalogue, what is of a small object by its model.

The generic checker's answer takes the form of every judgement: a subhistory that no order explains is a violation of
the anomaly `not-linearizable`, and one that stayed undecided is a reason why the verdict is unknown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from linearizability.check import judge_history
from linearizability.explain import Explanation
from linearizability.history.errors import NotARunError
from linearizability.history.reader import History
from linearizability.importers.jepsen import import_jepsen
from linearizability.importers.jepsen_log import read_edn_rows, read_json_rows
from linearizability.importers.ndjson import read_ndjson
from linearizability.importers.porcupine import read_etcd_log, read_key_value_log
from linearizability.importers.recognise import Form, recognise
from linearizability.judgement import Anomaly, Evidence, Judgement, Verdict
from linearizability.model import Model
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.key_value import key_value
from linearizability.operation import Event, EventKind
from linearizability.verify import Budget, Outcome, Verification, check

NOT_LINEARIZABLE: Final = "not-linearizable"
EXPLANATION_STEPS: Final = 500_000
"""So much work goes into the explanation of a violation: some seconds."""


@dataclass(frozen=True, slots=True)
class FileJudgement:
    """What a file was taken for, what was found, and for a person why it cannot be linearized (else empty).

    What was judged is there to draw it: a Kafka history, or what the generic checker found.
    """

    form: Form
    judgement: Judgement
    explanation: str = ""
    history: History | None = None
    verification: Verification | None = None


_LOGS: Final[dict[Form, tuple[Callable[[Path], list[Event]], Callable[[], Model]]]] = {
    Form.ETCD_LOG: (read_etcd_log, compare_and_set),
    Form.KEY_VALUE_LOG: (read_key_value_log, key_value),
}
_HISTORIES: Final[dict[Form, Callable[[Path], History]]] = {
    Form.JEPSEN_EDN: lambda path: import_jepsen(path, read_edn_rows(path)),
    Form.JEPSEN_JSON: lambda path: import_jepsen(path, read_json_rows(path)),
    Form.NDJSON: read_ndjson,
}


def judge_file(path: Path, budget: Budget | None = None) -> FileJudgement:
    """Judge a file of any form that `recognise` knows. The budget is that of a search, which a Kafka history needs not.

    Raises NotARunError for another file, HistoryError for a damaged one: one line each.
    """
    form = recognise(path)
    if form in _HISTORIES:
        history = _HISTORIES[form](path)
        return FileJudgement(form, judge_history(history), history=history)
    read, model = _LOGS[form]
    return _judge_log(form, read(path), model(), budget)


def import_history(path: Path) -> History:
    """The Kafka history that a file holds, in memory. Raises as `judge_file` does."""
    form = recognise(path)
    if form not in _HISTORIES:
        raise NotARunError(f"{path}: {form.value}, which is no Kafka history and has no tables")
    return _HISTORIES[form](path)


def _judge_log(form: Form, events: Sequence[Event], model: Model, budget: Budget | None) -> FileJudgement:
    verification = check(events, model, budget)
    violations = [one for one in verification.outcomes if one.verdict is Verdict.VIOLATION]
    anomalies: tuple[Anomaly, ...] = ()
    explanation: Explanation | None = None
    if violations:
        explanation = verification.explain(violations[0], steps=EXPLANATION_STEPS)
        evidence = (_explained(violations[0], explanation), *(_blocked(one) for one in violations[1:]))
        anomalies = (Anomaly(NOT_LINEARIZABLE, Verdict.VIOLATION, len(violations), evidence),)
    judgement = Judgement(
        operations=sum(event.kind is EventKind.INVOKE for event in events),
        records=0,
        anomalies=anomalies,
        reasons=_undecided(verification),
    )
    text = explanation.text() if explanation is not None else ""
    return FileJudgement(form, judgement, text, verification=verification)


def _undecided(verification: Verification) -> tuple[str, ...]:
    if not verification.outcomes:
        return ("no operation is known to have happened",)
    unknown = [one for one in verification.outcomes if one.verdict is Verdict.UNKNOWN]
    return tuple(f"{_subhistory(one)}{one.reason}" for one in unknown)


def _subhistory(outcome: Outcome) -> str:
    return "" if outcome.key is None else f"key {outcome.key!r}: "


def _blocked(outcome: Outcome) -> Evidence:
    assert outcome.blocked is not None
    return _evidence([outcome.blocked.op_id], f"{_subhistory(outcome)}{outcome.reason}")


def _explained(outcome: Outcome, explanation: Explanation) -> Evidence:
    """The few operations that show it, and where the search got to at best."""
    few = sorted(explanation.shrunk, key=lambda operation: operation.invoke_ns)
    best = next((f"; in state {path.state}: {path.reason}" for path in explanation.partial_linearizations), "")
    return _evidence([one.op_id for one in few], f"{_subhistory(outcome)}{outcome.reason}{best}")


def _evidence(op_ids: Sequence[object], text: str) -> Evidence:
    return Evidence(tuple(op_id for op_id in op_ids if isinstance(op_id, int)), None, None, None, None, text)
