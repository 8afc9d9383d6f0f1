"""Bad input of the generic checker: invalid histories and failing models are rejected, with the operation named."""

import math

import pytest

from linearizability.history.errors import HistoryError
from linearizability.judgement import Verdict
from linearizability.model import Model, ModelError, Rejected
from linearizability.models.append_log import append_log
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.register import register
from linearizability.operation import Event, EventKind, Operation, Outcome
from linearizability.search.competition import EngineName
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
        ([op("a", 5, None)], r"operation 'a': it is ok but has no completion"),
        ([op("a", 0.5, 4)], r"operation 'a': its times 0.5 and 4 must be whole nanoseconds"),
        ([op("a", 0, 1), op("a", 2, 3)], r"operation 'a' occurs twice"),
        ([op("a", 0, 5, process=1), op("b", 4, 6, process=1)], r"'b' of process 1 is invoked while its operation 'a'"),
        (
            [op("a", 0, 5, process=1, outcome=Outcome.INFO), op("b", 4, 6, process=1)],
            r"'b' of process 1 is invoked while its operation 'a'",
        ),
        ([op("a", 0, 1), event("invoke", "b")], r"row 1: Event.* is not an Operation"),
        ([event("invoke", "a"), op("b", 0, 1)], r"row 1: Operation.* is not an Event"),
        ([event("ok", "a", 0)], r"operation 'a' completes but was never invoked"),
        ([event("invoke", "a"), event("invoke", "a")], r"operation 'a' is invoked twice"),
        ([event("invoke", "a"), event("ok", "a", 0), event("fail", "a")], r"operation 'a' completes twice"),
        ([event("invoke", "a"), event("info", "a"), event("ok", "a", 0)], r"operation 'a' completes twice"),
        (
            [event("invoke", "a", time_ns=5), event("ok", "a", 0, time_ns=4)],
            r"operation 'a': its ok at 4 is earlier than the preceding event at 5",
        ),
        (
            [event("invoke", "a", process=1), event("invoke", "b", process=1), event("ok", "a", 0, process=1)],
            r"'b' of process 1 is invoked while its operation 'a'",
        ),
        (
            [event("invoke", "a", process=1), event("invoke", "b", process=1), event("ok", "a", 0)],
            r"'b' of process 1 is invoked while its operation 'a'",
        ),
        (
            [event("invoke", "a", process=1), event("ok", "a", 0, process=2)],
            r"operation 'a' is invoked by process 1 and completed by 2",
        ),
        (
            [event("invoke", "a", process=1, time_ns=5), event("ok", "a", 0, process=1, time_ns=math.nan)],
            r"operation 'a': its time nan must be whole nanoseconds",
        ),
        ([event("invoke", "a", time_ns="x")], r"operation 'a': its time 'x' must be whole nanoseconds"),
        (
            [op("a", 0, 1), op("b", 2, 3, outcome="bogus")],
            r"operation 'b': its outcome is 'bogus', not one of ok, fail",
        ),
        ([Event(kind="done", op_id="a")], r"operation 'a': its kind is 'done', not one of invoke, ok, fail, info"),
        ([op("a", 0, 1), op(["b"], 2, 3)], r"row 1: its op_id \['b'\] is not hashable"),
        ([event("invoke", ["a"])], r"row 0: its op_id \['a'\] is not hashable"),
        ([op("a", 0, 1, process={})], r"row 0: its process {} is not hashable"),
        (5, r"not a history: 5; expected a list"),
    ],
)
def test_invalid_history_is_rejected(history, message):
    with pytest.raises(HistoryError, match=message):
        check(history, register(0))


def test_unusual_but_valid_histories_are_accepted():
    never_returned = op("a", 0, None, process=1, outcome=Outcome.INFO)
    assert check([never_returned, op("b", 4, 6, process=1)], register(0)).verdict is Verdict.OK
    successive = [op("a", 0, 5, process=1), op("b", 5, 6, process=1), op("c", 6, 6, process=1)]
    assert check(successive, register(0)).verdict is Verdict.OK
    produces = [op(number, 0, 9, process=1, given=("append", 0, ("x",)), output=number) for number in range(3)]
    assert check(produces, append_log()).verdict is Verdict.OK
    assert check([], register(0)).verdict is Verdict.OK
    late = 2**62
    reads = [op("a", late, late + 1), op("b", late + 2, late + 3, output=1)]
    assert check(reads, register(0)).verdict is Verdict.VIOLATION
    unhashable = [op(1, 0, 1, given=["write", [1]], output=None)]
    with pytest.raises(ModelError, match=r"unhashable type: 'list'"):
        check(unhashable, register(0))


def test_values_without_a_hash_are_judged():
    model = Model(
        name="list",
        init=tuple,
        step=lambda state, given, output: state + tuple(given["add"]) if output["sum"] == sum(state) else Rejected(),
    )
    history = [op(1, 0, 1, given={"add": [1]}, output={"sum": 0}), op(2, 2, 3, given={"add": [2]}, output={"sum": 1})]
    assert check(history, model).verdict is Verdict.OK
    history[1] = op(2, 2, 3, given={"add": [2]}, output={"sum": 5})
    assert check(history, model).verdict is Verdict.VIOLATION


def test_text_equal_to_an_outcome_is_accepted():
    """A string that equals a member of `Outcome` or `EventKind` is accepted instead of the member."""
    write, read = op(1, 0, 1, given=("write", 1), output=None), op(2, 2, 3, output=0)
    assert check([write, read], register(0)).verdict is Verdict.VIOLATION
    succeeded = [op(1, 0, 1, given=("write", 1), output=None, outcome="ok"), op(2, 2, 3, output=0, outcome="ok")]
    verification = check(succeeded, register(0))
    assert verification.verdict is Verdict.VIOLATION
    assert verification.outcomes[0].blocked.outcome is Outcome.OK
    failed = [op(1, 0, 1, given=("write", 1), output=None, outcome="fail"), op(2, 2, 3, output=1)]
    assert check(failed, register(0)).verdict is Verdict.VIOLATION
    events = [Event(kind="invoke", op_id=1, value=("write", 1)), Event(kind="ok", op_id=1)]
    events += [Event(kind="invoke", op_id=2, value=READ), Event(kind="ok", op_id=2, value=0)]
    assert check(events, register(0)).verdict is Verdict.VIOLATION
    assert check((event for event in events), register(0)).verdict is Verdict.VIOLATION


ENGINES = [(EngineName.FRONTIER,), (EngineName.DEPTH_FIRST,)]


@pytest.mark.parametrize("engines", ENGINES)
@pytest.mark.parametrize("pure", [True, False])
def test_error_of_step_names_the_model_the_state_and_the_operation(engines, pure):
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
def test_operation_wrongly_declared_pure_is_an_error(engines):
    model = Model(name="impure", init=lambda: 0, step=lambda state, given, output: state + 1, pure=lambda *_: True)
    with pytest.raises(
        ModelError, match=r"model impure, state 0, operation .*: declared pure, but changed the state to 1"
    ):
        check([op(1, 0, 1)], model, engines=engines)


REJECTED = Rejected("no")


@pytest.mark.parametrize("engines", ENGINES)
@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda state: Rejected, "step returned the class Rejected; return an instance"),
        (lambda state: (False, state), r"step returned \(False, the state before\); to reject return Rejected"),
    ],
)
def test_rejection_in_a_wrong_form_is_an_error(engines, pure, returned, message):
    step = lambda state, given, output: returned(state)  # noqa: E731
    model = Model(name="slip", init=lambda: "new", step=step, pure=lambda *_: pure)
    with pytest.raises(ModelError, match=rf"^model slip, state 'new', operation .*: {message}"):
        check([op(1, 0, 1), op(2, 2, 3)], model, engines=engines)


@pytest.mark.parametrize("engines", ENGINES)
@pytest.mark.parametrize(
    ("init", "returned", "message"),
    [
        (("new",), (REJECTED,), r"operation .*: step returned Rejected\(reason='no'\) as a state"),
        (("new",), "other", r"operation .*: TypeError: .* returns a tuple of states, not a string"),
        ((), (), "init: it returned no state"),
        ((REJECTED,), (), "init: it returned Rejected"),
    ],
)
def test_invalid_states_of_a_nondeterministic_model_are_errors(engines, init, returned, message):
    model = Model(name="slip", init=lambda: init, step=lambda *_: returned, nondeterministic=True)
    with pytest.raises(ModelError, match=rf"^model slip.*{message}"):
        check([op(1, 0, 1)], model, engines=engines)


def test_rejected_is_not_an_initial_state_and_has_no_subclass():
    with pytest.raises(ModelError, match="init: it returned Rejected"):
        check([op(1, 0, 1)], Model(name="slip", init=lambda: REJECTED, step=lambda *_: 0))
    with pytest.raises(TypeError, match="Mine: Rejected has no subclasses"):
        type("Mine", (Rejected,), {})


@pytest.mark.parametrize("engines", ENGINES)
def test_state_may_be_a_pair_that_begins_with_false(engines):
    """A model may have states of the form `(False, state)`. They are not rejections."""
    for first in ((), None):
        model = Model(name="list", init=lambda first=first: first, step=lambda state, given, output: (False, state))
        assert check([op(1, 0, 1), op(2, 2, 3)], model, engines=engines).verdict is Verdict.OK


class Mute(Exception):
    """Exception whose text cannot be formatted."""

    def __str__(self):
        raise ValueError("in str")


def test_model_with_failing_descriptions_keeps_its_verdict():
    def fails(*_):
        raise Mute

    descriptions = {"describe_operation": fails, "describe_state": fails}
    verification = check([op(1, 0, 1)], Model(name="mute", init=lambda: 7, step=lambda *_: REJECTED, **descriptions))
    assert verification.outcomes[0].reason.startswith("operation 1, ('read',), 0, cannot be placed")
    assert "in state 7, after 0 operations: no" in verification.explain().text()
    with pytest.raises(ModelError, match=r"^model mute, state 7, .*: Mute: its text cannot be formatted$"):
        check([op(1, 0, 1)], Model(name="mute", init=lambda: 7, step=fails, **descriptions))
    with pytest.raises(ModelError, match=r"^model mute: init: Mute: its text cannot be formatted$"):
        check([op(1, 0, 1)], Model(name="mute", init=fails, step=fails))


@pytest.mark.parametrize("history", [[op(1, 0, 1, process=1)], [event("invoke", 1, process=1)]])
def test_error_of_pipelined_names_the_model_and_the_input(history):
    model = Model(name="fragile", init=lambda: 0, step=lambda state, *_: state, pipelined=lambda given: given.none)
    with pytest.raises(ModelError, match=r"^model fragile: pipelined: input \('read',\): AttributeError: "):
        check(history, model)


@pytest.mark.parametrize("broken", ["init", "pure", "partition"])
def test_error_of_another_function_names_the_model(broken):
    def fails(*_):
        raise KeyError(broken)

    functions = {"init": lambda: 0, "step": lambda state, given, output: state, broken: fails}
    with pytest.raises(ModelError, match=r"model fragile.*KeyError"):
        check([op(1, 0, 1)], Model(name="fragile", **functions))


def test_input_unknown_to_the_model_is_an_error():
    with pytest.raises(ModelError, match=r"ValueError: no such operation: 'swap'; known are read, write, cas"):
        check([op(1, 0, 1, given=("swap", 1))], compare_and_set(0))
