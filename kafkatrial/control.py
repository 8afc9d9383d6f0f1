"""The control interface of `kafkatrial broker`: break a cluster on command, over HTTP on loopback, from any language.

    GET    /cluster                              nodes, their states, cuts
    POST   /nodes/ID/{kill,shutdown,restart,pause,resume}
    POST   /links/SOURCE/DESTINATION/cut         SOURCE is a node id, or `client`
    DELETE /links/SOURCE/DESTINATION/cut
    POST   /stop

Answers are JSON; an error is `{"error": LINE}`. docs/control-interface.md is the reference. `Control` keeps the state
and knows no HTTP; requests come in on threads, and it serves one at a time.
"""

import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from enum import StrEnum
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fixtures.targets.controls import LinkControl, ProcessControl
from fixtures.targets.target import Target, TargetError

CLIENT = "client"
_POLL_S = 0.05
"""How soon the server notices that it is to stop."""


class NodeState(StrEnum):
    """What we did to a node last."""

    RUNNING = "running"
    PAUSED = "paused"
    KILLED = "killed"
    SHUT_DOWN = "shut down"


class ControlError(Exception):
    """A request that cannot be done; the message is one line."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


_ALLOWED = {
    "kill": {NodeState.RUNNING, NodeState.PAUSED},
    "shutdown": {NodeState.RUNNING},
    "restart": {NodeState.KILLED, NodeState.SHUT_DOWN},
    "pause": {NodeState.RUNNING},
    "resume": {NodeState.PAUSED},
}
"""The states from which a node can be made to do something."""


class Control:
    """A started target, and what was done to it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._states = {node.id: NodeState.RUNNING for node in target.nodes}
        self._paused: dict[int, AbstractContextManager[None]] = {}
        self._cuts: dict[tuple[int | str, int], AbstractContextManager[None]] = {}
        self._lock = threading.Lock()
        self._stopping = False
        self.stop_requested = threading.Event()
        """Set once the answer to `POST /stop` has gone out."""

    def cluster(self) -> dict[str, object]:
        """Everything there is to know."""
        with self._lock:
            nodes = [
                {"id": node.id, "host": node.host, "port": node.port, "state": self._states[node.id]}
                for node in self._target.nodes
            ]
            return {
                "target": self._target.name,
                "bootstrap_servers": self._target.bootstrap_servers,
                "capabilities": sorted(map(str, self._target.capabilities)),
                "nodes": nodes,
                "cuts": [{"source": source, "destination": destination} for source, destination in self._cuts],
            }

    def act_on_node(self, node: int, action: str) -> dict[str, object]:
        """kill, shutdown, restart, pause or resume; returns the node's new state."""
        with self._lock:
            self._know(node)
            if not isinstance(self._target, ProcessControl):
                raise self._cannot("control its processes")
            state = self._states[node]
            if state not in _ALLOWED[action]:
                raise ControlError(HTTPStatus.CONFLICT, f"node {node} is {state}: it cannot be asked to {action}")
            self._states[node] = self._act(self._target, node, action)
            return {"node": node, "state": self._states[node]}

    def _act(self, processes: ProcessControl, node: int, action: str) -> NodeState:
        match action:
            case "kill":
                processes.kill(node)
                self._paused.pop(node, None)
                return NodeState.KILLED
            case "shutdown":
                processes.shut_down(node)
                return NodeState.SHUT_DOWN
            case "restart":
                processes.restart(node)
            case "pause":
                pause = processes.pause(node)
                pause.__enter__()
                self._paused[node] = pause
                return NodeState.PAUSED
            case _:
                self._paused.pop(node).__exit__(None, None, None)
        return NodeState.RUNNING

    def cut(self, source: int | str, destination: int) -> dict[str, object]:
        """Cut one directed link until it is healed."""
        with self._lock:
            self._know_link(source, destination)
            if not isinstance(self._target, LinkControl):
                raise self._cannot("cut links")
            if (source, destination) in self._cuts:
                raise ControlError(HTTPStatus.CONFLICT, f"the link {source}->{destination} is already cut")
            cut = self._target.cut(source, destination)
            cut.__enter__()
            self._cuts[source, destination] = cut
            return {"source": source, "destination": destination, "cut": True}

    def heal(self, source: int | str, destination: int) -> dict[str, object]:
        """Undo a cut."""
        with self._lock:
            self._know_link(source, destination)
            cut = self._cuts.pop((source, destination), None)
            if cut is None:
                raise ControlError(HTTPStatus.CONFLICT, f"the link {source}->{destination} is not cut")
            cut.__exit__(None, None, None)
            return {"source": source, "destination": destination, "cut": False}

    def stop(self) -> dict[str, object]:
        """Ask the command to end, which it does once `answered` was called."""
        self._stopping = True
        return {"stopping": True}

    def answered(self) -> None:
        """The answer has gone out."""
        if self._stopping:
            self.stop_requested.set()

    def heal_all(self) -> None:
        """Resume and heal everything, so that a stopping cluster can say goodbye."""
        with self._lock, ExitStack() as stack:
            for context in (*self._paused.values(), *self._cuts.values()):
                stack.push(context)
            self._paused.clear()
            self._cuts.clear()

    def _know(self, node: int) -> None:
        if node not in self._states:
            known = ", ".join(map(str, self._states))
            raise ControlError(HTTPStatus.NOT_FOUND, f"no node {node}; there are {known}")

    def _know_link(self, source: int | str, destination: int) -> None:
        if source != CLIENT:
            self._know(int(source))
        self._know(destination)
        if source == destination:
            raise ControlError(HTTPStatus.NOT_FOUND, f"node {source} has no link to itself")

    def _cannot(self, what: str) -> ControlError:
        return ControlError(HTTPStatus.NOT_IMPLEMENTED, f"{self._target.name} cannot {what}")


Route = Callable[[Control, Mapping[str, str]], dict[str, object]]

_ROUTES: tuple[tuple[str, re.Pattern[str], Route], ...] = (
    ("GET", re.compile(r"/cluster"), lambda control, _: control.cluster()),
    ("POST", re.compile(r"/stop"), lambda control, _: control.stop()),
    (
        "POST",
        re.compile(r"/nodes/(?P<node>\d+)/(?P<action>kill|shutdown|restart|pause|resume)"),
        lambda control, path: control.act_on_node(int(path["node"]), path["action"]),
    ),
    (
        "POST",
        re.compile(r"/links/(?P<source>\d+|client)/(?P<destination>\d+)/cut"),
        lambda control, path: control.cut(_source(path["source"]), int(path["destination"])),
    ),
    (
        "DELETE",
        re.compile(r"/links/(?P<source>\d+|client)/(?P<destination>\d+)/cut"),
        lambda control, path: control.heal(_source(path["source"]), int(path["destination"])),
    ),
)


def _source(text: str) -> int | str:
    return CLIENT if text == CLIENT else int(text)


def answer(control: Control, method: str, path: str) -> dict[str, object]:
    """Find the route and do it.

    Raises:
        ControlError: there is no such route, or it cannot be done.
        TargetError: the cluster did not do it.
    """
    matching = [(verb, found, route) for verb, pattern, route in _ROUTES if (found := pattern.fullmatch(path))]
    for verb, found, route in matching:
        if verb == method:
            return route(control, found.groupdict())
    if matching:
        allowed = ", ".join(verb for verb, _, _ in matching)
        raise ControlError(HTTPStatus.METHOD_NOT_ALLOWED, f"{method} {path}: the method is {allowed}")
    raise ControlError(HTTPStatus.NOT_FOUND, f"{method} {path}: no such resource; see docs/control-interface.md")


class ControlServer(ThreadingHTTPServer):
    """Serves a `Control` on a free port of 127.0.0.1, on threads of its own."""

    daemon_threads = True

    def __init__(self, control: Control) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.control = control
        threading.Thread(target=self.serve_forever, args=(_POLL_S,), name="control", daemon=True).start()

    @property
    def url(self) -> str:
        """Where it is served."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: ControlServer
    protocol_version = "HTTP/1.1"
    timeout = 30
    wbufsize = -1  # an answer is one packet

    def _handle(self) -> None:
        try:
            self._refuse_strangers()
            self.rfile.read(self._body_size())
            self._send(HTTPStatus.OK, answer(self.server.control, self.command, self.path))
        except ControlError as error:
            self._send(error.status, {"error": str(error)})
        except TargetError as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": str(error)})
        self.server.control.answered()

    do_GET = do_POST = do_DELETE = _handle  # noqa: N815  http.server's names

    def _refuse_strangers(self) -> None:
        """A web page that a browser on this machine shows must not stop a broker: it cannot forge this header."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in {"127.0.0.1", "localhost"} or "Origin" in self.headers:
            raise ControlError(HTTPStatus.FORBIDDEN, "only a client on this machine may control the cluster")

    def _body_size(self) -> int:
        """Bytes that are of no use here, and must be gone before the connection's next request."""
        text = self.headers.get("Content-Length") or "0"
        if not text.isdecimal():
            self.close_connection = True
            raise ControlError(HTTPStatus.BAD_REQUEST, f"Content-Length is {text!r}, not a number of bytes")
        return int(text)

    def _send(self, status: HTTPStatus, body: Mapping[str, object]) -> None:
        data = json.dumps(body).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  http.server's name
        """Standard error is for errors."""
