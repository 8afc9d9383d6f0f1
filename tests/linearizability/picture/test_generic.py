"""The picture of a violation that the generic checker found."""

import random

import pytest

from linearizability.judgement import Verdict
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.key_value import key_value
from linearizability.operation import Operation, Outcome
from linearizability.picture.drawing import Mark
from linearizability.picture.generic import draw_verification
from linearizability.verify import check
from tests.linearizability.search.histories import PLANS, as_events, random_history

HISTORY = [
    Operation(op_id=1, process="a", input=("write", 1), output=None, invoke_ns=0, complete_ns=10),
    Operation(op_id=2, process="b", input=("write", 2), output=None, invoke_ns=20, complete_ns=30),
    Operation(op_id=3, process="c", input=("cas", 2, 3), invoke_ns=35, outcome=Outcome.INFO),
    Operation(op_id=4, process="a", input=("read",), output=1, invoke_ns=40, complete_ns=50),
    Operation(op_id=5, process="b", input=("read",), output=3, invoke_ns=60, complete_ns=70),
    Operation(op_id=6, process="d", input=("write", 9), invoke_ns=21, complete_ns=22, outcome=Outcome.FAIL),
]


def long_history(size, bad):
    """Return alternating writes and reads. The read with the op_id `bad` returns a value that was never written."""
    history = []
    for op_id in range(size):
        write = op_id % 2 == 0
        given = ("write", op_id) if write else ("read",)
        output = None if write else 77_777_777 if op_id == bad else op_id - 1
        times = {"invoke_ns": op_id * 10, "complete_ns": op_id * 10 + 5}
        history.append(Operation(op_id=op_id, process=op_id % 3, input=given, output=output, **times))
    return history


def bars_by_name(picture):
    return {bar.name: bar for bar in picture.bars}


def test_picture_shows_lanes_bars_and_the_first_bad_operation():
    picture = draw_verification(check(HISTORY, compare_and_set()))
    assert [(lane.name, [bar.name for bar in lane.bars]) for lane in picture.lanes] == [
        ("process a", ["1", "4"]),
        ("process b", ["2", "5"]),
        ("process c", ["3"]),
        ("process d", ["6"]),
    ]
    bars = bars_by_name(picture)
    assert picture.first_bad == bars["4"]
    assert {name for name, bar in bars.items() if bar.mark is Mark.EVIDENCE} == {"2"}
    assert bars["3"].end_ns is None
    assert bars["6"].outcome is Outcome.FAIL
    assert bars["3"].label == "cas(2, 3) -> ?"
    assert picture.bad_ns == 50
    assert not picture.notes


def test_orders_show_the_state_before_and_after_each_step():
    picture = draw_verification(check(HISTORY, compare_and_set()))
    names = [bar.name for bar in picture.bars]
    longest = picture.orders[0]
    assert [(names[step.bar], step.place, step.before, step.after) for step in longest.steps] == [
        ("1", 1, "None", "1"),
        ("2", 2, "1", "2"),
        ("3", 3, "2", "3"),
    ]
    assert (longest.state, longest.reason, longest.length) == ("3", "the register holds another value", 3)


def test_a_long_history_is_cut_to_a_window_with_a_note():
    picture = draw_verification(check(long_history(3_000, bad=2_501), compare_and_set()), bars_max=50, steps=20_000)
    assert 40 < len(picture.bars) <= 50
    assert picture.first_bad.name == "2501"
    assert picture.notes[0].startswith(f"{3_000 - len(picture.bars):,} operations of 3,000 left out")
    assert picture.orders[0].length == 2_501
    assert [step.place for step in picture.orders[0].steps] == [int(b.name) + 1 for b in picture.bars][
        : len(picture.orders[0].steps)
    ]
    assert picture.orders[0].steps[-1].after == "2500"


@pytest.mark.parametrize("plan", PLANS)
def test_the_end_of_an_order_has_the_same_notes_as_the_whole(plan, monkeypatch):
    """A picture of only the last steps of a long order has the states, reasons and places of the whole order."""
    rng = random.Random(f"late {plan}")
    compared = 0
    while compared < 12:
        history = random_history(plan, rng, rng.randrange(4, 10))
        verification = check(history, PLANS[plan][0]())
        if verification.verdict is not Verdict.VIOLATION:
            continue
        compared += 1
        whole = draw_verification(verification).orders
        with monkeypatch.context() as patch:
            patch.setattr("linearizability.explain.EVENTS_EXPLAINED_MAX", rng.randrange(1, 6))
            end = draw_verification(verification).orders
        assert {(order.state, order.reason) for order in end} == {(order.state, order.reason) for order in whole}
        for order in end:
            assert [step.place for step in order.steps] == list(
                range(order.length - len(order.steps) + 1, order.length + 1)
            )
            for before, after in zip(order.steps, order.steps[1:], strict=False):
                assert before.after == after.before
            if order.steps:
                assert order.steps[-1].after == order.state


def test_only_the_subhistory_in_violation_is_drawn():
    history = [
        Operation(op_id=1, input=("put", "k", "a"), output=None, invoke_ns=0, complete_ns=1),
        Operation(op_id=2, input=("put", "l", "b"), output=None, invoke_ns=0, complete_ns=1),
        Operation(op_id=3, input=("get", "l"), output="a", invoke_ns=5, complete_ns=6),
    ]
    picture = draw_verification(check(history, key_value()))
    assert [bar.name for bar in picture.bars] == ["2", "3"]
    assert [lane.name for lane in picture.lanes] == ["no process"]


def test_a_valid_history_has_no_picture():
    with pytest.raises(ValueError, match="no violation"):
        draw_verification(check(HISTORY[:2], compare_and_set()))


@pytest.mark.parametrize("plan", PLANS)
def test_any_violation_of_any_model_has_a_picture_with_valid_orders(plan):
    """In each order, a step begins in the state after the previous step, and the order respects real time."""
    rng = random.Random(plan)
    drawn = 0
    while drawn < 15:
        history = random_history(plan, rng, rng.randrange(3, 9))
        given = as_events(history) if rng.random() < 0.3 else history
        verification = check(given, PLANS[plan][0]())
        if verification.verdict is not Verdict.VIOLATION:
            continue
        drawn += 1
        picture = draw_verification(verification)
        bars = picture.bars
        assert [bar.number for bar in bars] == list(range(len(bars)))
        assert picture.first_bad.mark is Mark.BAD
        for order in picture.orders:
            placed = [bars[step.bar] for step in order.steps]
            assert [step.place for step in order.steps] == list(range(1, order.length + 1))
            assert picture.first_bad not in placed
            for before, after in zip(order.steps, order.steps[1:], strict=False):
                assert before.after == after.before
            for place, bar in enumerate(placed):
                later = placed[place + 1 :]
                returned_before = [
                    other for other in later if other.outcome is Outcome.OK and other.end_ns < bar.begin_ns
                ]
                assert not returned_before
