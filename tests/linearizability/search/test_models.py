"""Models: each accepts a linearizable history, and rejects a similar one that is not linearizable."""

import pytest

from linearizability.judgement import Verdict
from linearizability.model import Model, ModelError
from linearizability.models.append_log import append_log
from linearizability.models.committed_offset import committed_offset
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.each_key import each_key
from linearizability.models.fenced_producer import fenced_producer
from linearizability.models.fifo_queue import EMPTY, fifo_queue
from linearizability.models.group_membership import group_membership
from linearizability.models.key_value import key_value
from linearizability.models.leadership_lease import leadership_lease
from linearizability.models.register import register
from linearizability.models.value_set import value_set
from linearizability.operation import UNKNOWN, Operation, Outcome
from linearizability.verify import check
from tests.linearizability.search.histories import coin

Row = tuple[tuple, object, int, int | None]


def history(rows: list[Row]) -> list[Operation]:
    """Return operations from (input, output, invoke_ns, complete_ns). Without complete_ns the outcome is unknown."""
    return [
        Operation(
            op_id=op_id,
            input=given,
            output=UNKNOWN if end is None else output,
            invoke_ns=begin,
            complete_ns=end,
            outcome=Outcome.INFO if end is None else Outcome.OK,
        )
        for op_id, (given, output, begin, end) in enumerate(rows)
    ]


OWNED_BY_A = (1, frozenset({(0, "a")}))
OWNED_BY_B = (2, frozenset({(0, "b")}))

PAIRS: dict[str, tuple[Model, list[Row], list[Row]]] = {
    "register: a read during a write may miss its value, a read after it may not": (
        register(0),
        [(("write", 1), None, 0, 5), (("read",), 0, 3, 4)],
        [(("write", 1), None, 0, 5), (("read",), 0, 6, 7)],
    ),
    "register: intervals are closed": (
        register(0),
        [(("write", 1), None, 0, 5), (("read",), 0, 5, 6)],
        [(("write", 1), None, 0, 4), (("read",), 0, 5, 6)],
    ),
    "compare-and-set: one of two concurrent operations succeeds": (
        compare_and_set(0),
        [(("cas", 0, 1), True, 0, 5), (("cas", 0, 2), False, 0, 5)],
        [(("cas", 0, 1), True, 0, 5), (("cas", 0, 2), True, 0, 5)],
    ),
    "compare-and-set: an operation of unknown outcome may take effect much later, but only once": (
        compare_and_set(0),
        [(("cas", 0, 1), None, 0, None), (("read",), 0, 5, 6), (("read",), 1, 7, 8)],
        [(("cas", 0, 1), None, 0, None), (("read",), 1, 5, 6), (("read",), 0, 7, 8)],
    ),
    "key-value: all reads see one order of appends": (
        key_value(),
        [(("append", "k", "a"), None, 0, 9), (("append", "k", "b"), None, 0, 9), (("get", "k"), "ba", 10, 11)],
        [
            (("append", "k", "a"), None, 0, 9),
            (("append", "k", "b"), None, 0, 9),
            (("get", "k"), "ba", 10, 11),
            (("get", "k"), "ab", 10, 11),
        ],
    ),
    "set: a removed element stays removed": (
        value_set(),
        [(("add", 1), None, 0, 1), (("remove", 1), None, 2, 3), (("contains", 1), False, 4, 5)],
        [(("add", 1), None, 0, 1), (("remove", 1), None, 2, 3), (("read",), frozenset({1}), 4, 5)],
    ),
    "queue: first in, first out": (
        fifo_queue(),
        [(("enqueue", 1), None, 0, 1), (("enqueue", 2), None, 2, 3), (("dequeue",), 1, 4, 5), (("dequeue",), 2, 6, 7)],
        [(("enqueue", 1), None, 0, 1), (("enqueue", 2), None, 2, 3), (("dequeue",), 2, 4, 5), (("dequeue",), 1, 6, 7)],
    ),
    "queue: a dequeue returns empty only if the queue is empty": (
        fifo_queue(),
        [(("enqueue", 1), None, 0, 3), (("dequeue",), EMPTY, 2, 4)],
        [(("enqueue", 1), None, 0, 1), (("dequeue",), EMPTY, 2, 4)],
    ),
    "append log: the watermark may lag, and never decreases": (
        append_log(),
        [(("append", 0, ("a",)), 0, 0, 1), (("read", 0, 0), ((), 0), 2, 3), (("read", 0, 0), (("a",), 1), 4, 5)],
        [(("append", 0, ("a",)), 0, 0, 1), (("read", 0, 0), (("a",), 1), 2, 3), (("read", 0, 0), ((), 0), 4, 5)],
    ),
    "append log: an acknowledged record keeps its offset": (
        append_log(),
        [(("append", 0, ("a",)), 1, 0, 9), (("append", 0, ("b",)), 0, 0, 9), (("read", 0, 0), (("b", "a"), 2), 10, 11)],
        [(("append", 0, ("a",)), 1, 0, 9), (("append", 0, ("b",)), 0, 0, 9), (("read", 0, 0), (("a", "b"), 2), 10, 11)],
    ),
    "append log: a linearizable watermark is the log end offset": (
        append_log(linearizable=True),
        [(("append", 0, ("a",)), 0, 0, 3), (("read", 0, 0), ((), 0), 2, 4)],
        [(("append", 0, ("a",)), 0, 0, 1), (("read", 0, 0), ((), 0), 2, 4)],
    ),
    "committed offset: the last commit is fetched": (
        committed_offset(),
        [(("commit", "g", 5), None, 0, 1), (("commit", "g", 3), None, 2, 3), (("fetch", "g"), 3, 4, 5)],
        [(("commit", "g", 5), None, 0, 1), (("commit", "g", 3), None, 2, 3), (("fetch", "g"), 5, 4, 5)],
    ),
    "fenced producer: produce with an old epoch is rejected": (
        fenced_producer(),
        [(("init", "t"), (7, 0), 0, 1), (("init", "t"), (7, 1), 2, 3), (("produce", "t", 7, 0), False, 4, 5)],
        [(("init", "t"), (7, 0), 0, 1), (("init", "t"), (7, 1), 2, 3), (("produce", "t", 7, 0), True, 4, 5)],
    ),
    "fenced producer: an init of unknown outcome may fence; if it does, later produces are fenced too": (
        fenced_producer(),
        [(("init", "t"), (7, 0), 0, 1), (("init", "t"), None, 2, None), (("produce", "t", 7, 0), False, 4, 5)],
        [
            (("init", "t"), (7, 0), 0, 1),
            (("init", "t"), None, 2, None),
            (("produce", "t", 7, 0), False, 4, 5),
            (("produce", "t", 7, 0), True, 6, 7),
        ],
    ),
    "group: only the owner in the newest generation may act": (
        group_membership(),
        [
            (("rebalance", "g"), OWNED_BY_A, 0, 1),
            (("rebalance", "g"), OWNED_BY_B, 2, 3),
            (("act", "g", "a", 1, 0), False, 4, 5),
        ],
        [
            (("rebalance", "g"), OWNED_BY_A, 0, 1),
            (("rebalance", "g"), OWNED_BY_B, 2, 3),
            (("act", "g", "a", 1, 0), True, 4, 5),
        ],
    ),
    "group: two members do not own one partition": (
        group_membership(),
        [(("rebalance", "g"), OWNED_BY_A, 0, 1), (("act", "g", "b", 1, 0), False, 2, 3)],
        [(("rebalance", "g"), (1, frozenset({(0, "a"), (0, "b")})), 0, 1), (("act", "g", "b", 1, 0), True, 2, 3)],
    ),
    "lease: it is acquired again only after its end": (
        leadership_lease(),
        [(("acquire", "r", "a"), 0, 0, 1), (("expire", "r", 0), None, 2, None), (("acquire", "r", "b"), 1, 4, 5)],
        [(("acquire", "r", "a"), 0, 0, 1), (("acquire", "r", "b"), 1, 4, 5)],
    ),
    "lease: the action of a previous holder is rejected": (
        leadership_lease(),
        [(("acquire", "r", "a"), 0, 0, 1), (("release", "r", 0), None, 2, 3), (("act", "r", 0), False, 4, 5)],
        [(("acquire", "r", "a"), 0, 0, 1), (("release", "r", 0), None, 2, 3), (("act", "r", 0), True, 4, 5)],
    ),
    "nondeterministic: a toss has either result, and every look returns this result": (
        coin(),
        [(("toss",), None, 0, 1), (("look",), 1, 2, 3), (("look",), 1, 4, 5)],
        [(("toss",), None, 0, 1), (("look",), 1, 2, 3), (("look",), 0, 4, 5)],
    ),
}
"""For each rule: a model, a valid history, and a similar history that breaks the rule."""


@pytest.mark.parametrize("name", PAIRS)
def test_valid_history_is_accepted_and_invalid_history_rejected(name: str):
    model, valid, invalid = PAIRS[name]
    assert check(history(valid), model).verdict is Verdict.OK
    verification = check(history(invalid), model)
    assert verification.verdict is Verdict.VIOLATION
    text = verification.explain().text()
    assert "cannot be placed" in text
    assert all(model.describe_operation(op.input, op.output) in text for op in verification.explain().shrunk)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (append_log(), [(("append", 0, (1, 2)), 0, 0, 1), (("read", 0, -2), ((1,), 2), 2, 3)]),
        (committed_offset(), [(("commit", "g", -1), None, 0, 1)]),
        (committed_offset(), [(("fetch", "g"), -1, 0, 1)]),
        (fifo_queue(), [(("enqueue", EMPTY), None, 0, 1)]),
    ],
)
def test_reserved_values_are_errors(model, rows):
    with pytest.raises(ModelError, match=r"ValueError: .*(is -[12], not a whole number from 0|cannot be enqueued)"):
        check(history(rows), model)


def test_holder_may_be_any_value():
    taken = (("acquire", "r", None), 0, 0, 1)
    assert check(history([taken, (("acquire", "r", "b"), None, 2, 3)]), leadership_lease()).verdict is Verdict.OK
    assert check(history([taken, (("acquire", "r", "b"), 1, 2, 3)]), leadership_lease()).verdict is Verdict.VIOLATION


@pytest.mark.parametrize("name", PAIRS)
def test_each_of_two_keys_has_the_verdict_without_keys(name: str):
    """The history of each key is judged on its own. Its verdict is that of the same history without keys."""
    model, valid, invalid = PAIRS[name]
    for rows, verdict in ((valid, Verdict.OK), (invalid, Verdict.VIOLATION)):
        keyed = [((key, given), *rest) for given, *rest in rows for key in ("k", "l")]
        verification = check(history(keyed), each_key(model))
        assert [outcome.verdict for outcome in verification.outcomes] == [verdict, verdict]
