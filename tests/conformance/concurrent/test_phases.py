"""End of a phase of a script: when its writers are done, or after an error of a fault injection or a client."""

import threading
from dataclasses import dataclass, field

import pytest

from conformance.concurrent.run import run_phase
from conformance.trial.phased_clients import Phase
from fixtures.clients.stage import THREADS
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

    def await_hold(self):
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
