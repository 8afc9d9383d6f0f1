"""Phases of a script: a phase ends when its writers are done, or when a fault injection fails.

Every client is closed at the end of the script, even if the close of another client fails.
"""

import threading
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from conformance.concurrent import run
from conformance.concurrent.run import HistoryRun, run_phase
from conformance.fuzz import session
from conformance.trial.phased_clients import Phase
from fixtures.clients.stage import THREADS
from fixtures.clients.transport import SOCKETS
from fixtures.targets.target import TargetError


@dataclass
class Client:
    """A client that works until its phase is over."""

    is_writer: bool
    ended: threading.Event = field(default_factory=threading.Event)

    def act(self, phase, phase_over):
        assert phase_over.wait(30), "the phase does not end"
        self.ended.set()

    def close(self):
        """Do nothing: this client has no connection."""


class Injection:
    """A fault injection that fails."""

    def await_in_force(self):
        """Do not wait, because no fault begins."""

    def __call__(self):
        raise TargetError("node 1 did not start")


@dataclass
class Failing(Client):
    """A client that fails when the phase is over."""

    def act(self, phase, phase_over):
        super().act(phase, phase_over)
        raise ValueError("not the first error")


def test_an_error_of_a_fault_injection_ends_the_clients_and_is_raised():
    clients = [Client(is_writer=True), Client(is_writer=False), Failing(is_writer=True), Failing(is_writer=False)]
    with pytest.raises(TargetError, match="node 1 did not start"):
        run_phase(Phase.FAULTY, clients, [Injection()], THREADS)
    assert all(client.ended.is_set() for client in clients)


def test_a_phase_ends_when_its_writers_are_done():
    reader = Client(is_writer=False)
    run_phase(Phase.STEADY, [reader], [], THREADS)
    assert reader.ended.is_set()


@pytest.fixture
def closed(monkeypatch):
    """Make the `close` of every client fail. Return the list of clients on which `close` was called."""
    closed = []

    class FailsToClose(Client):
        def close(self):
            closed.append(self)
            raise TargetError("not closed")

    for module in (run, session):
        monkeypatch.setattr(module, "actor_of", lambda client, context: FailsToClose(is_writer=False))
    return closed


def test_every_client_of_a_script_is_closed(closed, monkeypatch, tmp_path):
    history_run = HistoryRun(SimpleNamespace(transport=SOCKETS, stage=THREADS), tmp_path, 1)
    monkeypatch.setattr(history_run, "raw_client", nullcontext)
    monkeypatch.setattr(history_run, "make_topic", lambda *_: None)
    monkeypatch.setattr(run, "run_phase", lambda *_: None)
    monkeypatch.setattr(run, "Moves", lambda *_: None)
    with pytest.raises(TargetError, match="not closed"):
        history_run.run(SimpleNamespace(clients=(1, 2), topic=None, moves=()))
    assert len(closed) == 2


def test_every_client_beside_fuzzing_is_closed(closed, monkeypatch):
    monkeypatch.setattr(session, "run_phase", lambda *_: None)
    fuzzing = SimpleNamespace(cancel=lambda: None)
    with pytest.raises(TargetError, match="not closed"):
        session._run_beside_clients(fuzzing, SimpleNamespace(target=SimpleNamespace(stage=THREADS)))
    assert len(closed) == len(session._WITNESSES)
