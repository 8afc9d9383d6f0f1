"""The end of a client's process: its requests in flight fail, and whatever that makes it do sends nothing more."""

from types import SimpleNamespace

from chaos.simulation.clients.process import Ask, Process
from fixtures.clients.client_request import malformed_request
from fixtures.clients.outcomes import NETWORK_EXCEPTION

REQUEST = malformed_request(3, 1, 4)


class Environment:
    """Nodes that never respond. Actions are performed by hand."""

    def __init__(self):
        self.actions, self.connected = [], []
        self.scheduler = SimpleNamespace(
            now_ms=0, at=lambda *_: None, after=lambda _, action: self.actions.append(action)
        )

    def connect(self, place, node_id, received, closed, listener):
        self.connected.append(node_id)
        return SimpleNamespace(is_established=True, send=lambda data: None, close=lambda: None)


def test_a_client_that_would_try_other_nodes_opens_no_connection():
    environment, errors = Environment(), []
    process = Process(7, environment)

    def ask(first):
        errors.append((yield Ask(first, REQUEST, 60_000)).error)
        errors.append((yield Ask(first + 2, REQUEST, 60_000)).error)

    for node in (1, 2):
        process.start(ask(node))
    for action in environment.actions:
        action()
    process.close()
    assert environment.connected == [1, 2]
    assert errors == [NETWORK_EXCEPTION] * 2
    assert process.is_done
