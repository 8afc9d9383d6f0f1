"""HTTP of the control interface: a `Control` served on loopback (docs/control-interface.md is the reference).

    GET         /cluster
    GET         /nodes/NODE
    POST        /nodes/NODE/{kill,shutdown,restart,pause,resume}
    GET         /topics/TOPIC/partitions/PARTITION
    POST,DELETE /links/SOURCE/DESTINATION/cut
    POST        /restore
    POST        /stop

Starlette on uvicorn's h11, with further checks, because any client that reaches the port can stop the cluster, and a
browser lets every web page send requests to the port:

- `_Gate` reads the whole body before a request is processed, so that no part of a body is parsed as the next request.
  It rejects requests from web pages: a page can neither forge `Host` nor omit `Origin` in a POST.
- Every error closes its connection, and is `{"error": LINE}`, even the errors of uvicorn.
- `_Connection` bounds the number of connections, and the time within which a request must arrive.
"""

import asyncio
import hmac
import json
import math
import re
import socket
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Self

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from fixtures.targets.target import TargetError
from kafkatrial.control import (
    ACTIONS,
    ConflictError,
    Control,
    ControlError,
    InvalidRequestError,
    NotFoundError,
    StoppingError,
    UnsupportedError,
)
from kafkatrial.errors import report
from linearizability.printable import one_line

HOST = "127.0.0.1"
BODY_BYTES_MAX = 64 * 1024
CONNECTIONS_MAX = 100
REQUEST_TIMEOUT_S = 10.0
"""Timeout from the start of a connection, or from the last response, until a whole request has arrived."""
LINGER_S = 1.0
"""Time for a client to read a rejection: closing at once, with unread bytes, would reset the connection."""
STOP_TIMEOUT_S = 1.0
"""Timeout for responses in progress at a stop, including that of POST /stop."""
_PROMPT_THREADS = 4
_SHOWN_MAX = 200
_CONNECTION = "kafkatrial.connection"
"""Extension of ASGI: `reject` ends the connection of a request."""
Endpoint = Callable[[Request], Response]
_OWN_HOST = re.compile(rb"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?", re.IGNORECASE)
_STATUS: Mapping[type[ControlError], HTTPStatus] = {
    InvalidRequestError: HTTPStatus.BAD_REQUEST,
    NotFoundError: HTTPStatus.NOT_FOUND,
    ConflictError: HTTPStatus.CONFLICT,
    UnsupportedError: HTTPStatus.NOT_IMPLEMENTED,
    StoppingError: HTTPStatus.SERVICE_UNAVAILABLE,
}


class ControlServer:
    """Server of a `Control` on a free port of 127.0.0.1, on a separate thread, until it is closed."""

    def __init__(self, control: Control, token: str | None = None) -> None:
        """Bind a free port and listen.

        Args:
            control: the control to serve.
            token: token that each request must have; None if none is required.
        """
        self._socket = socket.create_server((HOST, 0))
        self.url = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                application(control, token),
                http=_Connection,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=2 * math.ceil(REQUEST_TIMEOUT_S),  # `_Connection` closes an idle connection earlier
            )
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop accepting; return when all responses are sent, or after `STOP_TIMEOUT_S`. Idempotent."""
        self._server.should_exit = True
        self._thread.join(STOP_TIMEOUT_S)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def application(control: Control, token: str | None) -> ASGIApp:
    """Return the control interface as an ASGI application."""
    threads = ThreadPoolExecutor(CONNECTIONS_MAX, "control-request")
    prompt = ThreadPoolExecutor(_PROMPT_THREADS, "control-prompt")

    def cluster(_: Request) -> Response:
        return _json(control.cluster())

    def node(request: Request) -> Response:
        return _json(control.node(request.path_params["node"]))

    def act(request: Request) -> Response:
        return _json(control.act_on_node(request.path_params["node"], request.url.path.rpartition("/")[2]))

    def partition(request: Request) -> Response:
        return _json(control.partition(request.path_params["topic"], request.path_params["partition"]))

    def cut(request: Request) -> Response:
        change = control.cut if request.method == "POST" else control.heal
        return _json(change(request.path_params["source"], request.path_params["destination"]))

    def restore(_: Request) -> Response:
        return _json(control.restore())

    def stop(_: Request) -> Response:
        return _json({"stopping": True}, background=BackgroundTask(control.stop))

    def route(path: str, endpoint: Endpoint, *methods: str, pool: ThreadPoolExecutor = threads) -> Route:
        """Return a route with only these methods (Starlette adds HEAD to GET), whose requests run in a pool of threads.

        Starlette's own pool has fewer threads than there may be connections, so requests that wait could block all
        others. A request keeps its thread even if its client has closed the connection, so requests that never wait
        have a separate pool.
        """

        async def respond(request: Request) -> Response:
            return await asyncio.get_running_loop().run_in_executor(pool, endpoint, request)

        found = Route(path, respond, methods=methods)
        found.methods = {*methods}
        return found

    application = Starlette(
        routes=[
            route("/cluster", cluster, "GET", pool=prompt),
            route("/nodes/{node}", node, "GET"),
            *(route(f"/nodes/{{node}}/{action}", act, "POST") for action in ACTIONS),
            route("/topics/{topic}/partitions/{partition}", partition, "GET"),
            route("/links/{source}/{destination}/cut", cut, "POST", "DELETE"),
            route("/restore", restore, "POST"),
            route("/stop", stop, "POST", pool=prompt),
        ],
        middleware=[Middleware(_Gate, token=token)],
        exception_handlers={
            ControlError: _control_error,
            TargetError: _target_error,
            HTTPException: _http_error,
            Exception: _internal_error,
        },
    )
    application.router.redirect_slashes = False
    return application


# --- responses


def _json(content: Mapping[str, object], status: int = HTTPStatus.OK, **rest: Any) -> Response:
    return Response(_encoded(content), status, media_type="application/json", **rest)


def _encoded(content: Mapping[str, object]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    line = {"error": one_line(message)}
    return _json(line, status, headers={**(headers or {}), "Connection": "close"})


def _control_error(_: Request, error: Exception) -> Response:
    return _error(_STATUS[type(error)], str(error))  # type: ignore[index]  # Starlette's handlers take any exception


def _target_error(_: Request, error: Exception) -> Response:
    return _error(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))


def _http_error(request: Request, error: Exception) -> Response:
    """Respond to an exception of Starlette: 404 if no route matches the path, 405 with the permitted methods."""
    assert isinstance(error, HTTPException)
    what = f"{request.method} {_path(request.scope)}"
    if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return _error(error.status_code, f"{what}: no such resource; see docs/control-interface.md")
    allowed = ", ".join(sorted((error.headers or {})["Allow"].split(", ")))
    return _error(error.status_code, f"{what}: the method is {allowed}", {"Allow": allowed})


def _internal_error(_: Request, error: Exception) -> Response:
    report(error)
    return _error(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal error: {type(error).__name__}: {error}")


def _path(scope: Scope) -> str:
    """Return the path as sent (printable ASCII), shortened to one line."""
    path = str(scope["raw_path"].decode("ascii"))
    return path if len(path) <= _SHOWN_MAX else f"{path[:_SHOWN_MAX]}…"


# --- checks of requests and connections


class _Gate:
    """Middleware that reads the body of a request, and rejects requests from web pages or without the token."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            is_small = await _drain(Headers(scope=scope), receive)
        except ClientDisconnect:
            return
        if not is_small:  # an ASGI application cannot discard the rest of the body, but `reject` can
            message = f"the body has more than {BODY_BYTES_MAX} bytes; no request needs a body"
            scope["extensions"][_CONNECTION]["reject"](HTTPStatus.BAD_REQUEST, message)
            return
        rejection = self._rejection(scope)
        await (rejection or self._app)(scope, _no_body, send)

    def _rejection(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["http_version"] not in {"1.0", "1.1"}:
            return _error(HTTPStatus.BAD_REQUEST, f"HTTP/{scope['http_version']} is not supported; use HTTP/1.1")
        if not _is_own_host(scope) or _is_from_a_web_page(headers):
            return _error(HTTPStatus.FORBIDDEN, "only a client on this machine may control the cluster")
        if "transfer-encoding" in headers and "content-length" in headers:
            return _error(HTTPStatus.BAD_REQUEST, "the request has both Content-Length and Transfer-Encoding")
        if not scope["path"].isprintable():
            return _error(HTTPStatus.BAD_REQUEST, f"{_path(scope)} has control characters")
        if not self._is_authorized(headers):
            return _error(
                HTTPStatus.UNAUTHORIZED,
                "the control token is missing or wrong; send it as Authorization: Bearer TOKEN",
                {"WWW-Authenticate": "Bearer"},
            )
        return None

    def _is_authorized(self, headers: Headers) -> bool:
        if self._token is None:
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._token.encode())


async def _drain(headers: Headers, receive: Receive) -> bool:
    """Read the body, and return whether it has at most `BODY_BYTES_MAX` bytes. A larger body is not read to its end.

    Raises:
        ClientDisconnect: the connection was closed before the whole body had arrived.
    """
    if int(headers.get("content-length", "0")) > BODY_BYTES_MAX:  # h11 accepts only one length, of at most 20 digits
        return False
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        size += len(message["body"])
        if size > BODY_BYTES_MAX:
            return False
        if not message["more_body"]:
            return True


async def _no_body() -> MutableMapping[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


def _is_own_host(scope: Scope) -> bool:
    """Whether `Host` is this machine. With DNS rebinding, it is the name of the web page's server."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return len(hosts) == 1 and _OWN_HOST.fullmatch(hosts[0]) is not None


def _is_from_a_web_page(headers: Headers) -> bool:
    return "origin" in headers or headers.get("sec-fetch-site", "none") != "none"


class _Connection(H11Protocol):
    """Connection of uvicorn with errors in JSON, and with limits of time and number."""

    _deadline: asyncio.TimerHandle | None = None
    _is_rejected = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            self._reject(HTTPStatus.SERVICE_UNAVAILABLE, f"there are {CONNECTIONS_MAX} connections already")
        else:
            self._set_deadline(REQUEST_TIMEOUT_S, self._expire)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_rejected:
            super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if self.scope is not None:
            self.scope["extensions"] = {_CONNECTION: {"reject": self._reject}}
        cycle: RequestResponseCycle | None = self.cycle  # uvicorn's annotation leaves out that there may be none yet
        if cycle is not None and not (cycle.more_body or cycle.response_complete):
            self._clear_deadline()  # the request has arrived; an action may take as long as it needs

    def on_response_complete(self) -> None:
        self._set_deadline(REQUEST_TIMEOUT_S, self._expire)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Respond to bytes that h11 cannot parse."""
        self._reject(HTTPStatus.BAD_REQUEST, f"the request is not valid HTTP: {sys.exception() or msg}"[:_SHOWN_MAX])

    def _set_deadline(self, after_s: float, action: Callable[[], None]) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(after_s, action)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        """Close an idle connection without a response; reject a request that arrives too slowly."""
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.transport.close()
        else:
            self._reject(HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive in time")

    def _reject(self, status: HTTPStatus, message: str) -> None:
        """Respond, unless a response has begun, and close the connection without the application's response."""
        if self._is_rejected or self.transport.is_closing():
            return
        self._is_rejected = True
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            body = _encoded({"error": message})
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ]
            response = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write_eof()
        self.flow.resume_reading()
        self._set_deadline(LINGER_S, self.transport.close)
