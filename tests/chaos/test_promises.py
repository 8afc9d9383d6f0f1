"""The promise table against the one that judges histories, and against its page."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from chaos.promises import ALL, Configuration, Trouble, lost_content, must_serve, page, promise
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.promise import FullIsr, Loss, TopicRules, partition_promise

DOCUMENT = Path(__file__).parents[2] / "docs" / "promises.md"
REPLICAS = (1, 2, 3)


CASES = [
    case
    for case in itertools.product((1, 2, 3), (False, True), (False, True), range(4), range(4))
    if sum(case[3:]) <= len(REPLICAS)
]


@pytest.mark.parametrize(("least", "unclean", "flushes", "powerless", "lossy"), CASES)
def test_the_checkers_keep_the_same_promises(least, unclean, flushes, powerless, lossy):
    """A record acknowledged with acks=all at 5, and all the trouble at 10 and for ever."""
    configuration = Configuration(ALL, 3, least, unclean, flushes_each_message=flushes)
    trouble = Trouble(any_fault=True, powerless=powerless, lossy=lossy)
    losses = tuple(Loss(node, 10, NEVER_NS) for node in REPLICAS[: lost_content(configuration, trouble)])
    rules = TopicRules(least, 3, False, False, 10 if unclean else NEVER_NS, losses)
    column = partition_promise(rules, FullIsr(frozenset(REPLICAS))).acknowledged
    judged = column.end_ns(np.array([5], np.int64))[0] == NEVER_NS
    assert promise(configuration, trouble).is_kept == judged


@pytest.mark.parametrize("acks", [0, 1])
def test_what_the_leader_alone_has_is_never_promised(acks):
    assert not promise(Configuration(acks=acks), Trouble()).is_kept


def test_eligible_leader_replicas_save_what_the_last_in_sync_replica_lost():
    last = Trouble(any_fault=True, lossy=1, last_in_sync_is_lossy=True)
    assert not promise(Configuration(), last).is_kept
    assert promise(Configuration(eligible_leader_replicas=True), last).is_kept


@pytest.mark.parametrize(
    ("struck", "least", "serves"),
    [((), 2, True), ((1,), 2, True), ((1,), 3, False), ((1, 2), 1, False), ((1, 2, 3), 1, False)],
)
def test_a_majority_that_is_in_sync_must_serve(struck, least, serves):
    nodes = frozenset(REPLICAS)
    assert must_serve(nodes, nodes, least, frozenset(struck)) is serves


def test_the_page_of_the_documentation_is_up_to_date():
    assert DOCUMENT.read_text(encoding="utf-8") == page(), "python -m chaos.promises > docs/promises.md"
