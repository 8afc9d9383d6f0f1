"""Control interface over HTTP, on the target of `conftest.py`, which only records the actions in `target.done`.

"whole" in that list means that the control waited until the whole cluster was ready.
"""

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from fixtures.targets.target import NodeEndedError, TargetError
from kafkatrial import roles
from kafkatrial.control import Control, StoppingError
from kafkatrial.control_server import CONNECTIONS_MAX, ControlServer
from kafkatrial.roles import PartitionMetadata

TIMEOUT_S = 60


@pytest.fixture
def control(target):
    return Control(target, lambda target, raise_if_ended: target.done.append("whole"))


@pytest.fixture
def request_to():
    def request_to(url, method, path, headers=None, body=None):
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT_S)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response, json.loads(content) if content else None

    return request_to


@pytest.fixture
def send(control, request_to):
    def send(*arguments):
        response, content = request_to(server.url, *arguments)
        return response.status, content

    with ControlServer(control) as server:
        yield send


def states(send):
    return [node["state"] for node in send("GET", "/cluster")[1]["nodes"]]


class Slow:
    """An action of a target that waits until the test lets it finish."""

    def __init__(self, then):
        self.began, self.may_continue = threading.Event(), threading.Event()
        self._then = then

    def __call__(self, *arguments):
        self.began.set()
        assert self.may_continue.wait(TIMEOUT_S)
        return self._then(*arguments)


@contextmanager
def under_way(slow, do):
    """Run `do`, which calls the slow action, in a thread, and let the action continue at the end of the context.

    The yielded list contains the result of `do` after the context.
    """
    results = []
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(do)
        assert slow.began.wait(TIMEOUT_S)
        try:
            yield results
        finally:
            slow.may_continue.set()
        results.append(future.result())


def test_cluster_lists_nodes_states_and_cuts(send):
    send("POST", "/nodes/2/pause")
    send("POST", "/links/client/3/cut")
    status, cluster = send("GET", "/cluster")
    assert status == 200
    assert cluster["bootstrap_servers"] == "127.9.9.1:9092,127.9.9.2:9092,127.9.9.3:9092"
    assert [node["state"] for node in cluster["nodes"]] == ["running", "paused", "running"]
    assert cluster["cuts"] == [{"source": "client", "destination": 3}]
    assert cluster["capabilities"] == ["link-faults", "process-control"]
    assert send("GET", "/nodes/2") == (200, cluster["nodes"][1])


def test_actions_are_carried_out_in_order(send, target):
    for path in ("/nodes/1/kill", "/nodes/1/restart", "/nodes/1/pause", "/nodes/1/resume", "/links/1/2/cut"):
        assert send("POST", path)[0] == 200, path
    assert send("DELETE", "/links/1/2/cut") == (200, {"source": 1, "destination": 2, "cut": False})
    assert target.done == ["kill 1", "restart 1", "pause 1", "resume 1", "cut 1->2", "heal 1->2"]
    assert send("POST", "/nodes/2/shutdown") == (200, {"node": 2, "state": "shut down"})
    assert send("POST", "/nodes/2/restart") == (200, {"node": 2, "state": "running"})
    assert target.done[-2:] == ["shut down 2", "restart 2"]


_NO_NODE = "a node is an id from 0 to 2147483647, controller, leader:TOPIC:PARTITION or follower:TOPIC:PARTITION"


@pytest.mark.parametrize(
    ("before", "method", "path", "status", "error"),
    [
        ([], "POST", "/nodes/9/kill", 404, "no node 9; there are 1, 2, 3"),
        ([], "GET", "/nodes/0", 404, "no node 0; there are 1, 2, 3"),
        ([], "POST", "/nodes/1/restart", 409, "node 1 is running: restart is not possible"),
        ([], "POST", "/nodes/1/resume", 409, "node 1 is running: resume is not possible"),
        (["/nodes/1/kill"], "POST", "/nodes/1/kill", 409, "node 1 is killed: kill is not possible"),
        (["/nodes/1/kill"], "POST", "/nodes/1/shutdown", 409, "node 1 is killed: shutdown is not possible"),
        (["/nodes/1/shutdown"], "POST", "/nodes/1/pause", 409, "node 1 is shut down: pause is not possible"),
        (["/nodes/1/kill"], "POST", "/nodes/1/pause", 409, "node 1 is killed: pause is not possible"),
        (["/links/1/2/cut"], "POST", "/links/1/2/cut", 409, "the link 1->2 is already cut"),
        ([], "DELETE", "/links/1/2/cut", 409, "the link 1->2 is not cut"),
        ([], "POST", "/links/2/2/cut", 404, "node 2 has no link to itself"),
        ([], "GET", "/", 404, "GET /: no such resource; see docs/control-interface.md"),
        ([], "GET", f"/{'x' * 5000}", 404, f"GET /{'x' * 199}…: no such resource; see docs/control-interface.md"),
        ([], "GET", "/cluster/", 404, "GET /cluster/: no such resource; see docs/control-interface.md"),
        ([], "POST", "/nodes/1/explode", 404, "POST /nodes/1/explode: no such resource; see docs/control-interface.md"),
        ([], "POST", "/nodes/2147483647/kill", 404, "no node 2147483647; there are 1, 2, 3"),
        ([], "POST", "/nodes/2147483648/kill", 400, f"'2147483648' is no node: {_NO_NODE}"),
        ([], "POST", f"/nodes/{'9' * 5000}/kill", 400, f"'{'9' * 60}…' is no node: {_NO_NODE}"),
        ([], "POST", "/nodes/-1/kill", 400, f"'-1' is no node: {_NO_NODE}"),
        ([], "POST", "/nodes/%D9%A1/kill", 400, f"'\u0661' is no node: {_NO_NODE}"),
        ([], "POST", "/nodes/1%0A/kill", 400, "/nodes/1%0A/kill has control characters"),
        ([], "POST", "/stop%0A", 400, "/stop%0A has control characters"),
        ([], "POST", f"/links/client/{10**20}/cut", 400, f"'{10**20}' is no node: {_NO_NODE}"),
        ([], "POST", f"/links/{2**40}/1/cut", 400, f"'{2**40}' is no node: {_NO_NODE}"),
        ([], "POST", "/links/1/client/cut", 400, f"'client' is no node: {_NO_NODE}"),
        ([], "POST", "/nodes/leader:a%20b:0/kill", 400, "'a b' is not a topic name"),
        ([], "POST", "/nodes/leader:..:0/kill", 400, "'..' is not a topic name"),
        ([], "GET", "/topics/./partitions/0", 400, "'.' is not a topic name"),
        ([], "POST", f"/nodes/leader:t:{2**31}/kill", 400, f"'{2**31}' is not a partition, 0 to 2147483647"),
        ([], "POST", "/nodes/observer:t:0/kill", 400, f"'observer:t:0' is no node: {_NO_NODE}"),
        ([], "GET", f"/topics/t/partitions/{'1' * 5000}", 400, f"'{'1' * 60}…' is not a partition, 0 to 2147483647"),
    ],
)
def test_an_error_is_reported_in_one_line_with_its_status(send, target, before, method, path, status, error):
    for path_before in before:
        send("POST", path_before)
    done = [*target.done]
    assert send(method, path) == (status, {"error": error})
    assert target.done == done


METHODS = {
    "/cluster": {"GET"},
    "/nodes/1": {"GET"},
    "/nodes/1/kill": {"POST"},
    "/links/1/2/cut": {"DELETE", "POST"},
    "/topics/t/partitions/0": {"GET"},
    "/restore": {"POST"},
    "/stop": {"POST"},
}
UNSUPPORTED = [
    (method, path, ", ".join(sorted(allowed)))
    for path, allowed in METHODS.items()
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW")
    if method not in allowed
]


@pytest.mark.parametrize(("method", "path", "allowed"), UNSUPPORTED)
def test_an_unsupported_method_is_405_with_the_allowed_methods(control, request_to, target, method, path, allowed):
    with ControlServer(control) as server:
        response, content = request_to(server.url, method, path)
    assert (response.status, response.headers["Allow"], response.headers["Connection"]) == (405, allowed, "close")
    assert content == (None if method == "HEAD" else {"error": f"{method} {path}: the method is {allowed}"})
    assert target.done == []
    assert not control.stop_requested.is_set()


def test_a_failed_action_is_500_and_leaves_the_state_of_the_node(send, target, monkeypatch):
    def fail(node):
        raise TargetError("node 1 did not start again")

    monkeypatch.setattr(target.processes, "restart", fail)
    send("POST", "/nodes/1/kill")
    assert send("POST", "/nodes/1/restart") == (500, {"error": "node 1 did not start again"})
    assert states(send)[0] == "killed"


def test_an_internal_error_is_reported_in_one_line_and_a_file(send, target, monkeypatch, capfd):
    def fail(node):
        raise RuntimeError("of\nseveral lines")

    monkeypatch.setattr(target.processes, "kill", fail)
    assert send("POST", "/nodes/1/kill") == (500, {"error": "internal error: RuntimeError: of several lines"})
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("kafkatrial: internal error: RuntimeError: of (traceback in ")


def test_a_target_without_processes_rejects_actions_on_nodes(target, request_to):
    class TargetWithoutCapabilities:
        name = "bootstrap:h:1"
        capabilities = frozenset()
        bootstrap_servers = "h:1"
        nodes = target.nodes

    with ControlServer(Control(TargetWithoutCapabilities())) as server:
        response, content = request_to(server.url, "POST", "/nodes/1/kill")
        assert (response.status, content) == (501, {"error": "bootstrap:h:1 cannot control its processes"})
        response, content = request_to(server.url, "POST", "/links/1/2/cut")
        assert (response.status, content) == (501, {"error": "bootstrap:h:1 cannot cut links"})
        response, content = request_to(server.url, "POST", "/restore")
        assert (response.status, content) == (200, {"resumed": [], "healed": [], "restarted": []})
        response, content = request_to(server.url, "GET", "/cluster")
        assert [node["state"] for node in content["nodes"]] == ["running"] * 3


def test_a_kill_ends_a_pause(send, target):
    send("POST", "/nodes/1/pause")
    assert send("POST", "/nodes/1/kill") == (200, {"node": 1, "state": "killed"})
    assert send("POST", "/nodes/1/restart") == (200, {"node": 1, "state": "running"})


# --- nodes that end, and actions that take time


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_node_that_ended_on_its_own_is_ended(send, target, is_paused):
    if is_paused:
        send("POST", "/nodes/2/pause")
    target.ended[2] = 139
    send("POST", "/nodes/3/kill")
    _, ended, killed = (
        {name: node[name] for name in ("state", "exit_status", "reason")}
        for node in send("GET", "/cluster")[1]["nodes"]
    )
    assert ended == {"state": "ended", "exit_status": 139, "reason": "last line of 2"}
    assert killed == {"state": "killed", "exit_status": 137, "reason": None}
    for action in ("kill", "shutdown", "pause", "resume"):
        assert send("POST", f"/nodes/2/{action}") == (409, {"error": f"node 2 is ended: {action} is not possible"})
    assert send("POST", "/nodes/2/restart") == (200, {"node": 2, "state": "running"})
    assert states(send) == ["running", "running", "killed"]


@pytest.mark.parametrize("action", ["kill", "shutdown", "pause"])
def test_an_action_on_a_node_that_ended_unnoticed_is_rejected(send, target, action):
    target.ended[2] = 1
    assert send("POST", f"/nodes/2/{action}") == (409, {"error": f"node 2 is ended: {action} is not possible"})
    assert target.done == []


@pytest.mark.parametrize("path", ["/nodes/2/restart", "/restore"])
def test_a_node_that_ends_during_its_restart_is_ended(send, target, monkeypatch, path):
    def end(node):
        target.ended[node] = 3
        raise NodeEndedError(f"node {node} ended by itself: its disk \x1b[31mis\n damaged")

    send("POST", "/nodes/2/kill")
    with monkeypatch.context() as patch:
        patch.setattr(target.processes, "restart", end)
        assert send("POST", path) == (500, {"error": r"node 2 ended by itself: its disk \x1b[31mis damaged"})
    node = send("GET", "/nodes/2")[1]
    assert (node["state"], node["exit_status"], node["reason"]) == ("ended", 3, "last line of 2")
    assert send("POST", "/restore")[1]["restarted"] == [2]
    assert states(send) == ["running"] * 3


def test_other_actions_continue_while_a_restart_waits(send, target, monkeypatch):
    restart = Slow(target.processes.restart)
    monkeypatch.setattr(target.processes, "restart", restart)
    send("POST", "/nodes/1/kill")
    with under_way(restart, lambda: send("POST", "/nodes/1/restart")) as results:
        nodes = send("GET", "/cluster")[1]["nodes"]
        assert [(node["state"], node["action"]) for node in nodes[:2]] == [("killed", "restart"), ("running", None)]
        for action in ("restart", "kill", "pause"):
            assert send("POST", f"/nodes/1/{action}") == (409, {"error": "node 1: restart is in progress"})
        assert send("POST", "/nodes/2/kill")[0] == 200
        assert send("POST", "/links/1/2/cut")[0] == 200
    assert results == [(200, {"node": 1, "state": "running"})]
    assert states(send) == ["running", "killed", "running"]


def test_a_request_does_not_wait_for_many_others(send, target, control, monkeypatch):
    requests = CONNECTIONS_MAX // 2
    began, may_continue = threading.Semaphore(0), threading.Event()

    def find_partition(nodes, topic, partition):
        began.release()
        assert may_continue.wait(TIMEOUT_S)
        return PartitionMetadata(leader_epoch=0, leader=1, replicas=(1,), isr=(1,))

    monkeypatch.setattr(roles, "find_partition", find_partition)
    with ThreadPoolExecutor(requests) as threads:
        pending = [threads.submit(send, "GET", "/nodes/leader:t:0") for _ in range(requests)]
        try:
            assert all(began.acquire(timeout=TIMEOUT_S) for _ in range(requests))
            assert len(send("GET", "/cluster")[1]["nodes"]) == 3
            assert send("POST", "/nodes/2/kill")[0] == 200
            assert send("POST", "/stop")[0] == 200
            assert control.stop_requested.wait(TIMEOUT_S)
        finally:
            may_continue.set()
        assert {each.result()[0] for each in pending} == {200}


def test_requests_of_disconnected_clients_do_not_delay_other_requests(control, request_to, monkeypatch):
    began, may_continue = threading.Semaphore(0), threading.Event()

    def find_partition(nodes, topic, partition):
        began.release()
        assert may_continue.wait(2 * TIMEOUT_S)
        return PartitionMetadata(leader_epoch=0, leader=1, replicas=(1,), isr=(1,))

    monkeypatch.setattr(roles, "find_partition", find_partition)
    with ControlServer(control) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        try:
            for _ in range(CONNECTIONS_MAX):
                with socket.create_connection((host, int(port))) as client:
                    client.sendall(f"GET /nodes/leader:t:0 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                assert began.acquire(timeout=TIMEOUT_S)
            assert request_to(server.url, "GET", "/cluster")[0].status == 200
            assert request_to(server.url, "POST", "/stop")[0].status == 200
            assert control.stop_requested.wait(TIMEOUT_S)
        finally:
            may_continue.set()


def test_one_of_many_concurrent_kills_of_a_node_succeeds(send, target, monkeypatch):
    kill = Slow(target.processes.kill)
    monkeypatch.setattr(target.processes, "kill", kill)
    with under_way(kill, lambda: send("POST", "/nodes/1/kill")) as results, ThreadPoolExecutor(8) as threads:
        others = list(threads.map(lambda _: send("POST", "/nodes/1/kill")[0], range(8)))
    assert (others, results[0][0], target.done) == ([409] * 8, 200, ["kill 1"])


# --- restoring


def test_restoring_ends_all_faults_and_waits(send, target):
    for path in ("/nodes/1/pause", "/nodes/2/kill", "/links/1/3/cut", "/links/client/2/cut"):
        send("POST", path)
    target.ended[3] = 1
    done = len(target.done)
    assert send("POST", "/restore") == (
        200,
        {
            "resumed": [1],
            "healed": [{"source": 1, "destination": 3}, {"source": "client", "destination": 2}],
            "restarted": [2, 3],
        },
    )
    assert sorted(target.done[done : done + 3]) == ["heal 1->3", "heal client->2", "resume 1"]
    assert target.done[done + 3 :] == ["restart 2", "restart 3", "whole"]
    assert states(send) == ["running"] * 3
    assert send("GET", "/cluster")[1]["cuts"] == []


def test_restoring_waits_for_the_cluster_only_if_there_were_faults(send, target):
    send("POST", "/restore")
    assert target.done == []
    for path in ("/nodes/1/kill", "/nodes/1/restart", "/restore", "/restore"):
        assert send("POST", path)[0] == 200
    assert target.done == ["kill 1", "restart 1", "whole"]


def test_restoring_waits_for_actions_in_progress_and_rejects_new_actions(send, control, target, monkeypatch):
    restart = Slow(target.processes.restart)
    monkeypatch.setattr(target.processes, "restart", restart)
    whole = Slow(lambda target, raise_if_ended: target.done.append("whole"))
    monkeypatch.setattr(control, "_await_whole", whole)
    send("POST", "/nodes/1/kill")
    with ThreadPoolExecutor(1) as thread:
        with under_way(restart, lambda: send("POST", "/nodes/1/restart")):
            restored = thread.submit(send, "POST", "/restore")
        assert whole.began.wait(TIMEOUT_S)
        assert send("POST", "/nodes/2/kill") == (409, {"error": "node 2: restore is in progress"})
        assert {node["action"] for node in send("GET", "/cluster")[1]["nodes"]} == {"restore"}
        whole.may_continue.set()
        assert restored.result()[0] == 200
    assert target.done == ["kill 1", "restart 1", "whole"]


@pytest.fixture
def end_fails(target, monkeypatch):
    """Make the end of each cut from node 1 and of each pause of node 1 fail, until the returned list is empty."""
    failing = ["Toxiproxy does not respond"]

    def failing_end(begin):
        @contextmanager
        def begun(first, *rest):
            with begin(first, *rest):
                yield
                if failing and first == 1:
                    raise TargetError(failing[0])

        return begun

    monkeypatch.setattr(target.links, "cut", failing_end(target.links.cut))
    monkeypatch.setattr(target.processes, "pause", failing_end(target.processes.pause))
    return failing


@pytest.mark.parametrize(
    ("begin", "end", "ended"),
    [
        ("/links/1/2/cut", ("DELETE", "/links/1/2/cut"), "heal 1->2"),
        ("/nodes/1/pause", ("POST", "/nodes/1/resume"), "resume 1"),
    ],
)
def test_a_fault_whose_end_failed_is_in_force_and_can_be_ended_again(send, target, end_fails, begin, end, ended):
    send("POST", begin)
    before = send("GET", "/cluster")
    for _ in range(2):
        assert send(*end) == (500, {"error": "Toxiproxy does not respond"})
        assert send("GET", "/cluster") == before
    assert send("POST", begin)[0] == 409
    end_fails.clear()
    assert send(*end)[0] == 200
    assert target.done[-1] == ended
    assert (states(send), send("GET", "/cluster")[1]["cuts"]) == (["running"] * 3, [])
    assert send(*end)[0] == 409


def test_a_fault_whose_end_fails_does_not_keep_other_faults_in_force(send, target, end_fails):
    for path in ("/nodes/1/pause", "/nodes/2/pause", "/links/3/1/cut", "/links/1/3/cut", "/links/2/1/cut"):
        send("POST", path)
    assert send("POST", "/restore") == (500, {"error": "Toxiproxy does not respond"})
    assert {"resume 2", "heal 3->1", "heal 2->1"} <= {*target.done}
    assert states(send) == ["paused", "running", "running"]
    assert send("GET", "/cluster")[1]["cuts"] == [{"source": 1, "destination": 3}]
    end_fails.clear()
    restored = {"resumed": [1], "healed": [{"source": 1, "destination": 3}], "restarted": []}
    assert send("POST", "/restore") == (200, restored)
    assert {"resume 1", "heal 1->3"} <= {*target.done}


def test_a_failed_restoration_is_retried(send, target, monkeypatch):
    def fail(node):
        raise TargetError("its disk is full")

    send("POST", "/nodes/1/kill")
    with monkeypatch.context() as patch:
        patch.setattr(target.processes, "restart", fail)
        assert send("POST", "/restore") == (500, {"error": "its disk is full"})
    assert states(send)[0] == "killed"
    assert send("POST", "/restore")[1]["restarted"] == [1]


# --- stopping


def test_stopping_heals_everything(control, target):
    control.act_on_node(1, "pause")
    control.cut(1, 2)
    control.close()
    assert sorted(target.done[2:]) == ["heal 1->2", "resume 1"]
    with pytest.raises(StoppingError):
        control.act_on_node(2, "kill")


def test_an_error_caused_by_the_stop_is_reported_as_such(control, target, monkeypatch):
    def fail(node):
        control.close()
        raise TargetError("node 1 ended by itself")

    control.act_on_node(1, "kill")
    monkeypatch.setattr(target.processes, "restart", fail)
    with pytest.raises(StoppingError, match="the cluster is being stopped"):
        control.act_on_node(1, "restart")


def test_a_stop_request_gets_a_response_before_the_stop(send, control):
    assert send("POST", "/stop") == (200, {"stopping": True})
    assert control.stop_requested.wait(TIMEOUT_S)


def test_a_closed_server_accepts_no_connection(control, request_to):
    with ControlServer(control) as server:
        pass
    with pytest.raises(ConnectionRefusedError):
        request_to(server.url, "GET", "/cluster")
    assert "control" not in {thread.name for thread in threading.enumerate()}


# --- roles


@pytest.fixture
def metadata(monkeypatch):
    """Return the list of the metadata of t-0 that successive requests receive; the last element is not removed."""
    queued = [PartitionMetadata(leader_epoch=4, leader=2, replicas=(1, 2, 3), isr=(2, 3))]

    def find_partition(nodes, topic, partition):
        now = queued[0] if len(queued) == 1 else queued.pop(0)
        return now if (topic, partition) == ("t", 0) else None

    monkeypatch.setattr(roles, "find_partition", find_partition)
    monkeypatch.setattr(roles, "find_controller", lambda nodes: 3)
    monkeypatch.setattr("kafkatrial.control.TOPIC_TIMEOUT_S", 0)
    return queued


def test_the_metadata_of_a_partition(send, metadata):
    assert send("GET", "/topics/t/partitions/0") == (
        200,
        {"topic": "t", "partition": 0, "leader": 2, "leader_epoch": 4, "replicas": [1, 2, 3], "isr": [2, 3]},
    )
    send("POST", "/nodes/2/kill")
    assert send("GET", "/topics/t/partitions/0")[1]["leader"] is None
    assert send("GET", "/topics/t/partitions/1") == (404, {"error": "no broker knows partition 1 of topic t"})


@pytest.mark.parametrize(
    ("reference", "node"), [("leader:t:0", 2), ("leader%3At%3A0", 2), ("follower:t:0", 3), ("controller", 3)]
)
def test_a_node_by_its_role(send, target, metadata, reference, node):
    assert send("GET", f"/nodes/{reference}")[1]["id"] == node
    assert send("POST", f"/nodes/{reference}/pause") == (200, {"node": node, "state": "paused"})
    assert target.done == [f"pause {node}"]


def test_links_by_role(send, target, metadata):
    assert send("POST", "/links/follower:t:0/leader:t:0/cut")[1] == {"source": 3, "destination": 2, "cut": True}
    assert send("POST", "/links/controller/follower:t:0/cut") == (404, {"error": "node 3 has no link to itself"})
    assert target.done == ["cut 3->2"]


def test_a_request_waits_for_a_role(send, target, metadata):
    """Brokers return a killed node as the leader until its session expires."""
    send("POST", "/nodes/leader:t:0/kill")
    metadata[:] = [metadata[0], PartitionMetadata(5, None, (1, 2, 3), (3,)), PartitionMetadata(6, 3, (1, 2, 3), (3,))]
    assert send("POST", "/nodes/leader:t:0/kill") == (200, {"node": 3, "state": "killed"})
    assert target.done == ["kill 2", "kill 3"]


def test_a_role_that_no_node_has_is_an_error(send, target, metadata, monkeypatch):
    monkeypatch.setattr("kafkatrial.control.ROLE_TIMEOUT_S", 0)
    metadata[:] = [PartitionMetadata(5, None, (1, 2, 3), (2,))]
    assert send("POST", "/nodes/leader:t:0/kill") == (409, {"error": "partition t-0 has no leader"})
    metadata[:] = [PartitionMetadata(5, 2, (1, 2, 3), (2,))]
    assert send("POST", "/nodes/follower:t:0/kill") == (409, {"error": "partition t-0 has no follower in its ISR"})
    assert send("POST", "/nodes/leader:u:0/kill") == (404, {"error": "no broker knows partition 0 of topic u"})
    assert target.done == []


def test_only_nodes_that_can_respond_are_sent_requests(send, control, target, monkeypatch):
    sent_to = []
    monkeypatch.setattr(roles, "find_controller", lambda nodes: sent_to.append([node.id for node in nodes]) or 3)
    send("POST", "/nodes/1/pause")
    send("POST", "/links/client/2/cut")
    assert send("GET", "/nodes/controller")[1]["id"] == 3
    assert sent_to == [[3]]
