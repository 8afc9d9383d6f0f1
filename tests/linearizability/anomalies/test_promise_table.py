"""The rules of the promise table: their evaluation, and docs/promises.md, which is generated from them."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.promise import (
    ALL,
    LASTING_ACKS,
    NOT_PROMISED,
    READ,
    RULES,
    FullIsr,
    Loss,
    Stake,
    TopicRules,
    partition_promise,
    rule_of,
)
from linearizability.anomalies.promise_document import page

DOCUMENT = Path(__file__).parents[3] / "docs" / "promises.md"
REPLICAS = (1, 2, 3)
CASES = list(itertools.product((0, 1, 2, 3), (False, True), range(4)))
"""(min.insync.replicas, whether unclean elections are possible, number of replicas that lost content)"""


@pytest.mark.parametrize(("least", "unclean", "lossy"), CASES)
def test_the_periods_of_a_partition_follow_the_rules(least, unclean, lossy):
    losses = tuple(Loss(node, 10, NEVER_NS) for node in REPLICAS[:lossy])
    promise = partition_promise(
        TopicRules(least, 3, False, False, 10 if unclean else NEVER_NS, losses), FullIsr(frozenset(REPLICAS))
    )
    for periods, enough in ((promise.acknowledged, max(1, least)), (promise.read, 1)):
        is_lost = unclean or lossy >= enough
        expected = [10, NOT_PROMISED, NOT_PROMISED] if is_lost else [NEVER_NS] * 3
        assert periods.end_ns(np.array([5, 10, NEVER_NS], np.int64)).tolist() == expected
    assert rule_of(Stake(ALL, least, lossy, unclean)).is_kept is not (unclean or lossy >= max(1, least))
    assert rule_of(Stake(READ, least, lossy, unclean)).is_kept is not (unclean or lossy >= 1)


def test_a_period_ends_when_the_isr_was_full_again_except_after_an_unclean_election():
    isr = FullIsr(frozenset(REPLICAS), (25,), (26,))
    losses = (Loss(1, 10, 20), Loss(7, 12, 20))
    healed = partition_promise(TopicRules(1, 3, False, False, NEVER_NS, losses), isr)
    assert healed.acknowledged.end_ns(np.array([5, 15, 26])).tolist() == [10, NOT_PROMISED, NEVER_NS]
    unclean = partition_promise(TopicRules(1, 3, False, False, 15, losses), isr)
    assert unclean.acknowledged.end_ns(np.array([5, 15, 26])).tolist() == [10, NOT_PROMISED, NOT_PROMISED]


def test_a_fault_without_a_node_counts_for_every_replica():
    promise = partition_promise(TopicRules(3, 3, False, False, NEVER_NS, (Loss(-1, 10, 20),)), FullIsr(None))
    assert promise.acknowledged.end_ns(np.array([5])).tolist() == [10]


def test_a_record_only_on_the_leader_is_never_promised():
    assert LASTING_ACKS == (ALL,)


def test_eligible_leader_replicas_keep_records_that_the_last_in_sync_replica_lost():
    assert not rule_of(Stake(min_insync_replicas=2, lossy_replicas=1, last_in_sync_is_lossy=True)).is_kept
    assert rule_of(Stake(min_insync_replicas=2, lossy_replicas=1)).is_kept


def test_every_rule_applies_to_some_stake():
    stakes = itertools.product((0, 1, ALL, READ), (1, 2), range(4), (False, True), (False, True))
    assert {rule_of(Stake(*stake)) for stake in stakes} == set(RULES)


def test_document_is_up_to_date():
    assert DOCUMENT.read_text(encoding="utf-8") == page(), (
        "python -m linearizability.anomalies.promise_document > docs/promises.md"
    )
