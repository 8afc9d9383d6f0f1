"""Judgement of a history in one file, by the anomaly catalogue or by a model.

A Kafka history is checked for anomalies. If the caller names a model, the history is checked for linearizability
instead. The history of another object is always checked against a model. A log of porcupine's tests has a default
model. For any other history of another object, the caller must name the model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from linearizability.check import judge_history
from linearizability.check_object import KAFKA_OBJECTS, judge_kafka_object, judge_operations
from linearizability.history.errors import HistoryError, NotARunError
from linearizability.history.reader import History
from linearizability.importers.calls import OwnLines, as_calls_of, read_jepsen_calls, read_operations
from linearizability.importers.jepsen import has_kafka_calls, import_jepsen
from linearizability.importers.jepsen_log import read_edn_rows, read_json_rows
from linearizability.importers.ndjson import read_ndjson
from linearizability.importers.porcupine import read_etcd_log, read_key_value_log
from linearizability.importers.recognise import Form, recognise
from linearizability.judgement import Judgement
from linearizability.model import Model
from linearizability.models.catalogue import MODELS, NamedModel
from linearizability.operation import Event, Operation
from linearizability.verify import Budget, Verification


@dataclass(frozen=True, slots=True)
class FileJudgement:
    """The recognised form of a file and its judgement.

    `explanation` describes why the history is not linearizable; it is empty if there is nothing to explain. The judged
    history is kept for a picture: as `history` (a Kafka history) or `verification` (the result of the generic checker).
    """

    form: Form
    judgement: Judgement
    explanation: str = ""
    history: History | None = None
    verification: Verification | None = None


_LOGS: Final[dict[Form, tuple[Callable[[Path], list[Event]], str]]] = {
    Form.ETCD_LOG: (read_etcd_log, "compare-and-set"),
    Form.KEY_VALUE_LOG: (read_key_value_log, "key-value"),
}
"""The reader of each form of log, and the model of its object."""
_JEPSEN: Final = {Form.JEPSEN_EDN: read_edn_rows, Form.JEPSEN_JSON: read_json_rows}


def judge_file(path: Path, budget: Budget | None = None, model: str | None = None) -> FileJudgement:
    """Judge a file of any form that `recognise` knows, by a model of `MODELS` if one is named.

    The budget limits a search; the check for anomalies has no budget. Raises NotARunError if the form is unknown or
    the model does not fit the file, HistoryError if the file is damaged, and KeyError for an unknown model. Each
    message is one line.
    """
    form = recognise(path)
    named = None if model is None else MODELS[model]
    if form in _LOGS:
        return _judge_log(path, form, named, budget)
    if form is Form.OPERATIONS:
        if named is None:
            known = ", ".join(MODELS)
            raise NotARunError(f"{path}: {form.value}; name the model to check it against (--model): {known}")
        history, lines = read_operations(path, named)
        return _judge_operations(path, form, history, named.make(), budget, lines=lines)
    if form in _JEPSEN and named is not None:
        rows = list(_JEPSEN[form](path))
        if model not in KAFKA_OBJECTS or not has_kafka_calls(rows):
            return _judge_operations(path, form, *read_jepsen_calls(path, rows, named), budget)
    kafka = import_history(path)
    judgement = judge_history(kafka) if model is None else judge_kafka_object(kafka, model, budget)
    return FileJudgement(form, judgement, history=kafka)


def import_history(path: Path) -> History:
    """Read the Kafka history of a file into memory. Raises as `judge_file` does."""
    form = recognise(path)
    if form in _JEPSEN:
        return import_jepsen(path, _JEPSEN[form](path))
    if form is Form.NDJSON:
        return read_ndjson(path)
    raise NotARunError(f"{path}: {form.value}, which is no Kafka history and has no tables")


def _judge_log(path: Path, form: Form, named: NamedModel | None, budget: Budget | None) -> FileJudgement:
    read, own = _LOGS[form]
    events = read(path)
    if named is not None:
        try:
            events = as_calls_of(events, named)
        except ValueError as error:
            raise NotARunError(f"{path}: {form.value}, but the model is of another object: {error}") from None
    return _judge_operations(path, form, events, (named or MODELS[own]).make(), budget)


def _judge_operations(
    path: Path,
    form: Form,
    history: Sequence[Any],
    model: Model,
    budget: Budget | None,
    *,
    lines: OwnLines | None = None,
) -> FileJudgement:
    calls: Sequence[Operation] | Sequence[Event] = history
    try:
        judgement, verification, explanation = judge_operations(calls, model, budget)
    except HistoryError as error:
        raise type(error)(f"{path}{_line_of(str(error), lines or {})}: {error}") from error
    text = explanation.text() if explanation is not None else ""
    return FileJudgement(form, judgement, text, verification=verification)


def _line_of(error: str, lines: OwnLines) -> str:
    """Return the line that an error is about, as text for the message; empty if it is unknown.

    The error begins with the op_id of an operation, and the result is the last line of that operation. If the error is
    that two operations of a process overlap, it begins with the later one, and the result is the line that invokes it.
    """
    for op_id, own in lines.items():
        if error.startswith((f"operation {op_id!r}: ", f"operation {op_id!r} ")):
            return f", line {own[0] if ' is invoked while ' in error else own[-1]}"
    return ""
