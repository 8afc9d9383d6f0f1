"""Comparison of two targets: causes of differences, their shortest scripts, and brokers that go down."""

from dataclasses import replace

import pytest
from hypothesis import strategies as st

from conformance.differential import Cause, Comparer, causes_of
from conformance.profiles import Profile
from conformance.sequential.check import judges, sequential
from conformance.sequential.judging import Rank
from conformance.sequential.steps import ApiKey, CreateTopic, Fetch, On, RawRequest, Script
from conformance.sequential.strategies import many, produces, script
from fixtures.targets.target import Capability
from tests.conformance.fakes import FakeTarget, finds, requirement
from tests.conformance.tampering_proxy import TamperingProxy, altered_responses, api

QUICK = Profile("quick", scripts_max=4, shrink_seconds=3.0)
READ_BACK = sequential(
    script(CreateTopic(), many(produces(acks=st.just(-1)), at_most=2), Fetch()), judges("error", of=Fetch)
)
OK = {"error": "NONE"}


def causes(here, there, step=Fetch()):  # noqa: B008 - a step is a value
    return {
        cause.id: shown for cause, shown in causes_of(Script((CreateTopic(), step)), (OK, here), (OK, there)).items()
    }


@pytest.mark.parametrize(
    ("here", "there", "ids"),
    [
        (OK, OK, []),
        ({"error": "NONE"}, {"error": "INVALID_TOPIC"}, ["semantic Fetch error: NONE / INVALID_TOPIC"]),
        ({"error": "A"}, {"error": "B"}, ["error-code Fetch error: A / B"]),
        ({"error": "A", "offset": 1}, {"error": "B", "offset": 2}, ["error-code Fetch error: A / B"]),
        (OK | {"offset": 1}, OK | {"offset": 2}, ["semantic Fetch offset"]),
        ({"error": "A", "offset": 1}, {"error": "A", "offset": 2}, ["cosmetic Fetch offset"]),
        (OK | {"size": 1}, OK | {"size": 2}, ["cosmetic Fetch size"]),
        (OK, {"connection": "closed"}, ["fatal Fetch connection: a response / closed"]),
        (OK, {"malformed": "byte 7"}, ["fatal Fetch malformed"]),
        (OK, OK | {"offset": 2}, []),
    ],
)
def test_a_cause_is_rank_request_and_field(here, there, ids):
    assert list(causes(here, there)) == ids


def test_a_request_inside_a_step_and_a_raw_one_have_their_names():
    assert list(causes({"error": "A"}, {"error": "B"}, On(1, Fetch()))) == ["error-code Fetch error: A / B"]
    raw = RawRequest(ApiKey.DESCRIBE_CLUSTER, {}, errors=("NONE",))
    assert list(causes({"errors": ("NONE",)}, {"errors": ("A",)}, raw)) == [
        "semantic DescribeCluster errors: ('NONE',) / ('A',)"
    ]


def test_the_first_step_of_a_cause_is_shown():
    steps = Script((Fetch(), Fetch()))
    (shown,) = causes_of(steps, (OK | {"offset": 1},) * 2, (OK | {"offset": 2},) * 2).values()
    assert (shown.step, shown.here, shown.there) == (1, "1", "2")


def compared(here, there, *checks):
    comparer = Comparer(here, there, 1, QUICK)
    requirements = [requirement(check, f"area/number-{number}", nodes_min=1) for number, check in enumerate(checks)]
    assert list(comparer.run(requirements)) == [each.id for each in requirements]
    return comparer.result


def loses_records(_request, part):
    return replace(part, records=b"") if part.records else part


def test_each_cause_is_shrunk_and_counted_over_requirements(broker):
    with TamperingProxy(broker, altered_responses("Fetch", loses_records)) as proxy:
        result = compared(broker, proxy, READ_BACK, READ_BACK)
    assert [each.cause.id for each in result.in_order()] == [
        "semantic Fetch codecs",
        "semantic Fetch producers",
        "semantic Fetch records",
        "cosmetic Fetch leader_epochs",
        "cosmetic Fetch size",
    ]
    lost = result.in_order()[2]
    assert lost.cause == Cause(Rank.SEMANTIC, "Fetch", "records")
    assert lost.requirements == ("area/number-0", "area/number-1")
    assert lost.scripts == sum(result.compared.values()) == 8
    assert (lost.after, lost.is_flaky) == ((), False)
    assert lost.shown.there == "()"
    assert (
        "SCRIPT = Script((CreateTopic(), Produce((Batch((Record(None, timestamp_ms=1700000000000),)),)), Fetch()))"
        in lost.program
    )


def test_a_target_does_not_differ_from_itself(broker):
    with TamperingProxy(broker, lambda request, forward: forward(request)) as proxy:
        result = compared(broker, proxy, READ_BACK)
    assert result.differences == {}
    assert result.compared == {"area/number-0": 4}


def test_a_consequence_names_the_difference_before_it(broker):
    """The Produce step appends nothing, and the later Fetch step lacks its records."""

    def drops(request, forward):
        return forward(replace(request, topic_data=()) if api(request) == "Produce" else request)

    with TamperingProxy(broker, drops) as proxy:
        result = compared(broker, proxy, READ_BACK)
    found = {each.cause.id: each for each in result.in_order()}
    assert found["fatal Produce malformed"].after == ()
    assert found["semantic Fetch records"].after == ("fatal Produce malformed",)


class GoesDown:
    """A target that goes down at each Produce, and can be started again."""

    def __init__(self, target):
        self._target, self.starts = target, 0
        self.start()

    def start(self):
        self.starts += 1
        self._proxy = TamperingProxy(self._target, self._tamper).__enter__()

    def _tamper(self, request, forward):
        if api(request) != "Produce":
            return forward(request)
        self.stop()
        return None

    def stop(self):
        self._proxy.__exit__()

    def __getattr__(self, attribute):
        return getattr(self._proxy, attribute)


def test_a_broker_that_goes_down_is_a_cause_at_the_step_that_ends_it(broker, monkeypatch):
    monkeypatch.setattr("conformance.sequential.timeouts.READY_TIMEOUT_S", 0.2)
    target = GoesDown(broker)
    try:
        check = sequential(script(CreateTopic(), produces(acks=st.just(-1)), Fetch()), judges("error", of=Fetch))
        result = compared(broker, target, check)
    finally:
        target.stop()
    (difference,) = result.in_order()
    assert difference.cause.id == "fatal Produce broker: alive / down"
    assert (difference.shown.step, difference.is_flaky) == (2, False)
    assert target.starts > 1


def test_what_a_target_lacks_is_not_compared():
    check = requirement(READ_BACK, needs=frozenset({Capability.LINK_FAULTS}))
    comparer = Comparer(FakeTarget("a"), FakeTarget("b"), 1, QUICK)
    assert list(comparer.run([check])) == [check.id]
    assert comparer.result.skipped == {check.id: "a needs link-faults; b needs link-faults"}


def test_requirements_without_scripts_are_left_out():
    comparer = Comparer(FakeTarget("a"), FakeTarget("b"), 1, QUICK)
    assert list(comparer.run([requirement(finds(None))])) == []
