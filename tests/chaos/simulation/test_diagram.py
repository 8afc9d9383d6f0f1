"""The diagram of a run shows the relevant messages and changes."""

from dataclasses import replace

import pytest

from chaos.campaign.counterexample import Counterexample
from chaos.simulation.diagram import MESSAGES_MAX, NOTES_MAX, diagram_of
from chaos.simulation.recording import Record
from chaos.simulation.run import run
from conformance.trial.trial import Trial
from fixtures.clients.steps import Flush, Producer, SendBatches
from fixtures.faults import AddBroker, Kill, Role, Timed
from linearizability.picture.space_time import MarkKind

SCRIPT = Trial(
    clients=(Producer(steps=(SendBatches(batches=40, pause_ms=100), Flush())),),
    schedule=(Timed(at_ms=500, fault=Kill(Role.LEADER), for_ms=2_000),),
)


@pytest.fixture(scope="module")
def recorded():
    record = Record()
    return record, run(SCRIPT, record=record)


@pytest.fixture(scope="module")
def diagram(recorded):
    record, outcome = recorded
    found = Counterexample(SCRIPT, "lost-write", "a record is gone", seed=1, at_ms=outcome.virtual_ms)
    return diagram_of(found, record, nodes=3)


def test_recording_changes_nothing(recorded):
    assert recorded[1].digest == run(SCRIPT).digest


def test_every_message_has_the_name_of_its_api_and_responses_belong_to_requests(recorded):
    record, _ = recorded
    assert {message.api for message in record.messages} >= {
        "Produce",
        "Fetch",
        "Vote",
        "BrokerHeartbeat",
        "AlterPartition",
    }
    for message in record.messages:
        if message.request is not None:
            assert message.request.response is message
            assert (message.request.source, message.request.api) == (message.destination, message.api)
            assert message.request.position < message.position
        if message.arrival_position is not None:
            assert message.arrival_position > message.position


def test_relevant_messages_are_shown_and_the_others_are_counted(recorded, diagram):
    record, _ = recorded
    assert 10 < len(diagram.messages) <= MESSAGES_MAX < len(record.messages)
    assert sum(mark.kind is MarkKind.NOTE for mark in diagram.marks) <= NOTES_MAX
    assert "BrokerHeartbeat" not in {message.text for message in diagram.messages}
    assert diagram.notes == (f"{len(record.messages) - len(diagram.messages):,} of {len(record.messages):,} messages",)


def test_the_fault_the_downtime_and_the_election_are_shown(diagram):
    (fault,) = diagram.faults
    assert "Kill" in fault.text
    down, *at_the_end = sorted(diagram.downs, key=lambda each: each.begin)
    assert len(at_the_end) == 3  # a run ends with a shutdown of all nodes
    assert fault.begin < down.begin < fault.end < down.end
    assert any("leads a-0 in epoch 1" in mark.text for mark in diagram.marks)
    assert [mark.kind for mark in diagram.marks][-1] is MarkKind.VIOLATION
    assert diagram.moments[fault.end].at_ms - diagram.moments[fault.begin].at_ms == 2_000


def test_a_broker_that_the_trial_adds_has_a_lane():
    trial = replace(SCRIPT, schedule=(Timed(100, AddBroker(4)),))
    record = Record()
    outcome = run(trial, record=record)
    found = Counterexample(trial, "lost-write", "a record is gone", seed=1, at_ms=outcome.virtual_ms)
    shown = diagram_of(found, record, nodes=3)
    assert "node 4" in shown.lanes
    assert {mark.lane for mark in shown.marks} <= set(shown.lanes)


def test_every_message_and_mark_has_existing_moments_and_lanes(diagram):
    moments, lanes = range(len(diagram.moments)), set(diagram.lanes)
    times = [moment.at_ms for moment in diagram.moments]
    assert times == sorted(times)
    for message in diagram.messages:
        assert {message.source, message.destination} <= lanes
        assert message.sent_at in moments
        assert message.arrived_at is None or message.sent_at < message.arrived_at in moments
    assert {mark.lane for mark in diagram.marks} <= lanes


def test_a_change_is_shown_before_the_responses_that_it_causes(recorded):
    record, _ = recorded
    advances = [change for change in record.changes if change.text.startswith("high watermark of a-0")]
    responses = [message for message in record.messages if message.api == "Produce" and message.request is not None]
    caused = [
        (change, response)
        for change in advances
        for response in responses
        if (change.lane, change.at_ms) == (response.source, response.at_ms)
    ]
    assert len(caused) > 10
    assert all(change.position < response.position for change, response in caused)
