"""Logs of an arbitrary object, judged by a model that the caller names: verdicts, and errors in each format."""

import json
import random

import pytest

from linearizability.check_file import judge_file
from linearizability.history.errors import HistoryError, NotARunError
from linearizability.importers.calls import read_operations
from linearizability.importers.recognise import Form, recognise
from linearizability.judgement import Verdict
from linearizability.models.catalogue import MODELS, models_text
from linearizability.operation import UNKNOWN, EventKind, Outcome
from linearizability.verify import Budget, check
from tests.linearizability.importers.test_check_file import REGISTER, STORE
from tests.linearizability.search.histories import PLANS, as_events, random_history

WRITE = {"op_id": 1, "process": "a", "input": ["write", 3], "invoke_ns": 0, "complete_ns": 10}
READ = {"op_id": 2, "input": ["read"], "output": 3, "invoke_ns": 5, "complete_ns": 15, "outcome": "ok"}
CAS = """\
{:process 0, :type :invoke, :f :write, :value 1, :time 10}
{:process 0, :type :ok, :f :write, :value 1, :time 20}
{:process :nemesis, :type :info, :f :start, :value nil, :time 25}
{:process 1, :type :invoke, :f :cas, :value [1 2], :time 30}
{:process 1, :type :ok, :f :cas, :value [1 2], :time 40}
{:process 0, :type :invoke, :f :cas, :value [1 5], :time 42}
{:process 0, :type :fail, :f :cas, :value [1 5], :time 43}
{:process 2, :type :invoke, :f :write, :value 9, :time 44}
{:process 0, :type :invoke, :f :read, :value nil, :time 50}
{:process 0, :type :ok, :f :read, :value 2, :time 60}
"""


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def nested(depth):
    return [nested(depth - 1)] if depth > 1 else []


@pytest.fixture
def verdict_of(tmp_path):
    def judge(text, model, **budget):
        path = tmp_path / "log"
        path.write_text(text)
        return judge_file(path, Budget(**budget), model).judgement.verdict

    return judge


def plain(value):
    """Return a value as it is written to a file: tuples and sets become lists."""
    if isinstance(value, tuple | frozenset):
        return [plain(one) for one in value]
    return value


def as_rows(operations):
    for op in operations:
        row = {"op_id": op.op_id, "input": plain(op.input), "invoke_ns": op.invoke_ns, "complete_ns": op.complete_ns}
        yield row | {"outcome": str(op.outcome), "output": None if op.output is UNKNOWN else plain(op.output)}


def as_event_rows(operations):
    for event in as_events(operations):
        value = plain(event.value) if event.kind in (EventKind.INVOKE, EventKind.OK) else None
        yield {"kind": str(event.kind), "op_id": event.op_id, "value": value}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_returns_the_same_verdict_for_a_file_and_for_operations(verdict_of, name):
    seen = set()
    for seed in range(25):
        rng = random.Random(f"file {name} {seed}")
        history = random_history(name, rng, rng.randrange(3, 9))
        if all(op.outcome is not Outcome.OK for op in history):
            continue
        # Registers of PLANS have the initial value 0, those of a file null.
        model = MODELS[name].make() if name in ("register", "compare-and-set") else PLANS[name][0]()
        expected = check(history, model).verdict
        assert verdict_of(lines(*as_rows(history)), name) is expected, seed
        assert verdict_of(lines(*as_event_rows(history)), name) is expected, seed
        seen.add(expected)
    assert seen == {Verdict.OK, Verdict.VIOLATION}


def test_jepsen_log_of_a_compare_and_set_register(verdict_of):
    assert verdict_of(CAS, "compare-and-set") is Verdict.OK
    assert verdict_of(CAS.replace(":value 2, :time 60", ":value 9, :time 60"), "compare-and-set") is Verdict.OK
    assert verdict_of(CAS.replace(":value 2, :time 60", ":value 1, :time 60"), "compare-and-set") is Verdict.VIOLATION
    assert verdict_of(CAS.replace(":type :fail, :f :cas", ":type :info, :f :cas"), "compare-and-set") is Verdict.OK


def test_jepsen_log_of_a_set(verdict_of):
    rows = [
        {"process": 0, "type": "invoke", "f": "add", "value": 7},
        {"process": 0, "type": "ok", "f": "add", "value": 7},
        {"process": 1, "type": "invoke", "f": "read", "value": None},
        {"process": 1, "type": "ok", "f": "read", "value": [7]},
    ]
    assert verdict_of(lines(*rows), "set") is Verdict.OK
    rows[-1]["value"] = []
    assert verdict_of(lines(*rows), "set") is Verdict.VIOLATION


def test_log_of_porcupine_with_another_model(verdict_of):
    without_cas = "".join(line for line in REGISTER.splitlines(True) if ":cas" not in line)
    assert verdict_of(without_cas, "register") is Verdict.VIOLATION
    assert verdict_of(without_cas.replace(":read\t4", ":read\t3"), "register") is Verdict.OK
    assert verdict_of(STORE, "key-value") is Verdict.OK
    with pytest.raises(
        NotARunError, match=r"against etcd.*, but the model is of another object: no such operation: 'cas'; known are"
    ):
        verdict_of(REGISTER, "register")


def test_exhausted_budget_is_unknown(verdict_of):
    assert verdict_of(lines(WRITE, READ), "register", time_s=0) is Verdict.UNKNOWN
    assert verdict_of(lines(WRITE, READ), "register", steps=0) is Verdict.UNKNOWN


@pytest.mark.parametrize("outcome", ["fail", "info"])
def test_history_without_completed_operations_is_unknown(verdict_of, outcome):
    assert verdict_of(lines({**READ, "outcome": outcome}), "register") is Verdict.UNKNOWN


def test_operations_are_recognised_and_need_a_model(tmp_path):
    path = tmp_path / "log"
    for row in (WRITE, READ, {"kind": "invoke", "op_id": 1, "value": ["read"]}):
        path.write_text(lines(row))
        assert recognise(path) is Form.OPERATIONS
    with pytest.raises(NotARunError, match=r"name the model to check it against \(--model\): register, "):
        judge_file(path)


def test_omitted_members_have_defaults(tmp_path):
    path = tmp_path / "log"
    path.write_text("\n" + lines({"op_id": "x", "input": ["read"], "invoke_ns": -5, "outcome": "info"}))
    (operation,), lines_of_operations = read_operations(path, MODELS["register"])
    assert (operation.process, operation.complete_ns, operation.output) == (None, None, UNKNOWN)
    assert lines_of_operations == {"x": [2]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("[1]", "line 2: not an operation: [1]"),
        ('{"op_id": 1,', "line 2: not JSON: "),
        ({**READ, "output": float("nan")}, "line 2: NaN is no value, since it does not equal itself"),
        ({**READ, "op_id": None}, "line 2: op_id is missing"),
        ({**READ, "op_id": [1]}, "line 2: op_id is [1], neither a whole number nor a string"),
        ({**READ, "op_id": True}, "line 2: op_id is true, neither"),
        ({**READ, "op_id": 1}, "line 2: operation 1 occurs twice; ids must be unique"),
        (
            {**READ, "process": "a"},
            "line 2: operation 2 of process 'a' is invoked while its operation 1 is still running",
        ),
        ({**READ, "process": 1.5}, "line 2: process is 1.5, neither"),
        ({**READ, "complete_ns": 4}, "line 2: operation 2: it completes at 4, before it was invoked at 5"),
        ({**READ, "complete_ns": None}, "line 2: operation 2: it is ok but has no completion"),
        ({**READ, "invoke_ns": None}, "line 2: invoke_ns is missing"),
        ({**READ, "invoke_ns": 0.5}, "line 2: invoke_ns is 0.5, not whole nanoseconds"),
        ({**READ, "outcome": "done"}, "line 2: outcome is done, not one of ok, fail, info"),
        ({**READ, "input": "read"}, "line 2: an input is an array that begins with the operation's name"),
        ({**READ, "input": ["swap", 1]}, "line 2: no such operation: 'swap'; known are read() -> value, write(value)"),
        ({**READ, "input": ["write"]}, "line 2: write takes 1 arguments, not 0: write(value)"),
        ({**READ, "output": {"a": 1}}, 'line 2: {"a": 1} is an object; a model takes arrays and plain values'),
        ({**READ, "op_id": "\ud800"}, r'line 2: "\ud800" is not a valid string: it has half of a surrogate pair'),
        ({**READ, "output": ["x\udfff"]}, r'line 2: "x\udfff" is not a valid string'),
        ({**READ, "output": nested(51)}, "line 2: arrays are nested more than 50 deep"),
        ({**READ, "offset": 1}, "line 2: 'offset' is not one of complete_ns, input, "),
        ({"kind": "invoke", "op_id": 2, "value": ["read"]}, "line 2: 'kind' is not one of complete_ns, input, "),
    ],
)
def test_invalid_line_is_named(tmp_path, row, message):
    path = tmp_path / "log"
    path.write_text(lines(WRITE) + (row if isinstance(row, str) else json.dumps(row)))
    with pytest.raises(HistoryError) as error:
        judge_file(path, model="register")
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"kind": "ok", "op_id": 1}], "line 1: operation 1 completes but was never invoked"),
        ([{"kind": "invoke", "op_id": 1, "value": ["read"]}] * 2, "line 2: operation 1 is invoked twice"),
        (
            [{"kind": "invoke", "op_id": 1, "value": ["read"], "time_ns": 5}, {"kind": "ok", "op_id": 1, "time_ns": 4}],
            "line 2: operation 1: its ok at 4 is earlier than the preceding event at 5",
        ),
        ([{"kind": "begin", "op_id": 1}], "line 1: kind is begin, not one of invoke, ok, fail, info"),
    ],
)
def test_invalid_event_is_named(tmp_path, rows, message):
    path = tmp_path / "log"
    path.write_text(lines(*rows))
    with pytest.raises(HistoryError) as error:
        judge_file(path, model="register")
    assert message in str(error.value)


def test_values_rejected_by_the_model_are_errors_of_the_file(tmp_path):
    path = tmp_path / "log"
    put, append = {**WRITE, "input": ["put", "k", 3]}, {**READ, "input": ["append", "k", "x"]}
    path.write_text(lines(put, append, {**READ, "op_id": 3, "input": ["get", "k"], "output": "x"}))
    with pytest.raises(HistoryError, match=r"log: model key-value, state 3, operation append\('k', 'x'\)"):
        judge_file(path, model="key-value")
    path.write_text(lines({**READ, "output": 5}))
    with pytest.raises(HistoryError, match=r"log, line 1: read returns values, not 5"):
        judge_file(path, model="set")


def test_models_are_listed_with_their_operations():
    text = models_text()
    assert all(f"{name}: " in text for name in MODELS)
    assert "    cas(expected, new) -> true or false" in text


@pytest.mark.parametrize(
    ("model", "given", "output", "message"),
    [
        ("append-log", ["read", 0, -2], [[1], 2], "read: offset is -2, not a whole number from 0"),
        ("append-log", ["read", 0, 0], [[1], -1], "read returns [values, high watermark], not ((1,), -1)"),
        ("append-log", ["append", 0, [1]], None, "append returns base offset, not None"),
        ("append-log", ["append", 0, 1], 0, "append: values is 1, not an array"),
        ("committed-offset", ["commit", "k", -1], None, "commit: offset is -1, not a whole number from 0"),
        ("committed-offset", ["commit", "k", True], None, "commit: offset is true, not a whole number from 0"),
        ("committed-offset", ["fetch", "k"], -1, "fetch returns offset or null, not -1"),
        ("compare-and-set", ["cas", 1, 2], None, "cas returns true or false, not None"),
        ("compare-and-set", ["cas", 1, 2], "no", "cas returns true or false, not 'no'"),
        ("compare-and-set", ["cas", 1, 2], 0, "cas returns true or false, not 0"),
        ("fenced-producer", ["produce", "t", 1, 0], "false", "produce returns true or false, not 'false'"),
        ("fenced-producer", ["init", "t"], "ab", "init returns [producer id, epoch], not 'ab'"),
        ("set", ["contains", 1], None, "contains returns true or false, not None"),
        ("set", ["read"], "a", "read returns values, not 'a'"),
        ("group-membership", ["rebalance", "g"], [1, ["ab"]], "rebalance returns [generation, [[partition, "),
        (
            "queue",
            ["enqueue", "(empty)"],
            None,
            "enqueue: element is '(empty)', which is the result for an empty queue",
        ),
        ("queue", ["enqueue", None], None, "enqueue: element is None, which is the result for an empty queue"),
        ("key-value", ["get", "k"], None, 'get returns value, "" for an absent key, not None'),
        ("key-value", ["append", "k", 1], None, "append: text is 1, not a string"),
    ],
)
def test_invalid_arguments_and_results_are_rejected(tmp_path, model, given, output, message):
    path = tmp_path / "log"
    path.write_text(lines({**READ, "input": given, "output": output}))
    with pytest.raises(HistoryError) as error:
        judge_file(path, model=model)
    assert f"{path}, line 1: {message}" in str(error.value)


def in_turn(*calls):
    """Return the lines of successive calls: (input, output)."""
    rows = []
    for op_id, (given, output) in enumerate(calls):
        times = {"invoke_ns": 10 * op_id, "complete_ns": 10 * op_id + 5}
        rows.append({"op_id": op_id, "input": given, "output": output, **times})
    return lines(*rows)


def test_null_is_a_value_and_true_is_distinct_from_1(verdict_of):
    taken = ["acquire", "r", None], 0
    assert verdict_of(in_turn(taken, (["acquire", "r", "b"], 1)), "leadership-lease") is Verdict.VIOLATION
    assert verdict_of(in_turn(taken, (["acquire", "r", "b"], None)), "leadership-lease") is Verdict.OK
    assert verdict_of(in_turn((["write", 1], None), (["read"], True)), "register") is Verdict.VIOLATION
    assert verdict_of(in_turn((["write", [True]], None), (["read"], [True])), "register") is Verdict.OK
    assert verdict_of(in_turn((["dequeue"], None), (["enqueue", 1], None), (["dequeue"], 1)), "queue") is Verdict.OK
    assert verdict_of(in_turn((["enqueue", 1], None), (["dequeue"], None)), "queue") is Verdict.VIOLATION


def test_long_values_are_abbreviated(tmp_path):
    path = tmp_path / "log"
    path.write_text(in_turn((["write", "x" * 9_000], None), (["read"], "y" * 9_000)))
    found = judge_file(path, model="register")
    assert found.judgement.verdict is Verdict.VIOLATION
    assert len(found.explanation) + len(found.judgement.anomalies[0].evidence[0].text) < 3_000


def jepsen_rows(*calls):
    """Yield the rows of successive calls: (f, value of the invocation, value of the completion)."""
    for process, (f, invoked, completed) in enumerate(calls):
        yield {"process": process, "type": "invoke", "f": f, "value": invoked}
        yield {"process": process, "type": "ok", "f": f, "value": completed}


def test_independent_keys_are_judged_separately(verdict_of):
    writes = ("write", [0, 3], [0, 3]), ("write", [1, 4], [1, 4])
    assert verdict_of(lines(*jepsen_rows(*writes, ("read", [0, None], [0, 3]))), "register") is Verdict.OK
    assert verdict_of(lines(*jepsen_rows(*writes, ("read", [0, None], [0, 4]))), "register") is Verdict.VIOLATION
    cas = *writes, ("cas", [0, [3, 5]], [0, [3, 5]])
    assert verdict_of(lines(*jepsen_rows(*cas, ("read", [0, None], [0, 5]))), "compare-and-set") is Verdict.OK
    assert verdict_of(lines(*jepsen_rows(*cas, ("read", [1, None], [1, 5]))), "compare-and-set") is Verdict.VIOLATION
    pairs = ("write", [0, 3], [0, 3]), ("read", None, [0, 3])
    assert verdict_of(lines(*jepsen_rows(*pairs)), "register") is Verdict.OK


@pytest.mark.parametrize(
    ("calls", "model", "message"),
    [
        ([("read", [0, None], [1, 3])], "register", "line 1: read is invoked for key 0, but completes for key 1"),
        ([("read", [0, None], [0, 3]), ("write", 3, 3)], "register", "line 3: write has the value 3, no pair of a key"),
        ([("read", [0, None], 3)], "register", "line 1: read has the value 3, no pair of a key and a value"),
        (
            [("write", [0, 1], [0, 1]), ("cas", [0, [1, 2]], [0, [1, 2]])],
            "compare-and-set",
            "line 3: cas(expected, new) -> true or false with (0, (1, 2)) may be of one object or of independent keys",
        ),
        ([("get", [0, None], [0, 3])], "key-value", "is invoked with (0, None), as in a log of independent keys"),
        ([("cas", [0, 1], None)], "compare-and-set", "line 1: cas returns true or false, not None"),
    ],
)
def test_inconsistent_keys_are_rejected(tmp_path, calls, model, message):
    path = tmp_path / "log"
    path.write_text(lines(*jepsen_rows(*calls)))
    with pytest.raises(HistoryError) as error:
        judge_file(path, model=model)
    assert message in str(error.value)
