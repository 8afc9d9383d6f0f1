"""Clients without IO over sockets: what each kind of peer means to a request."""

import asyncio
import struct
from contextlib import suppress

import pytest

from chaos.live.sockets import SocketEnvironment
from chaos.simulation.clients.process import Answer, Ask, MalformedAnswerError, Process, Signal, Sleep, Wait
from fixtures.clients.client_request import malformed_request
from fixtures.clients.outcomes import NETWORK_EXCEPTION, REQUEST_TIMED_OUT

REQUEST = malformed_request(3, 1, 4)
"""Its response is any frame."""
TIMEOUT_MS = 300


async def finished(process, environment):
    while not process.is_done and environment.failure is None:  # noqa: ASYNC110  a process reports nothing but that
        await asyncio.sleep(0.01)


async def exchange(peer, requests=1):
    """Send requests to a peer; returns the answers, and the environment."""
    answers = []
    served = asyncio.Event()

    async def serve(reader, writer):
        await peer(reader, writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        served.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    environment = SocketEnvironment(asyncio.get_running_loop(), lambda: {1: server.sockets[0].getsockname()})
    process = Process(7, environment)

    def ask():
        answers.append((yield Ask(1, REQUEST, TIMEOUT_MS)))

    for _ in range(requests):
        process.start(ask())
    await finished(process, environment)
    process.close()
    await served.wait()
    server.close()
    await server.wait_closed()
    return answers, environment


def run(peer, requests=1):
    return asyncio.run(exchange(peer, requests))


async def correlation_id(reader):
    size = struct.unpack(">i", await reader.readexactly(4))[0]
    return (await reader.readexactly(size))[4:8]


def frame(number):
    return struct.pack(">i", 7) + number + b"abc"


async def in_pieces(reader, writer):
    response = frame(await correlation_id(reader)) + frame(await correlation_id(reader))
    for at in range(0, len(response), 5):
        writer.write(response[at : at + 5])
        await writer.drain()
        await asyncio.sleep(0.01)


async def silent(reader, writer):
    await reader.read()


async def closing(reader, writer):
    await correlation_id(reader)


async def malformed(reader, writer):
    await reader.read(1)
    writer.write(b"\xff\xff\xff\xff")


async def unexpected(reader, writer):
    await correlation_id(reader)
    writer.write(frame(b"\x00\x00\x00\x63"))


def test_responses_arrive_in_any_pieces():
    answers, environment = run(in_pieces, requests=2)
    assert [answer.response[4:] for answer in answers] == [b"abc", b"abc"]
    assert environment.failure is None


@pytest.mark.parametrize(("peer", "error"), [(silent, REQUEST_TIMED_OUT), (closing, NETWORK_EXCEPTION)])
def test_a_request_without_a_response_may_have_arrived(peer, error):
    answers, _ = run(peer)
    assert answers == [Answer(error=error, sent=True)]


@pytest.mark.parametrize("peer", [malformed, unexpected])
def test_a_response_that_is_none_ends_the_run(peer):
    answers, environment = run(peer)
    assert answers == [] or answers[0].error == NETWORK_EXCEPTION
    assert isinstance(environment.failure, MalformedAnswerError)


@pytest.mark.parametrize("addresses", [{}, {1: ("127.0.0.1", 1)}], ids=["no such node", "nothing listens"])
def test_a_request_to_nothing_is_not_sent(addresses):
    async def sent():
        answers = []
        environment = SocketEnvironment(asyncio.get_running_loop(), lambda: addresses)
        process = Process(7, environment)

        def ask():
            answers.append((yield Ask(1, REQUEST, TIMEOUT_MS)))

        process.start(ask())
        await finished(process, environment)
        return answers

    assert asyncio.run(sent()) == [Answer(error=NETWORK_EXCEPTION, sent=False)]


def test_timers_and_signals_resume_generators_not_before_their_time():
    async def times():
        environment = SocketEnvironment(asyncio.get_running_loop(), dict)
        process, signal, seen = Process(7, environment), Signal(), []

        def sleeps():
            began_ms = environment.scheduler.now_ms
            yield Sleep(50)
            seen.append(environment.scheduler.now_ms - began_ms >= 50)
            signal.give()

        def waits():
            yield Wait(signal)
            seen.append("signal")

        process.start(waits())
        process.start(sleeps())
        await finished(process, environment)
        return seen

    assert asyncio.run(times()) == [True, "signal"]
