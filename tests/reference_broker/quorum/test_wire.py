"""Conversion of quorum messages to kio's entities and Kafka's bytes."""

import io
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from reference_broker.core.quorum import messages as m
from reference_broker.core.quorum.voters import ReplicaKey, Voter, VoterSet
from reference_broker.core.quorum.wire import (
    request_from_kio,
    request_to_kio,
    response_from_kio,
    response_to_kio,
)
from reference_broker.core.quorum.wire_parts import UnknownPartitionError
from reference_broker.protocol.errors import ErrorCode

VOTERS = VoterSet(
    Voter(ReplicaKey(number, UUID(int=70 + number)), f"b{number}.test", 9090 + number) for number in (1, 2)
)

ids = st.integers(0, 2**31 - 1)
epochs = st.integers(0, 2**31 - 1)
offsets = st.integers(0, 2**63 - 1)
keys = st.builds(ReplicaKey, ids, st.none() | st.integers(1, 2**100).map(lambda number: UUID(int=number)))
ends = st.builds(m.OffsetAndEpoch, offsets, epochs)
clusters = st.text("abcXYZ-_", max_size=22)
errors = st.sampled_from((ErrorCode.none, ErrorCode.fenced_leader_epoch, ErrorCode.not_leader_or_follower))
leaders = st.sampled_from((-1, 1, 2))
sizes = st.integers(0, 2**31 - 1)

requests = st.one_of(
    st.builds(m.VoteRequest, clusters, keys, keys, epochs, ends, st.booleans()),
    st.builds(m.BeginQuorumEpochRequest, clusters, keys, leaders, epochs),
    st.builds(m.EndQuorumEpochRequest, clusters, leaders, epochs, st.lists(keys, max_size=3).map(tuple)),
    st.builds(m.FetchRequest, clusters, keys, epochs, offsets, epochs, st.integers(0, 10**6), sizes, offsets),
    st.builds(m.FetchSnapshotRequest, clusters, keys, epochs, ends, offsets, sizes),
)
responses = st.one_of(
    st.builds(m.VoteResponse, leaders, epochs, st.booleans(), errors),
    st.builds(m.BeginQuorumEpochResponse, leaders, epochs, errors),
    st.builds(m.EndQuorumEpochResponse, leaders, epochs, errors),
    st.builds(
        m.FetchResponse, leaders, epochs, offsets, offsets, st.none() | ends, st.none() | ends, st.binary(), errors
    ),
    st.builds(m.FetchSnapshotResponse, leaders, epochs, st.none() | ends, offsets, offsets, st.binary(), errors),
)


def over_the_wire(entity):
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    read, size = entity_reader(type(entity))(buffer.getvalue(), 0)
    assert size == len(buffer.getvalue())
    return read


@given(requests)
def test_request_round_trips(request):
    assert request_from_kio(over_the_wire(request_to_kio(request, VOTERS))) == request


@given(responses)
def test_response_round_trips(response):
    assert response_from_kio(over_the_wire(response_to_kio(response, VOTERS))) == response


@pytest.mark.parametrize(
    "response_type",
    [
        m.VoteResponse,
        m.BeginQuorumEpochResponse,
        m.EndQuorumEpochResponse,
        m.FetchResponse,
        m.FetchSnapshotResponse,
    ],
)
def test_response_with_a_top_level_error_round_trips(response_type):
    response = response_type(top_level_error=ErrorCode.inconsistent_cluster_id)
    assert response_from_kio(over_the_wire(response_to_kio(response, VOTERS))) == response


def test_response_has_the_endpoint_of_the_leader():
    entity = response_to_kio(m.VoteResponse(2, 5), VOTERS)
    assert [(node.node_id, node.host, node.port) for node in entity.node_endpoints] == [(2, "b2.test", 9092)]
    assert not response_to_kio(m.VoteResponse(-1, 5), VOTERS).node_endpoints


@pytest.mark.parametrize(
    "request_of_leader",
    [m.BeginQuorumEpochRequest("c", ReplicaKey(2), 1, 3), m.EndQuorumEpochRequest("c", 1, 3, ())],
    ids=["begin", "end"],
)
def test_request_of_the_leader_has_its_controller_listener(request_of_leader):
    voters = VoterSet([Voter(ReplicaKey(1), "b1.test", 9091, "QUORUM")])
    [endpoint] = request_to_kio(request_of_leader, voters).leader_endpoints
    assert (endpoint.name, endpoint.host, endpoint.port) == ("QUORUM", "b1.test", 9091)


def test_request_for_another_partition_is_rejected():
    entity = request_to_kio(m.BeginQuorumEpochRequest("c", ReplicaKey(1), 2, 3), VOTERS)
    partition = replace(entity.topics[0].partitions[0], partition_index=1)
    for topics in (
        (),
        entity.topics * 2,
        (replace(entity.topics[0], topic_name="orders"),),
        (replace(entity.topics[0], partitions=(partition,)),),
    ):
        with pytest.raises(UnknownPartitionError):
            request_from_kio(replace(entity, topics=topics))
