"""Hostile requests to the control interface: requests of web pages and of broken clients do not change the cluster."""

import json
import socket

import pytest

from kafkatrial import control_server
from kafkatrial.control import Control
from kafkatrial.control_server import BODY_BYTES_MAX, ControlServer

TIMEOUT_S = 60
KILL = b"POST /nodes/1/kill HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
"""A valid request that tests send as a body, or after a request that is rejected. It must not be executed."""
FORBIDDEN = "only a client on this machine may control the cluster"
TOO_LARGE = f"the body has more than {BODY_BYTES_MAX} bytes; no request needs a body"


@pytest.fixture
def control(target):
    return Control(target, lambda target, raise_if_ended: None)


@pytest.fixture
def server(control):
    with ControlServer(control) as server:
        yield server


def connect(server):
    host, _, port = server.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), TIMEOUT_S)


def exchange(server, *sent):
    """Send everything; return the bytes received until the server has closed the connection."""
    with connect(server) as connection:
        for data in sent:
            connection.sendall(data)
        return receive_all(connection)


def receive_all(connection):
    received = b""
    try:
        while data := connection.recv(65536):
            received += data
    except ConnectionResetError:
        pass  # the server closed the connection with unread bytes
    return received


def responses(received):
    """Return the status, the body parsed from JSON, and the `Connection` header of each response in these bytes."""
    found = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        length = int(headers["content-length"])
        assert headers["content-type"] == "application/json"
        found.append((int(lines[0].split()[1]), json.loads(rest[:length]), headers.get("connection")))
        received = rest[length:]
    return found


def request(line="POST /nodes/1/kill HTTP/1.1", *headers, host="127.0.0.1", body=b""):
    """Return the bytes of a request. If `host` is None, the request has no header `Host`."""
    lines = [line, *([f"Host: {host}"] if host is not None else []), *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def with_kill_as_body(line="POST /nodes/1/kill HTTP/1.1", *headers, **rest):
    """Return the bytes of a request whose body is itself a valid request."""
    return request(line, f"Content-Length: {len(KILL)}", *headers, body=KILL, **rest)


@pytest.mark.parametrize(
    ("sent", "status", "error"),
    [
        pytest.param(
            with_kill_as_body(host="evil.example"), 403, FORBIDDEN, id="a request as the body after another host"
        ),
        pytest.param(
            with_kill_as_body("POST /nodes/1/kill HTTP/1.1", "Origin: http://evil.example"),
            403,
            FORBIDDEN,
            id="a request as the body after an origin",
        ),
        pytest.param(
            with_kill_as_body(host="evil.example") + KILL,
            403,
            FORBIDDEN,
            id="a request as the body and after it",
        ),
        pytest.param(
            with_kill_as_body("GET /nowhere HTTP/1.1") + KILL,
            404,
            "GET /nowhere: no such resource; see docs/control-interface.md",
            id="a request as the body and after it, 404",
        ),
        pytest.param(
            with_kill_as_body("PUT /nodes/1/kill HTTP/1.1") + KILL,
            405,
            "PUT /nodes/1/kill: the method is POST",
            id="a request as the body and after it, 405",
        ),
        pytest.param(
            request("DELETE /links/1/2/cut HTTP/1.1") + KILL, 409, "the link 1->2 is not cut", id="pipelined after 409"
        ),
        pytest.param(
            request("POST /nodes/9/kill HTTP/1.1") + KILL, 404, "no node 9; there are 1, 2, 3", id="pipelined after 404"
        ),
    ],
)
def test_an_error_ends_the_connection_and_discards_later_requests(server, target, sent, status, error):
    assert responses(exchange(server, sent)) == [(status, {"error": error}, "close")]
    assert target.done == []


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "127.0.0.2",
            "0.0.0.0",
        ),
        *("[::1]", "[::1]:80", "[::ffff:127.0.0.1]", "2130706433", "127.1", "0x7f.0.0.1", "localhost.", ""),
        *("localhost@evil.example", "evil.example#127.0.0.1", "127.0.0.1:", "127.0.0.1:80:80", "127.0.0.1:99999999"),
        *("127.0.0.1, evil.example", "127.0.0.1 evil.example", "127.0.0.1\r\n evil.example", ":80", "127.0.0.1/"),
    ],
)
def test_another_host_header_is_rejected(server, target, host):
    assert responses(exchange(server, request(host=host))) == [(403, {"error": FORBIDDEN}, "close")]
    assert target.done == []


@pytest.mark.parametrize(
    "header",
    [
        *("Origin: null", "Origin:", "origin: http://127.0.0.1", "ORIGIN: http://localhost:80", "Origin: file://"),
        *("Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "sec-fetch-site: same-origin"),
        "X-Forwarded-For: 1.2.3.4\r\nOrigin: http://evil.example",
    ],
)
def test_requests_with_headers_of_web_pages_are_rejected(server, target, header):
    assert responses(exchange(server, request("POST /nodes/1/kill HTTP/1.1", header))) == [
        (403, {"error": FORBIDDEN}, "close")
    ]
    assert target.done == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1", "127.0.0.1:65535"])
def test_requests_of_this_machine_are_accepted(server, target, host):
    sent = request("POST /nodes/1/pause HTTP/1.1", "Connection: close", "Sec-Fetch-Site: none", host=host)
    assert responses(exchange(server, sent)) == [(200, {"node": 1, "state": "paused"}, "close")]
    assert target.done == ["pause 1"]


@pytest.mark.parametrize(
    "headers",
    [
        *(f"Content-Length: {length}" for length in (2**40, 10**19, BODY_BYTES_MAX + 1)),
        *(f"Content-Length: {length}" for length in (10**20, "9" * 5000, "-1", "+1", "0x10", "x", "1_0", "", "\u0661")),
        *("Content-Length: 1\r\nContent-Length: 2", "Content-Length: 1, 2", "Content-Length: 1.0"),
        *("Transfer-Encoding: gzip", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity"),
        *("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: xchunked"),
        *("Content-Length : 5", "X\x00: 1", "no colon", ": no name", "X: a\x00b"),
        *("Host: evil.example", f"Padding: {'x' * 1_000_000}"),
    ],
)
def test_a_request_with_invalid_headers_is_400_in_json(server, target, headers):
    ((status, content, connection),) = responses(exchange(server, request("POST /nodes/1/kill HTTP/1.1", headers)))
    assert (status, [*content], connection) == (400, ["error"], "close")
    assert len(content["error"].splitlines()) == 1
    assert target.done == []


@pytest.mark.parametrize(
    "sent",
    [
        *(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"\x00" * 100 + b"\r\n\r\n", b"POST\r\n\r\n"),
        *(b"POST  /nodes/1/kill HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST /nodes/1/kill\r\nHost: localhost\r\n\r\n"),
        b"POST /nodes/1/kill HTTP/1.1\r\n X: folded\r\nHost: localhost\r\n\r\n",
        *(b"POST /nodes/1/kill HTTP/1.1\r\n\r\n", b"POST /nodes/1/kill HTTP/9.9\r\nHost: localhost\r\n\r\n"),
        *(b"POST /nodes/\xff/kill HTTP/1.1\r\nHost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_bytes_that_are_no_valid_request_are_400_in_json(server, target, sent):
    ((status, content, connection),) = responses(exchange(server, sent))
    assert (status, [*content], connection) == (400, ["error"], "close")
    assert target.done == []


@pytest.mark.parametrize(
    ("target_form", "status"),
    [
        *(("http://127.0.0.1/nodes/1/kill", 404), ("http://evil.example/nodes/1/kill", 404), ("*", 404)),
        *(("//nodes/1/kill", 404), ("/nodes/1/kill/", 404), ("/./nodes/1/kill", 404), ("/x/../nodes/1/kill", 404)),
        *(("/nodes/1/kill%00", 400), ("/nodes/1/kill%0d%0a", 400), ("/nodes%2F9/kill", 404), ("/nodes/%ff/kill", 400)),
        *(("/nodes/1;kill", 405), ("/NODES/1/kill", 404)),
    ],
)
def test_every_form_of_request_target_is_checked(server, target, target_form, status):
    ((returned, content, connection),) = responses(exchange(server, request(f"POST {target_form} HTTP/1.1")))
    assert (returned, [*content], connection) == (status, ["error"], "close")
    assert target.done == []


def chunked(*chunks, end=b"0\r\n\r\n"):
    return b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks) + end


CHUNKED = request("POST /nodes/2/pause HTTP/1.1", "Transfer-Encoding: chunked")
CLOSING = request("GET /nodes/3 HTTP/1.1", "Connection: close")


@pytest.mark.parametrize(
    "sent",
    [
        with_kill_as_body("POST /nodes/2/pause HTTP/1.1"),
        CHUNKED + chunked(KILL),
        CHUNKED + chunked(KILL[:9], KILL[9:]),
        CHUNKED + chunked(KILL, end=b"0\r\nTrailer: 1\r\n\r\n"),
        request("POST /nodes/2/pause HTTP/1.1", "Content-Length: 0"),
        request("POST /nodes/2/pause HTTP/1.1", f"Content-Length: {BODY_BYTES_MAX}", body=b"x" * BODY_BYTES_MAX),
    ],
)
def test_a_body_is_read_and_ignored(server, target, sent):
    paused, node = responses(exchange(server, sent, CLOSING))
    assert (paused[0], node[0], node[1]["id"]) == (200, 200, 3)
    assert target.done == ["pause 2"]


@pytest.mark.parametrize(
    ("body", "error"),  # None: any error
    [
        (chunked(b"x" * BODY_BYTES_MAX, KILL), TOO_LARGE),
        (b"not a size\r\n" + KILL, None),
        (b"-5\r\n" + KILL, None),
        (b"fffffffffffffffffffffffff\r\n" + KILL, None),
        (b"5\r\nhello" + KILL, None),
    ],
)
def test_an_invalid_chunked_body_ends_the_connection(server, target, body, error):
    ((status, content, connection),) = responses(exchange(server, CHUNKED, body))
    assert (status, connection) == (400, "close")
    assert error in {None, content["error"]}
    assert target.done == []


@pytest.mark.parametrize("header", [f"Content-Length: {8 << 20}", "Transfer-Encoding: chunked"])
def test_the_rejection_of_a_too_large_body_arrives(server, target, header):
    """The server reads the rest of the body before it closes the connection.

    TCP resets a connection that is closed with unread bytes, and the client would lose the response.
    """
    body = chunked(*[b"x" * 65536] * 128) if "chunked" in header else b"x" * (8 << 20)
    received = exchange(server, request("POST /nodes/1/kill HTTP/1.1", header), body)
    assert responses(received) == [(400, {"error": TOO_LARGE}, "close")]
    assert target.done == []


@pytest.mark.parametrize("first", ["Content-Length", "Transfer-Encoding"])
def test_conflicting_lengths_are_rejected(server, target, first):
    both = {"Content-Length": "Content-Length: 5", "Transfer-Encoding": "Transfer-Encoding: chunked"}
    headers = [both.pop(first), *both.values()]
    sent = request("POST /nodes/2/pause HTTP/1.1", *headers, body=b"0\r\n\r\n") + KILL
    error = "the request has both Content-Length and Transfer-Encoding"
    assert responses(exchange(server, sent)) == [(400, {"error": error}, "close")]
    assert target.done == []


def test_pipelined_requests_are_carried_out_in_order(server, target):
    sent = request("POST /nodes/1/pause HTTP/1.1") + request("POST /nodes/1/resume HTTP/1.1") + CLOSING
    assert [status for status, _, _ in responses(exchange(server, sent))] == [200, 200, 200]
    assert target.done == ["pause 1", "resume 1"]


def test_a_request_without_its_whole_body_is_not_carried_out(server, target):
    with connect(server) as connection:
        connection.sendall(request("POST /nodes/1/kill HTTP/1.1", "Content-Length: 10", body=b"short"))
    assert responses(exchange(server, CLOSING))[0][1]["state"] == "running"
    assert target.done == []


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /clus",
        request("GET /cluster HTTP/1.1")[:-2],
        request("POST /nodes/1/kill HTTP/1.1", "Content-Length: 10", body=b"short"),
        CHUNKED + b"5\r\nhel",
    ],
)
@pytest.mark.parametrize("before", [b"", request("GET /nodes/3 HTTP/1.1")])
def test_a_request_that_does_not_arrive_in_time_ends_the_connection(control, target, sent, before, monkeypatch):
    monkeypatch.setattr(control_server, "REQUEST_TIMEOUT_S", 0.2)
    with ControlServer(control) as server:
        statuses = [status for status, _, _ in responses(exchange(server, before, sent))]
    assert statuses == [200] * bool(before) + [408] * bool(sent)  # an idle connection is closed without a response
    assert target.done == []


def test_a_connection_above_the_maximum_is_rejected(control, monkeypatch):
    monkeypatch.setattr(control_server, "CONNECTIONS_MAX", 2)
    with ControlServer(control) as server, connect(server) as first, connect(server) as second:
        for connection in (first, second):
            connection.sendall(request("GET /nodes/3 HTTP/1.1"))
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        assert responses(exchange(server)) == [(503, {"error": "there are 2 connections already"}, "close")]


def test_http_1_0_without_a_host_is_rejected(server, target):
    assert responses(exchange(server, request("POST /nodes/1/kill HTTP/1.0", host=None))) == [
        (403, {"error": FORBIDDEN}, "close")
    ]
    assert target.done == []


def test_an_upgrade_is_ignored(server):
    sent = request("GET /nodes/3 HTTP/1.1", "Connection: Upgrade, close", "Upgrade: websocket", "Sec-WebSocket-Key: x")
    assert responses(exchange(server, sent))[0][0] == 200


def test_a_connect_request_is_rejected(server):
    assert responses(exchange(server, request("CONNECT 127.0.0.1:22 HTTP/1.1")))[0][0] == 404


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        *(("Bearer secret", 200), ("bearer  secret", 200), (None, 401), ("secret", 401), ("Bearer", 401)),
        *(("Bearer Secret", 401), ("Bearer secret2", 401), ("Basic secret", 401), ("Bearer sécret", 401), ("", 401)),
    ],
)
def test_a_configured_token_is_required(control, target, authorization, status):
    headers = ["Connection: close"] + ([] if authorization is None else [f"Authorization: {authorization}"])
    sent = request("POST /nodes/1/kill HTTP/1.1", *headers)
    with ControlServer(control, "secret") as server:
        ((returned, content, _),) = responses(exchange(server, sent))
    assert returned == status
    assert (target.done == ["kill 1"]) is (status == 200)
    assert "secret" not in str(content)


def test_hostile_requests_print_nothing_on_standard_error(server, capfd):
    for sent in (b"nonsense\r\n\r\n", CHUNKED + b"x\r\n", request(host="evil"), KILL[:-2]):
        with connect(server) as connection:
            connection.sendall(sent)
    assert responses(exchange(server, CLOSING))[0][0] == 200
    assert capfd.readouterr() == ("", "")
