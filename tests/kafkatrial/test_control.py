"""The control interface over real HTTP, on a target that remembers what it was asked."""

import http.client
import json

import pytest

from fixtures.targets.target import TargetError
from kafkatrial.control import Control, ControlServer


@pytest.fixture
def server(target):
    server = ControlServer(Control(target))
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def ask(server):
    def ask(method, path, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        body = json.loads(response.read())
        connection.close()
        return response.status, body

    return ask


def test_cluster_tells_nodes_states_and_cuts(ask):
    ask("POST", "/nodes/2/pause")
    ask("POST", "/links/client/3/cut")
    status, cluster = ask("GET", "/cluster")
    assert status == 200
    assert cluster["bootstrap_servers"] == "127.9.9.1:9092,127.9.9.2:9092,127.9.9.3:9092"
    assert [node["state"] for node in cluster["nodes"]] == ["running", "paused", "running"]
    assert cluster["cuts"] == [{"source": "client", "destination": 3}]
    assert cluster["capabilities"] == ["link-faults", "process-control"]


def test_what_is_asked_is_done_in_order(ask, target):
    for path in ("/nodes/1/kill", "/nodes/1/restart", "/nodes/1/pause", "/nodes/1/resume", "/links/1/2/cut"):
        assert ask("POST", path)[0] == 200, path
    assert ask("DELETE", "/links/1/2/cut") == (200, {"source": 1, "destination": 2, "cut": False})
    assert target.done == ["kill 1", "restart 1", "pause 1", "resume 1", "cut 1->2", "heal 1->2"]
    assert ask("POST", "/nodes/2/shutdown") == (200, {"node": 2, "state": "shut down"})
    assert ask("POST", "/nodes/2/restart") == (200, {"node": 2, "state": "running"})
    assert target.done[-2:] == ["shut down 2", "restart 2"]


@pytest.mark.parametrize(
    ("before", "method", "path", "status", "error"),
    [
        ([], "POST", "/nodes/9/kill", 404, "no node 9; there are 1, 2, 3"),
        ([], "POST", "/nodes/1/restart", 409, "node 1 is running: it cannot be asked to restart"),
        ([], "POST", "/nodes/1/resume", 409, "node 1 is running: it cannot be asked to resume"),
        (["/nodes/1/kill"], "POST", "/nodes/1/kill", 409, "node 1 is killed: it cannot be asked to kill"),
        (["/nodes/1/kill"], "POST", "/nodes/1/shutdown", 409, "node 1 is killed: it cannot be asked to shutdown"),
        (["/nodes/1/shutdown"], "POST", "/nodes/1/pause", 409, "node 1 is shut down: it cannot be asked to pause"),
        (["/nodes/1/kill"], "POST", "/nodes/1/pause", 409, "node 1 is killed: it cannot be asked to pause"),
        (["/links/1/2/cut"], "POST", "/links/1/2/cut", 409, "the link 1->2 is already cut"),
        ([], "DELETE", "/links/1/2/cut", 409, "the link 1->2 is not cut"),
        ([], "POST", "/links/2/2/cut", 404, "node 2 has no link to itself"),
        ([], "GET", "/nodes/1/kill", 405, "GET /nodes/1/kill: the method is POST"),
        ([], "GET", "/", 404, "GET /: no such resource; see docs/control-interface.md"),
        ([], "POST", "/nodes/1/explode", 404, "POST /nodes/1/explode: no such resource; see docs/control-interface.md"),
    ],
)
def test_an_error_is_one_line_with_its_status(ask, before, method, path, status, error):
    for done in before:
        ask("POST", done)
    assert ask(method, path) == (status, {"error": error})


def test_what_the_cluster_fails_to_do_is_an_error_of_its_own(ask, target, monkeypatch):
    def fail(node):
        raise TargetError("node 1 did not start again")

    monkeypatch.setattr(target, "restart", fail)
    ask("POST", "/nodes/1/kill")
    assert ask("POST", "/nodes/1/restart") == (500, {"error": "node 1 did not start again"})
    assert ask("GET", "/cluster")[1]["nodes"][0]["state"] == "killed"


def test_a_target_without_processes_says_so(target):
    class Bare:
        name = "bootstrap:h:1"
        nodes = target.nodes

    server = ControlServer(Control(Bare()))
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("POST", "/nodes/1/kill")
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["error"]) == (
        501,
        "bootstrap:h:1 cannot control its processes",
    )
    connection.close()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("headers", [{"Host": "evil.example:80"}, {"Origin": "http://evil.example"}])
def test_web_pages_are_refused(ask, target, headers):
    assert ask("POST", "/nodes/1/kill", headers)[0] == 403
    assert target.done == []


def test_a_kill_ends_a_pause(ask, target):
    ask("POST", "/nodes/1/pause")
    assert ask("POST", "/nodes/1/kill") == (200, {"node": 1, "state": "killed"})
    assert ask("POST", "/nodes/1/restart") == (200, {"node": 1, "state": "running"})


def test_stopping_heals_everything(target):
    control = Control(target)
    control.act_on_node(1, "pause")
    control.cut(1, 2)
    control.heal_all()
    assert sorted(target.done[2:]) == ["heal 1->2", "resume 1"]


def test_a_stop_is_answered_before_it_happens(target):
    control = Control(target)
    control.answered()
    assert control.stop() == {"stopping": True}
    assert not control.stop_requested.is_set()
    control.answered()
    assert control.stop_requested.is_set()


@pytest.mark.parametrize("length", ["many", "-1"])
def test_a_length_that_is_none_is_refused(ask, length):
    assert ask("GET", "/cluster", {"Content-Length": length}) == (
        400,
        {"error": f"Content-Length is {length!r}, not a number of bytes"},
    )
