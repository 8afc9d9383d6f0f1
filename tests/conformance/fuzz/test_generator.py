"""Generator of requests: it covers all APIs and versions, is reproducible, and generates no harmful request."""

import dataclasses
import io
import itertools
import random
import uuid

import pytest
from kio.index import load_request_schema
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from conformance.fuzz import mutations
from conformance.fuzz.batches import BOMB_BYTES_MAX, bomb
from conformance.fuzz.generator import Generator, Port
from conformance.fuzz.protection import is_permitted
from conformance.fuzz.values import Values
from conformance.fuzz.wire import FieldChoices, decode, encode, known_apis, request_struct
from conformance.fuzz.world import TOPICS, WITNESS, World
from fixtures.clients.record_batch import Compression, decode_batches
from tests.reference_broker.requests import request

pytestmark = pytest.mark.sampled(3)

WORLD = World(
    cluster_id="AAAAAAAAAAAAAAAAAAAAAA",
    nodes=(1, 2, 3),
    topic_ids={name: uuid.UUID(int=1000 + number) for number, name in enumerate([*TOPICS, WITNESS])},
    served={port: {key: (0, 20) for key, _ in known_apis()} for port in Port},
    directory_ids={node: uuid.UUID(int=2000 + node) for node in (1, 2, 3)},
)
KAFKA = dataclasses.replace(WORLD, kind="apache-kafka")
OTHER = World(
    cluster_id="BBBBBBBBBBBBBBBBBBBBBB",
    nodes=(1, 2, 3),
    topic_ids={name: uuid.UUID(int=5000 + number) for number, name in enumerate([*TOPICS, WITNESS])},
    served=WORLD.served,
    directory_ids={node: uuid.UUID(int=6000 + node) for node in (1, 2, 3)},
)


def parts_of(rng, key, version):
    values = Values(rng, WORLD, False, lambda: b"")
    return list(encode(request_struct(key, version), FieldChoices(values.choose, values.count, values.is_present)))


def frame_of_parts(key, version, parts):
    """Return a frame with a null client id."""
    header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    return header + bytes(request_struct(key, version).is_flexible) + b"".join(part.data for part in parts)


def frame_of(message):
    header = message.__header_schema__(
        request_api_key=message.__api_key__, request_api_version=message.__version__, correlation_id=1, client_id="t"
    )
    buffer = io.BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


@pytest.mark.parametrize(("key", "version"), known_apis(), ids=str)
def test_kio_decodes_encoded_requests(key, version):
    """Requests with surrogates or very long durations are skipped, because kio cannot represent them."""
    rng = random.Random(f"{key}/{version}")
    decoded = 0
    for _ in range(8):
        parts = parts_of(rng, key, version)
        body = b"".join(part.data for part in parts)
        assert decode(frame_of_parts(key, version, parts)) is not None
        try:
            _, size = entity_reader(load_request_schema(key, version))(body, 0)
        except (SerialError, ValueError, OverflowError):
            continue
        decoded += 1
        assert size == len(body)
    assert decoded


def test_a_cycle_has_every_api_and_version_on_every_listener():
    generator = Generator(7, WORLD)
    made = [generator.request(number) for number in range(generator.cycle_size)]
    assert {(each.port, each.api_key, each.version) for each in made} == {
        (port, *api) for port in Port for api in known_apis()
    }
    assert {each.node for each in made} == {1, 2, 3}
    assert 0.2 < sum(not each.notes for each in made) / len(made) < 0.5


def test_a_request_depends_on_seed_and_number_alone():
    first = list(itertools.islice(Generator(3, WORLD).requests(), 300))
    same, other = Generator(3, WORLD), Generator(4, WORLD)
    assert [same.request(number) for number in range(299, -1, -1)] == first[::-1]
    assert [other.request(number).data for number in range(300)] != [each.data for each in first]


def test_a_translated_frame_equals_the_one_generated_for_the_other_cluster():
    ours, theirs = Generator(5, WORLD), Generator(5, OTHER)
    intact = [number for number in range(500) if not ours.request(number).notes]
    assert [WORLD.translated(ours.request(number).data, OTHER) for number in intact] == [
        theirs.request(number).data for number in intact
    ]
    assert any(ours.request(number).data != theirs.request(number).data for number in intact)


@pytest.mark.parametrize("mutation", sorted(set(mutations.BODY_MUTATIONS), key=str), ids=lambda each: each.__name__)
def test_every_mutation_changes_something(mutation):
    changed = 0
    for number, (key, version) in enumerate(known_apis()):
        rng = random.Random(number)
        parts = parts_of(rng, key, version)
        before = b"".join(part.data for part in parts)
        note = mutation(rng, parts)
        changed += bool(note) and b"".join(part.data for part in parts) != before
    assert changed > 50


def test_a_repeated_element_is_counted():
    checked = 0
    for number, (key, version) in enumerate(known_apis()):
        rng = random.Random(number)
        parts = parts_of(rng, key, version)
        note = mutations.repeat_element(rng, parts)
        if note:
            decoded = decode(frame_of_parts(key, version, parts))
            path, elements = note.removesuffix(" elements").split(": ")
            if "." not in path:
                assert len(decoded[path]) == int(elements)
                checked += 1
    assert checked > 50


@pytest.mark.parametrize("compression", list(Compression)[1:])
def test_a_bomb_is_small_and_valid(compression):
    batch = bomb(compression, 8 * 1024 * 1024)
    assert len(batch) <= BOMB_BYTES_MAX
    ((record,),) = (each.records for each in decode_batches(batch))
    assert record.value == bytes(len(record.value))
    assert len(record.value) > 5 * len(batch)


WITNESS_ID = WORLD.topic_ids[WITNESS]
LEGAL = [
    request("DeleteTopics", 5, topic_names=("fuzz-new-1",)),
    request("CreateTopics", 7, topics=[{"name": "fuzz-new-1", "num_partitions": 2}]),
    request("CreateTopics", 7, topics=[{"name": "..", "num_partitions": 2}]),
    request("CreatePartitions", 3, topics=[{"name": "fuzz-plain", "count": 2_000_000_000}]),
    request("UnregisterBroker", 0, broker_id=77),
    request("Metadata", 12, topics=[{"name": WITNESS}]),
    request("Vote", 2, topics=[{"partitions": [{"replica_epoch": 2**31 - 1, "replica_id": 77}]}]),
    request("BeginQuorumEpoch", 1, topics=[{"partitions": [{"leader_epoch": 3, "leader_id": 1}]}]),
    request("Fetch", 12, replica_id=-1, topics=[{"topic": WITNESS}]),
]
ILLEGAL = [
    request("DeleteTopics", 5, topic_names=("fuzz-new-1", WITNESS)),
    request("DeleteTopics", 6, topics=[{"topic_id": WITNESS_ID}]),
    request("DeleteTopics", 5, topic_names=("fuzz-plain",)),
    request("CreateTopics", 7, topics=[{"name": "another", "num_partitions": 2}]),
    request("CreateTopics", 7, topics=[{"name": "fuzz-new-1", "num_partitions": 5000}]),
    request("CreatePartitions", 3, topics=[{"name": "fuzz-plain", "count": 5000}]),
    request("CreatePartitions", 3, topics=[{"name": WITNESS, "count": 3}]),
    request("Produce", 9, topic_data=[{"name": WITNESS}]),
    request("Produce", 13, topic_data=[{"topic_id": WITNESS_ID}]),
    request("DeleteRecords", 2, topics=[{"name": WITNESS}]),
    request("UnregisterBroker", 0, broker_id=2),
    request("BrokerHeartbeat", 2, broker_id=1),
    request("Fetch", 12, replica_id=2),
    request("Fetch", 17, replica_state={"replica_id": 2}),
    request("ElectLeaders", 2, election_type=1, topic_partitions=None),
    request("AlterConfigs", 2, resources=[{"resource_type": 4, "resource_name": ""}]),
    request("IncrementalAlterConfigs", 1, resources=[{"resource_type": 4, "resource_name": "2"}]),
    request("IncrementalAlterConfigs", 1, resources=[{"resource_type": 2, "resource_name": WITNESS}]),
    request("Vote", 2, topics=[{"partitions": [{"replica_epoch": 2**31 - 1, "replica_id": 3}]}]),
    request("BeginQuorumEpoch", 1, topics=[{"partitions": [{"leader_epoch": 2**31 - 1, "leader_id": 1}]}]),
]


@pytest.mark.parametrize("message", LEGAL, ids=lambda each: type(each).__name__)
def test_a_harmless_request_is_permitted(message):
    assert is_permitted(frame_of(message), WORLD)


@pytest.mark.parametrize("message", ILLEGAL, ids=lambda each: type(each).__name__)
def test_a_harmful_request_is_not_permitted(message):
    frame = frame_of(message)
    assert not is_permitted(frame, WORLD)
    assert not is_permitted(frame + b"bytes at the end", WORLD)
    assert not is_permitted(frame_of(request("Envelope", 0, request_data=frame)), WORLD)


@pytest.mark.parametrize(
    "message",
    [
        request("CreatePartitions", 3, topics=[{"name": "fuzz-plain", "count": 20_000}]),
        request("FetchSnapshot", 1, topics=[]),
        request("FetchSnapshot", 1, topics=[{"partitions": []}]),
        request("AddRaftVoter", 0, listeners=[{"name": "CONTROLLER"}, {"name": ""}]),
        request("UpdateRaftVoter", 0, listeners=[{"name": " \0"}]),
        request("BeginQuorumEpoch", 1, leader_endpoints=[{"name": ""}]),
        request("BeginQuorumEpoch", 1, topics=[{"partitions": [{"leader_epoch": 100, "leader_id": 1}]}]),
        request("EndQuorumEpoch", 1, topics=[{"partitions": [{"leader_epoch": 100, "leader_id": 1}]}]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_requests_that_end_a_node_of_apache_kafka_are_not_permitted_there(message):
    frame = frame_of(message)
    assert is_permitted(frame, WORLD)
    assert not is_permitted(frame, KAFKA)


LISTENER = b"\x02a\x02b\x00\x01"  # a name, a host and a port
VOTER = frame_of(request("AddRaftVoter", 1, listeners=[]))[:-3]  # ends before the array of listeners
SNAPSHOTS = frame_of(request("FetchSnapshot", 1, topics=[]))[:-2]  # ends before the array of topics


@pytest.mark.parametrize(
    "frame",
    [
        VOTER + b"\x03" + LISTENER + b"\xff\xff\xff\xff\x0f" + b"\x01\x02b\x00\x01\x00" + b"\x00\x00",
        SNAPSHOTS + b"\x01" + b"\x01\x00\x03\x05abcd",
    ],
    ids=["negative number of tagged fields", "wrong size of a known tagged field"],
)
def test_a_request_that_kafka_can_read_is_judged_as_kafka_reads_it(frame):
    assert decode(frame) is not None
    assert not is_permitted(frame, KAFKA)


def test_a_voter_with_named_listeners_is_sent_to_apache_kafka():
    assert is_permitted(frame_of(request("AddRaftVoter", 0, listeners=[{"name": "CONTROLLER"}])), KAFKA)


def test_strings_that_apache_kafka_cannot_return_are_not_sent_to_it():
    frames = [frame_of(request("DescribeGroups", 5, groups=["a" * size])) for size in (10_922, 10_923)]
    frames = [frame.replace(b"a", b"\xff") for frame in frames]  # Kafka decodes \xff as U+FFFD, which has three bytes
    assert all(is_permitted(frame, WORLD) for frame in frames)
    assert [is_permitted(frame, KAFKA) for frame in frames] == [True, False]


def test_arrays_that_occupy_apache_kafka_are_not_sent_to_it():
    topics = [
        {"name": "a", "partitions": [{"partition": number % 2} for number in range(count)]} for count in (200, 201)
    ]
    frames = [frame_of(request("OffsetForLeaderEpoch", 4, topics=[topic])) for topic in topics]
    frames += [frame_of(request("DescribeGroups", 5, groups=[str(number) for number in range(1_000)]))]
    updates = [{"feature": "a", "max_version_level": number} for number in range(150)]
    frames += [frame_of(request("UpdateFeatures", 1, feature_updates=updates))]
    frames += [frames[-1][:-3]]  # truncated in the last element; Kafka reads all elements before it
    assert all(is_permitted(frame, WORLD) for frame in frames)
    assert [is_permitted(frame, KAFKA) for frame in frames] == [True, False, True, False, False]


def test_generated_requests_are_permitted():
    for seed in range(3):
        for each in itertools.islice(Generator(seed, WORLD).requests(), 500):
            assert is_permitted(each.data[4:], WORLD)
