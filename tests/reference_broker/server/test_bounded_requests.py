"""Expensive requests do not block other connections.

During such a request, a second connection sends ApiVersions requests. Other tests limit the memory of a node.
"""

import socket
import statistics
import threading
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from kio.index import load_response_schema

from fixtures.clients.raw import decode_response, encode_request
from fixtures.clients.record_batch import Compression, Record, RecordBatch, encode_batch
from tests.reference_broker.requests import request
from tests.reference_broker.server.process import running
from tests.waiting import wait_until

pytestmark = pytest.mark.sampled(2)

_WAIT_MAX_S = 0.25
"""Limit of the node's CPU time from a request of the second connection to its response.

On an idle machine, an expensive request takes seconds, and each of its steps (`protocol.steps`) less than 50 ms.
"""
_MIB = 1024 * 1024


class Client:
    """One connection."""

    def __init__(self, broker):
        self._socket = socket.create_connection((broker.host, broker.port), timeout=120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, api, version, **fields):
        entity = request(api, version, **fields)
        frame = encode_request(entity, 1, "test")
        self._socket.sendall(len(frame).to_bytes(4, "big") + frame)
        size = int.from_bytes(self._read(4), "big")
        return decode_response(load_response_schema(entity.__api_key__, entity.__version__), self._read(size))

    def _read(self, size):
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "the broker closed the connection"
            data += part
        return data


@contextmanager
def assert_others_are_served(broker):
    """Assert that a second connection receives each response in time while the block runs."""
    waits_s, ended = [], threading.Event()

    def probe():
        with Client(broker) as other:
            while not ended.is_set():
                began = cpu_s(broker)
                other.send("ApiVersions", 0)
                waits_s.append(cpu_s(broker) - began)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert max(waits_s) < _WAIT_MAX_S, f"{max(waits_s):.3f} s, median {statistics.median(waits_s):.4f} s"


def cpu_s(broker):
    """Return the CPU time of the node's only thread in seconds. It does not include delays by other processes."""
    return int(Path(f"/proc/{broker.process.pid}/schedstat").read_text().split()[0]) / 1e9


def peak_resident_bytes(broker):
    status = Path(f"/proc/{broker.process.pid}/status").read_text().splitlines()
    line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def bomb(compression, size_bytes, records=1):
    """Return a batch of zeros. It is small if it is compressed."""
    value = bytes(size_bytes // records)
    batch = RecordBatch(tuple(Record(value, key=b"k") for _ in range(records)), compression=compression)
    return encode_batch(batch)


def create_topic(client, name, **configs):
    settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": settings}
    [created] = client.send("CreateTopics", 7, topics=[topic], timeout=10_000).topics
    assert created.error_code == 0


def produce(client, name, records):
    data = [{"name": name, "partition_data": [{"index": 0, "records": records}]}]
    response = client.send("Produce", 12, acks=-1, timeout=10_000, topic_data=data)
    return response.responses[0].partition_responses[0].error_code.name


COMPRESSED = [each for each in Compression if each is not Compression.NONE]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with running(tmp_path_factory.mktemp("bounded")) as broker:
        with Client(broker) as client:
            create_topic(client, "warm", cleanup_policy="compact")
            for compression in COMPRESSED:  # load the codec libraries
                assert produce(client, "warm", bomb(compression, 1000)) == "none"
        yield broker


@pytest.fixture
def client(broker):
    with Client(broker) as client:
        yield client


@pytest.mark.parametrize("compression", COMPRESSED, ids=lambda each: each.name)
@pytest.mark.parametrize(
    "configs", [{"cleanup_policy": "compact"}, {"compression_type": "gzip"}, {"compression_type": "uncompressed"}]
)
def test_small_batch_with_a_large_decompressed_size_does_not_block_others(broker, client, compression, configs):
    name = "-".join([compression.name, *configs, *configs.values()]).lower()
    create_topic(client, name, max_message_bytes=str(8 * _MIB), **configs)
    size_bytes = 100 * _MIB if compression in {Compression.SNAPPY, Compression.GZIP} else 512 * _MIB
    records = bomb(compression, size_bytes)
    with assert_others_are_served(broker):
        assert produce(client, name, records) == "message_too_large"
    assert peak_resident_bytes(broker) < 300 * _MIB


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD], ids=lambda each: each.name)
def test_batch_with_many_records_does_not_block_others(broker, client, compression):
    name = f"many-{compression.name}".lower()
    create_topic(client, name, cleanup_policy="compact", max_message_bytes=str(4 * _MIB))
    records = bomb(compression, 0, 300_000)
    with assert_others_are_served(broker):
        assert produce(client, name, records) == "none"


def test_timestamp_lookup_in_a_batch_with_many_records_does_not_block_others(broker, client):
    """The lookup finds the last record."""
    create_topic(client, "late")
    count = 200_000
    early, late = Record(b"", timestamp_ms=1), Record(b"", timestamp_ms=2**40)
    batch = encode_batch(RecordBatch((early,) * (count - 1) + (late,), compression=Compression.ZSTD))
    assert produce(client, "late", batch) == "none"
    partitions = [{"partition_index": 0, "timestamp": 2**40}]
    with assert_others_are_served(broker):
        [topic] = client.send(
            "ListOffsets", 7, replica_id=-1, topics=[{"name": "late", "partitions": partitions}]
        ).topics
    assert topic.partitions[0].offset == count - 1


def test_pipelined_requests_do_not_block_others(broker, client):
    frame = encode_request(request("DescribeConfigs", 4, resources=[_BROKER], include_synonyms=True), 1, "test")
    count = 2_000
    with assert_others_are_served(broker), connection(broker) as pipeline:
        sender = threading.Thread(target=pipeline.sendall, args=((len(frame).to_bytes(4, "big") + frame) * count,))
        sender.start()
        with pipeline.makefile("rb") as responses:
            for _ in range(count):
                size = int.from_bytes(responses.read(4), "big")
                assert len(responses.read(size)) == size
        sender.join()


def test_automatic_creation_of_many_topics_does_not_block_others(broker, client):
    topics = [{"name": f"auto-{number}"} for number in range(10_000)]
    with assert_others_are_served(broker):
        errors = {topic.error_code.name for topic in client.send("Metadata", 12, topics=topics).topics}
    assert errors == {"unknown_topic_or_partition"}

    def created():
        return {t.name for t in client.send("Metadata", 12, topics=None).topics if t.name.startswith("auto-")}

    wait_until(created)
    assert created() < {topic["name"] for topic in topics}


def test_memory_of_incomplete_requests_is_limited(broker):
    """Eight connections each send 60 MiB of a request of 100 MiB. The node closes some, and serves other clients."""
    part = (100 * _MIB).to_bytes(4, "big") + bytes(60 * _MIB)
    with ExitStack() as stack:
        sockets = [stack.enter_context(closing(connection(broker))) for _ in range(8)]
        with assert_others_are_served(broker):
            for each in sockets:
                each.sendall(part)
        assert {is_open(each) for each in sockets} == {True, False}
        assert peak_resident_bytes(broker) < 300 * _MIB


def test_memory_of_unread_responses_is_limited(broker, client):
    """Twenty clients request 20 MB each and do not read the response. The node does not keep all responses."""
    create_topic(client, "large", max_message_bytes=str(30 * _MIB))
    assert produce(client, "large", bomb(Compression.NONE, 20 * _MIB)) == "none"
    partition = {"partition": 0, "fetch_offset": 0, "current_leader_epoch": -1, "partition_max_bytes": 2**30}
    topics = [{"topic": "large", "partitions": [partition]}]
    frame = encode_request(request("Fetch", 12, max_wait=0, min_bytes=0, max_bytes=2**30, topics=topics), 1, "test")
    with ExitStack() as stack:
        sockets = [stack.enter_context(closing(connection(broker))) for _ in range(20)]
        for each in sockets:
            each.sendall(len(frame).to_bytes(4, "big") + frame)
            assert each.recv(4, socket.MSG_PEEK)
        client.send("ApiVersions", 0)
        assert peak_resident_bytes(broker) < 300 * _MIB


def connection(broker):
    return socket.create_connection((broker.host, broker.port), timeout=120)


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


_BROKER = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
