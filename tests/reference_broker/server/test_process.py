"""The process of a node: start, shutdown, kill, and error messages."""

import resource
import socket
import subprocess

import pytest

from fixtures.clients.raw import ConnectionClosed, RawClient
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader
from reference_broker.protocol.records import KeyValue, encode_batch
from tests.reference_broker.scripted import batch, request
from tests.reference_broker.server.process import run_to_end, running

pytestmark = pytest.mark.sampled(2)


def produce_one(client):
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1}
    client.request(request("CreateTopics", 7, topics=[topic]))
    data = [{"name": "orders", "partition_data": [{"index": 0, "records": batch(b"kept", timestamp_ms=0)}]}]
    response = client.request(request("Produce", 9, acks=-1, topic_data=data))
    return response.responses[0].partition_responses[0].base_offset


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_records_survive_a_restart(tmp_path, how):
    for round_number in range(2):
        with running(tmp_path / "data") as broker:
            with RawClient(broker.host, broker.port) as client:
                assert produce_one(client) == round_number
            getattr(broker, how)()
            assert (tmp_path / "data/.kafka_cleanshutdown").exists() == (how == "stop")


def test_clean_shutdown_logs_nothing(tmp_path):
    with running(tmp_path / "data") as broker:
        assert broker.stop() == (0, "")


def test_end_of_standard_input_shuts_the_node_down(tmp_path):
    with running(tmp_path / "data") as broker:
        broker.process.stdin.close()
        broker.process.stdin = None
        broker.process.communicate(timeout=20)
        assert broker.process.returncode == 0
    assert (tmp_path / "data/.kafka_cleanshutdown").exists()


def test_advertised_address_hosts_file_and_cluster_id(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("# ours\n127.0.0.1 b1.kafka.test b1\n")
    advertised = ("--advertised", "proxy.test:9999", "--hosts-file", str(hosts), "--cluster-id", "c" * 22)
    with running(tmp_path / "data", *advertised, listener="b1.kafka.test:0") as broker:
        assert broker.host == "b1.kafka.test"
        with RawClient("127.0.0.1", broker.port) as client:
            cluster = client.request(request("DescribeCluster", 0))
    assert cluster.cluster_id == "c" * 22
    assert [(node.host, node.port) for node in cluster.brokers] == [("proxy.test", 9999)]


def test_ignored_property_is_logged(tmp_path):
    with running(tmp_path / "data", "--set", "num.network.threads=3000", "--set", "num.partitions=2") as broker:
        code, errors = broker.stop()
    assert code == 0
    assert errors == "warning: properties that this broker ignores: num.network.threads\n"


def test_port_in_use_is_an_error(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listener = f"127.0.0.1:{taken.getsockname()[1]}"
        assert_failed(run_to_end(tmp_path / "data", listener=listener), 3, f"error: cannot listen on {listener}: ")
    assert not (tmp_path / "data").exists()


def test_file_as_data_directory_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    assert_failed(run_to_end(tmp_path / "file"), 3, f"error: cannot use the log directory {tmp_path / 'file'}: ")


def test_data_directory_in_use_is_an_error(tmp_path):
    with running(tmp_path / "data"):
        assert_failed(run_to_end(tmp_path / "data"), 3, f"error: the log directory {tmp_path / 'data'} is in use")


def test_data_directory_of_another_node_or_cluster_is_an_error(tmp_path):
    with running(tmp_path / "data", "--cluster-id", "a" * 22) as broker:
        broker.stop()
    assert_failed(
        run_to_end(tmp_path / "data", "--cluster-id", "b" * 22),
        3,
        f"error: {tmp_path / 'data'} belongs to cluster aaaa",
    )
    assert_failed(run_to_end(tmp_path / "data", "--node-id", "2"), 3, f"error: {tmp_path / 'data'} belongs to node 1")
    (tmp_path / "data/meta.properties").write_text("version=1\n")
    assert_failed(run_to_end(tmp_path / "data"), 3, f"error: {tmp_path / 'data/meta.properties'} is damaged")


@pytest.mark.parametrize("version", ["9", "many"])
def test_data_directory_of_another_version_is_an_error(tmp_path, version):
    with running(tmp_path / "data") as broker:
        broker.stop()
    properties = tmp_path / "data/meta.properties"
    properties.write_text(properties.read_text().replace("version=1", f"version={version}"))
    assert_failed(
        run_to_end(tmp_path / "data"), 3, f"error: {properties} has version {version}, this broker reads version 1"
    )


def test_failed_disk_ends_the_broker(tmp_path):
    """A limit of the file size simulates a failed disk: every write above the limit is an error."""
    with running(tmp_path / "data") as broker, RawClient(broker.host, broker.port) as client:
        assert produce_one(client) == 0
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (1, 1))
        with pytest.raises(ConnectionClosed):
            produce_one(client)
        _, errors = broker.process.communicate(timeout=20)
    assert broker.process.returncode == 3
    assert [line for line in errors.splitlines() if line.startswith("error: the log directory failed: ")]
    assert "Traceback" not in errors
    assert not (tmp_path / "data/.kafka_cleanshutdown").exists()


@pytest.mark.parametrize("replacement", ["nothing", "a file"])
def test_removal_of_the_log_directory_ends_the_broker(tmp_path, replacement):
    data = tmp_path / "data"
    another = {"name": "another", "num_partitions": 1, "replication_factor": 1}
    with running(data) as broker, RawClient(broker.host, broker.port) as client:
        assert produce_one(client) == 0
        data.rename(tmp_path / "elsewhere")
        if replacement == "a file":
            data.write_text("")
        with pytest.raises(ConnectionClosed):
            client.request(request("CreateTopics", 7, topics=[another]))
        _, errors = broker.process.communicate(timeout=20)
    assert broker.process.returncode == 3
    assert errors.startswith("error: the log directory failed: ")
    assert errors.count("\n") == 1
    assert not (tmp_path / "elsewhere/.kafka_cleanshutdown").exists()


def test_metadata_log_with_an_unknown_frame_version_is_an_error(tmp_path):
    """The broker does not change a metadata log that it cannot decode."""
    with running(tmp_path / "data") as broker:
        broker.stop()
    log = tmp_path / "data/__cluster_metadata-0/00000000000000000000.log"
    foreign = encode_batch([KeyValue(None, b"\x02\x63\x00")], 0)
    written, position = log.read_bytes(), 0
    while position < len(written):
        last = BatchHeader.parse(written, position)
        position += last.size_bytes
    header = BatchHeader.parse(foreign)._replace(base_offset=last.last_offset + 1, leader_epoch=last.leader_epoch)
    log.write_bytes(written + header.pack() + foreign[HEADER_SIZE_BYTES:])
    done = run_to_end(tmp_path / "data")
    assert_failed(done, 3, f"error: the log directory {tmp_path / 'data'} is damaged or from another broker: ")
    assert "frame version 2" in done.stderr


def test_topic_with_the_longest_name_is_created_and_deleted(tmp_path):
    topic = {"name": "x" * 249, "num_partitions": 1, "replication_factor": 1}
    with running(tmp_path / "data") as broker, RawClient(broker.host, broker.port) as client:
        for _ in range(2):
            [created] = client.request(request("CreateTopics", 7, topics=[topic])).topics
            [deleted] = client.request(request("DeleteTopics", 5, topic_names=["x" * 249])).responses
            assert (created.error_code, deleted.error_code) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--listener", "nowhere"), "'nowhere' is not HOST:PORT"),
        (("--listener", "localhost:99999"), "'localhost:99999' is not HOST:PORT"),
        (("--node-id", "-5"), "--node-id"),
        (("--set", "num.partitions"), "'num.partitions' is not PROPERTY=VALUE"),
        (("--set", "num.partitions=many"), "Invalid value many for configuration num.partitions"),
        (("--wrong",), "--wrong"),
    ],
    ids=lambda value: "",
)
def test_invalid_command_line_is_an_error(tmp_path, arguments, message):
    done = run_to_end(tmp_path / "data", *arguments)
    assert_failed(done, 4, "error: ")
    assert message in done.stderr


def assert_failed(done: subprocess.CompletedProcess[str], code: int, line: str) -> None:
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.startswith(line), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
