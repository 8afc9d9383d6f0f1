"""Steps around other steps: which broker is asked, and how long for something that is to come."""

from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from conformance.sequential import session
from conformance.sequential.check import kind_of
from conformance.sequential.session import Session
from conformance.sequential.steps import (
    AlterReassignment,
    AwaitTopic,
    Batch,
    CreateTopic,
    DescribeConfigs,
    ElectLeaders,
    Eventually,
    Fetch,
    IncrementalAlterConfigs,
    ListOffsets,
    LongPoll,
    On,
    Operation,
    Produce,
    Record,
    Script,
    WithUnknownTags,
)
from conformance.sequential.strategies import placed
from tests.conformance.liar import Liar, api

ONE_MORE = Produce((Batch((Record(b"a"),)),))
COMPACT = IncrementalAlterConfigs((("cleanup.policy", Operation.SET, "compact"),))
SETTING = DescribeConfigs(("cleanup.policy",))


class Late:
    """Describes settings as they were before, for so many answers."""

    def __init__(self, answers: int) -> None:
        self.left = answers
        self.asked = 0

    def __call__(self, request, forward):
        response = forward(request)
        if api(request) != "DescribeConfigs":
            return response
        self.asked += 1
        self.left -= 1
        if self.left < 0:
            return response
        stale = tuple(replace(result, configs=()) for result in response.results)
        return replace(response, results=stale)


def run(target, *steps):
    with Session(target, "waiting") as opened:
        return opened.run(Script(steps))


def test_what_comes_late_is_awaited(broker):
    late = Late(answers=3)
    with Liar(broker, late) as liar:
        answers = run(liar, CreateTopic(), COMPACT, Eventually(SETTING))
    assert answers[-1]["set"] == (("cleanup.policy", "compact"),)
    assert late.asked >= 4


def test_what_never_comes_is_awaited_once_and_its_last_answer_told(broker, monkeypatch):
    monkeypatch.setattr(session, "EFFECT_TIMEOUT_S", 0.1)
    late = Late(answers=1_000_000)
    with Liar(broker, late) as liar:
        answers = run(liar, CreateTopic(), COMPACT, Eventually(SETTING))
        asked = late.asked
        assert answers[-1]["set"] == ()
        run(liar, CreateTopic(), COMPACT, Eventually(SETTING), Eventually(SETTING), Eventually(SETTING))
    assert late.asked - asked < 2 * asked + 3


def test_a_step_is_asked_of_the_broker_that_is_named(cluster):
    answers = run(cluster, placed(2, 3), *(On(broker, ListOffsets()) for broker in (1, 2, 3)))
    assert [answer["error"] for answer in answers[1:]] == ["NOT_LEADER_OR_FOLLOWER", "NONE", "NOT_LEADER_OR_FOLLOWER"]


def test_requests_follow_the_leader_once_it_was_awaited(cluster):
    answers = run(cluster, placed(1, 2), AlterReassignment((2, 1)), ElectLeaders(), AwaitTopic(), ONE_MORE)
    assert answers[3]["partitions"] == ((0, 2, (2, 1), (1, 2)),)
    assert answers[-1]["error"] == "NONE"


def test_brokers_that_disagree_do_not_agree(cluster, monkeypatch):
    """One connection of three gets another leader epoch told than the others."""
    monkeypatch.setattr(session, "EFFECT_TIMEOUT_S", 0.2)
    lied_to = []

    def lie(request, forward):
        response = forward(request)
        if api(request) != "Metadata" or not response.topics:
            return response
        lied_to.append(None)
        epoch = len(lied_to) % 3
        return replace(
            response,
            topics=tuple(
                replace(topic, partitions=tuple(replace(part, leader_epoch=epoch) for part in topic.partitions))
                for topic in response.topics
            ),
        )

    with Liar(cluster, lie) as liar:
        answers = run(liar, placed(1), AwaitTopic())
    assert answers[-1]["all_agree"] is False


def test_a_waiting_fetch_is_answered_by_what_others_produce(broker):
    long_poll = LongPoll(Fetch(max_wait_ms=60_000, min_bytes=1), (ONE_MORE,))
    assert [record.value for record in run(broker, CreateTopic(), long_poll)[1]["records"]] == [b"a"]


def test_unknown_tags_are_on_the_wire(broker):
    """The proxy's own reader knows no such tag, and cannot read the request."""
    seen = []

    def lie(request, forward):
        seen.append(api(request))
        return forward(request)

    with Liar(broker, lie) as liar:
        run(liar, CreateTopic())
        without = seen.count("Fetch")
        answers = run(liar, CreateTopic(), WithUnknownTags(Fetch()))
    assert seen.count("Fetch") == without
    assert answers[-1]["error"] == "NONE"


@pytest.mark.parametrize("step", [Fetch(), On(2, Fetch()), Eventually(On(2, Fetch())), WithUnknownTags(Fetch())])
def test_a_step_is_judged_as_the_request_that_it_is(step):
    assert kind_of(step) is Fetch


def test_an_error_is_an_answer_that_may_be_due(broker):
    """Waiting ends with the answer that the model expects, an error too."""
    answers = run(broker, CreateTopic(), Eventually(ListOffsets(topic="trial-none")))
    assert answers[-1]["error"] in {"UNKNOWN_TOPIC_OR_PARTITION", ErrorCode.unknown_topic_id.name.upper()}
