"""`kafkatrial broker` as a process: its first lines, its control, each way to end it, and no residue."""

import http.client
import re
import signal
import socket
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import kafkatrial.cluster
from fixtures.targets.catalogue import parse_target
from fixtures.targets.target import NotInstalledError
from kafkatrial import suite
from kafkatrial.cluster import ClusterError, KafkaCluster
from kafkatrial.commands.broker import run_broker
from kafkatrial.errors import UsageError
from tests.waiting import wait_until

pytestmark = pytest.mark.sampled(2)

COMMAND = [sys.executable, "-m", "kafkatrial", "broker"]
HEAVY = {"pyarrow", "jinja2", "hypothesis", "pyspark", "pydantic", "typer", "kio", "rich"}


class Broker:
    """Process of the command, started and ready."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [*COMMAND, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.bootstrap_servers = self.process.stdout.readline().strip()
        self.control = self.process.stdout.readline().strip()
        self.started = psutil.Process(self.process.pid).children(recursive=True) if self.control else []

    def end(self):
        self.process.stdin.close()
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, errors

    def left_running(self):
        """Return the nodes and guards that still run after 10 s; a guard ends its node when the command is killed."""
        return psutil.wait_procs(self.started, timeout=10)[1]


@pytest.fixture
def start():
    """Yield a function that starts the command; commands that a failing test leaves running are killed."""
    brokers = []

    def start(*words):
        brokers.append(Broker(*words))
        return brokers[-1]

    yield start
    for broker in brokers:
        broker.process.kill()
        broker.process.wait()


def end_by_signal(number):
    return lambda broker: broker.process.send_signal(number)


def end_by_request(broker):
    address = broker.control.removeprefix("control http://")
    host, _, port = address.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    connection.request("POST", "/stop")
    assert connection.getresponse().read() == b'{"stopping": true}\n'
    connection.close()


@pytest.mark.parametrize(
    ("words", "nodes", "end"),
    [
        ((), 3, end_by_signal(signal.SIGTERM)),
        (("--nodes=1",), 1, end_by_signal(signal.SIGINT)),
        (("--nodes=1", "--exit-with-stdin"), 1, lambda broker: broker.process.stdin.close()),
        (("--nodes=1",), 1, end_by_request),
    ],
    ids=["SIGTERM", "SIGINT", "stdin", "request"],
)
def test_the_command_prints_its_addresses_and_leaves_no_process(words, nodes, end, start):
    broker = start(*words)
    addresses = broker.bootstrap_servers.split(",")
    assert len(addresses) == nodes
    assert all(re.fullmatch(r"127\.\d+\.\d+\.\d+:\d+", address) for address in addresses)
    assert re.fullmatch(r"control http://127\.0\.0\.1:\d+", broker.control)
    assert broker.started
    end(broker)
    assert broker.process.wait(30) == 0
    assert broker.end() == (0, "")
    assert broker.left_running() == []


def test_a_sigkill_leaves_no_process(start):
    broker = start("--nodes=1")
    broker.process.kill()
    broker.end()
    assert broker.left_running() == []


def test_no_heavy_module_is_imported_before_the_first_line():
    """The imports are checked, not the start time, because the time depends on the machine."""
    code = "import sys; from kafkatrial.__main__ import exit_code; exit_code(['broker', '--nodes', '2'])"
    code += "; print(*{name.partition('.')[0] for name in sys.modules})"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stdout.split()
    assert "fixtures" in modules
    assert HEAVY.isdisjoint(modules)


def test_records_survive_in_a_data_directory(tmp_path, start):
    payload = uuid.uuid4().bytes
    for start_number in range(2):
        broker = start("--nodes=1", "--data", str(tmp_path / "data"), "--exit-with-stdin")
        if start_number == 0:
            assert write(broker.bootstrap_servers, payload) == 0
        else:
            assert read(broker.bootstrap_servers, 0) == payload
        assert broker.end() == (0, "")


def test_the_requested_port_is_used(start):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    broker = start("--nodes=1", "--port", str(port), "--exit-with-stdin")
    assert broker.bootstrap_servers.endswith(f":{port}")
    assert broker.end() == (0, "")


@pytest.fixture(scope="module")
def cluster():
    with KafkaCluster.start(nodes=1) as cluster:
        yield cluster


def write(servers, payload):
    """Write a record and return its offset."""
    reports = []
    producer = Producer({"bootstrap.servers": servers})
    producer.produce("kept", payload, on_delivery=lambda error, message: reports.append((error, message.offset())))
    producer.flush(30)
    ((error, offset),) = reports
    assert error is None
    return offset


def read(servers, offset):
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("kept", 0, offset)])
    message = consumer.poll(30)
    consumer.close()
    return message.value()


@pytest.mark.parametrize(("end", "state"), [(KafkaCluster.kill, "killed"), (KafkaCluster.shut_down, "shut down")])
def test_an_ended_node_restarts_with_its_records(cluster, end, state):
    payload = uuid.uuid4().bytes
    offset = write(cluster.bootstrap_servers, payload)
    end(cluster, 1)
    assert [node.state for node in cluster.nodes] == [state]
    cluster.restart(1)
    assert [node.state for node in cluster.nodes] == ["running"]
    assert read(cluster.bootstrap_servers, offset) == payload


def test_a_paused_node_responds_when_it_is_resumed(cluster):
    with cluster.pause(1):
        assert cluster.nodes[0].state == "paused"
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce("kept", b"waiting")
        assert producer.flush(0.5) == 1
    assert producer.flush(30) == 0


@pytest.mark.toxiproxy
def test_a_cut_client_waits_for_the_link_to_heal(cluster):
    with cluster.cut("client", 1):
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce("kept", b"waiting")
        assert producer.flush(0.5) == 1
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def three():
    with KafkaCluster.start() as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for created in admin.create_topics([NewTopic("roles", 2, 3)]).values():
            created.result(60)
        yield cluster
        cluster.restore()


def process_of(cluster, node):
    """Return the node's process, not its guard."""
    found = [
        process
        for process in psutil.Process(cluster._process.pid).children(recursive=True)
        if "reference_broker" in " ".join(process.cmdline())
        and any(Path(word).parent.name == str(node) for word in process.cmdline())
        and "guard.py" not in " ".join(process.cmdline())
    ]
    (process,) = found
    return process


def test_a_node_that_ends_on_its_own_is_reported_and_restored(three):
    process_of(three, 2).kill()
    wait_until(lambda: three.nodes[1].state != "running")
    node = three.nodes[1]
    assert (node.state, node.exit_status, node.action) == ("ended", 137, None)
    assert node.reason
    with three.pause(1), three.cut("client", 3), three.cut(3, 1):
        three.restore()
        assert [node.state for node in three.nodes] == ["running"] * 3
        assert three._request("GET", "/cluster")["cuts"] == []
    assert set(three.partition("roles", 1).isr) == {1, 2, 3}


def test_a_role_is_found_while_no_client_reaches_the_cluster(three):
    leader = three.leader("roles", 0)
    with three.cut("client", 1), three.cut("client", 2), three.cut("client", 3):
        assert three.leader("roles", 0) == leader
        assert three.controller() in {1, 2, 3}


def test_faults_by_role(three):
    leader, follower, partition = three.leader("roles", 1), three.follower("roles", 1), three.partition("roles", 1)
    assert (partition.topic, partition.partition, partition.leader) == ("roles", 1, leader)
    assert follower in partition.isr
    assert follower != leader
    three.kill("leader:roles:1")
    assert {node.id for node in three.nodes if node.state == "killed"} == {leader}
    assert three.leader("roles", 1) in {1, 2, 3} - {leader}
    assert three.partition("roles", 1).leader_epoch > partition.leader_epoch
    three.restart(leader)
    with three.pause("controller") as controller:
        assert {node.id for node in three.nodes if node.state == "paused"} == {controller}
    three.restore()
    assert three.controller() in {1, 2, 3}


@pytest.mark.parametrize("end", [end_by_signal(signal.SIGTERM), end_by_request], ids=["SIGTERM", "request"])
def test_the_command_ends_while_a_restart_waits(start, end):
    """The restart of one node waits for a quorum; without a quorum the node serves no clients."""
    broker = start()
    url = broker.control.removeprefix("control ")
    cluster = KafkaCluster(broker.process, broker.bootstrap_servers, url)
    for node in (1, 2):
        cluster.kill(node)
    cluster.pause(3).__enter__()
    with ThreadPoolExecutor(2) as thread:
        restart = thread.submit(cluster.restart, 1)
        wait_until(lambda: cluster.nodes[0].action == "restart" or restart.done())
        second = thread.submit(cluster.restart, 2)
        wait_until(lambda: cluster.nodes[1].action == "restart" or second.done())
        broker.started = psutil.Process(broker.process.pid).children(recursive=True)
        end(broker)
        assert broker.process.wait(60) == 0
        for future in (restart, second):
            assert isinstance(future.exception(), ClusterError | None)
    assert broker.end() == (0, "")
    assert broker.left_running() == []


@pytest.mark.parametrize("words", [["--control-token=secret"], []], ids=["option", "environment"])
def test_requests_without_the_control_token_are_rejected(start, monkeypatch, words):
    monkeypatch.setenv("KAFKATRIAL_CONTROL_TOKEN", "other" if words else "secret")
    broker = start("--nodes=1", "--exit-with-stdin", *words)
    url = broker.control.removeprefix("control ")
    assert KafkaCluster(broker.process, broker.bootstrap_servers, url, "secret").nodes[0].state == "running"
    for token in (None, "other"):
        with pytest.raises(ClusterError, match="the control token is missing or wrong"):
            KafkaCluster(broker.process, broker.bootstrap_servers, url, token).kill(1)
    assert broker.end() == (0, "")


def test_a_cluster_in_python_sends_the_token_of_the_environment(monkeypatch):
    monkeypatch.setenv("KAFKATRIAL_CONTROL_TOKEN", "secret")
    with KafkaCluster.start(nodes=1) as cluster:
        assert cluster.nodes[0].state == "running"


def test_a_broker_without_settings_starts(start):
    try:
        parse_target("tansu")
    except NotInstalledError as missing:
        pytest.skip(str(missing))
    broker = start("--target=tansu")
    assert re.fullmatch(r"127\.\d+\.\d+\.\d+:\d+", broker.bootstrap_servers)
    end_by_signal(signal.SIGTERM)(broker)
    assert broker.end() == (0, "")


@pytest.mark.parametrize("target", ["bootstrap:127.0.0.1:1", "librdkafka-mock", "simulation"])
def test_a_target_without_processes_is_rejected(target):
    with pytest.raises(UsageError, match=f"^{target}: it .*; use --target reference$"):
        run_broker(["--target", target])


@pytest.mark.parametrize("token", ["", "two words", "sécret", "line\n"])
def test_a_token_that_no_header_can_contain_is_rejected(token, monkeypatch):
    with pytest.raises(UsageError, match=r"^--control-token: a token is printable ASCII characters"):
        run_broker(["--control-token", token])
    monkeypatch.setenv("KAFKATRIAL_CONTROL_TOKEN", token)
    with pytest.raises(UsageError, match=r"^environment variable KAFKATRIAL_CONTROL_TOKEN: a token is printable"):
        run_broker([])


def test_an_impossible_action_is_reported_in_one_line(cluster):
    with pytest.raises(ClusterError, match=r"^no node 7; there are 1$"):
        cluster.kill(7)


def test_the_error_of_a_cluster_that_does_not_start_has_the_reason():
    with pytest.raises(ClusterError, match="refrence: unknown target; did you mean reference"):
        KafkaCluster.start("refrence")


def test_a_cluster_that_neither_starts_nor_ends_is_killed(monkeypatch):
    script = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); os.close(1); time.sleep(600)"
    monkeypatch.setattr(suite, "command", lambda: [sys.executable, "-c", script])
    monkeypatch.setattr(kafkatrial.cluster, "_STOP_TIMEOUT_S", 0.01)
    with pytest.raises(ClusterError) as raised:
        KafkaCluster.start()
    assert not psutil.pid_exists(int(str(raised.value)))


def test_a_stopped_cluster_leaves_no_residue():
    before = set(psutil.Process().children(recursive=True))
    cluster = KafkaCluster.start(nodes=1)
    started = set(psutil.Process().children(recursive=True)) - before
    assert started
    cluster.stop()
    cluster.stop()
    assert psutil.wait_procs(started, timeout=10)[1] == []
