"""What is no history is refused with the operation named; a model that raises is named with state and operation."""

import pytest

from linearizability.history.errors import HistoryError
from linearizability.judgement import Verdict
from linearizability.model import Model, ModelError, Refused
from linearizability.models.append_log import append_log
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.register import register
from linearizability.operation import Event, EventKind, Operation, Outcome
from linearizability.search.contest import EngineName
from linearizability.verify import check

READ = ("read",)


def op(op_id, begin, end, *, process=None, given=READ, output=0, outcome=Outcome.OK):
    return Operation(
        op_id=op_id, input=given, output=output, invoke_ns=begin, complete_ns=end, outcome=outcome, process=process
    )


def event(kind, op_id, value=READ, **more):
    return Event(kind=EventKind(kind), op_id=op_id, value=value, **more)


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([op("a", 5, 4)], r"operation 'a': it completes at 4, before it was invoked at 5"),
        ([op("a", 5, None)], r"operation 'a': it is ok and has no completion"),
        ([op("a", 0.5, 4)], r"operation 'a': its times 0.5 and 4 must be whole nanoseconds"),
        ([op("a", 0, 1), op("a", 2, 3)], r"operation 'a' is there twice"),
        ([op("a", 0, 5, process=1), op("b", 4, 6, process=1)], r"'b' of process 1 is invoked while its operation 'a'"),
        (
            [op("a", 0, 5, process=1, outcome=Outcome.INFO), op("b", 4, 6, process=1)],
            r"'b' of process 1 is invoked while its operation 'a'",
        ),
        ([op("a", 0, 1), event("invoke", "b")], r"row 1: Event.* is no Operation"),
        ([event("invoke", "a"), op("b", 0, 1)], r"line 1: Operation.* is no Event"),
        ([event("ok", "a", 0)], r"operation 'a' completes and was never invoked"),
        ([event("invoke", "a"), event("invoke", "a")], r"operation 'a' is invoked twice"),
        ([event("invoke", "a"), event("ok", "a", 0), event("fail", "a")], r"operation 'a' completes twice"),
        ([event("invoke", "a"), event("info", "a"), event("ok", "a", 0)], r"operation 'a' completes twice"),
        (
            [event("invoke", "a", time_ns=5), event("ok", "a", 0, time_ns=4)],
            r"operation 'a': its ok at 4 goes back in time, behind 5",
        ),
        (
            [event("invoke", "a", process=1), event("invoke", "b", process=1), event("ok", "a", 0, process=1)],
            r"'b' of process 1 is invoked while its operation 'a'",
        ),
    ],
)
def test_no_history(history, message):
    with pytest.raises(HistoryError, match=message):
        check(history, register(0))


def test_what_looks_odd_and_is_allowed():
    never_returned = op("a", 0, None, process=1, outcome=Outcome.INFO)
    assert check([never_returned, op("b", 4, 6, process=1)], register(0)).verdict is Verdict.OK
    touching = [op("a", 0, 5, process=1), op("b", 5, 6, process=1), op("c", 6, 6, process=1)]
    assert check(touching, register(0)).verdict is Verdict.OK
    produces = [op(number, 0, 9, process=1, given=("append", 0, ("x",)), output=number) for number in range(3)]
    assert check(produces, append_log()).verdict is Verdict.OK
    assert check([], register(0)).verdict is Verdict.OK
    far = 2**62
    assert check([op("a", far, far + 1), op("b", far + 2, far + 3, output=1)], register(0)).verdict is Verdict.VIOLATION
    unhashable = [op(1, 0, 1, given=["write", [1]], output=None)]
    with pytest.raises(ModelError, match=r"unhashable type: 'list'"):
        check(unhashable, register(0))


def test_values_that_cannot_be_hashed_are_judged():
    model = Model(
        name="list",
        init=tuple,
        step=lambda state, given, output: state + tuple(given["add"]) if output["sum"] == sum(state) else Refused(),
    )
    history = [op(1, 0, 1, given={"add": [1]}, output={"sum": 0}), op(2, 2, 3, given={"add": [2]}, output={"sum": 1})]
    assert check(history, model).verdict is Verdict.OK
    history[1] = op(2, 2, 3, given={"add": [2]}, output={"sum": 5})
    assert check(history, model).verdict is Verdict.VIOLATION


ENGINES = [(EngineName.FRONTIER,), (EngineName.DEPTH_FIRST,)]


@pytest.mark.parametrize("engines", ENGINES)
@pytest.mark.parametrize("pure", [True, False])
def test_a_model_that_raises(engines, pure):
    def step(state, given, output):
        if given == "bad":
            raise ZeroDivisionError("by nothing\nat all")
        return given

    model = Model(name="fragile", init=lambda: "new", step=step, pure=lambda given, _: pure and given == "bad")
    history = [op(1, 0, 1, given="good"), op(2, 2, 3, given="bad")]
    expected = r"^model fragile, state 'good', operation 'bad' -> 0: ZeroDivisionError: by nothing at all$"
    with pytest.raises(ModelError, match=expected):
        check(history, model, engines=engines)


@pytest.mark.parametrize("engines", ENGINES)
def test_a_pure_operation_that_is_none(engines):
    model = Model(name="liar", init=lambda: 0, step=lambda state, given, output: state + 1, pure=lambda *_: True)
    with pytest.raises(
        ModelError, match=r"model liar, state 0, operation .*: said to be pure, and changed the state to 1"
    ):
        check([op(1, 0, 1)], model, engines=engines)


@pytest.mark.parametrize("broken", ["init", "pure", "partition"])
def test_other_functions_that_raise(broken):
    def fails(*_):
        raise KeyError(broken)

    functions = {"init": lambda: 0, "step": lambda state, given, output: state, broken: fails}
    with pytest.raises(ModelError, match=r"model fragile.*KeyError"):
        check([op(1, 0, 1)], Model(name="fragile", **functions))


def test_an_input_that_a_model_does_not_know():
    with pytest.raises(ModelError, match=r"ValueError: no such operation: 'swap'; there are read, write, cas"):
        check([op(1, 0, 1, given=("swap", 1))], compare_and_set(0))
