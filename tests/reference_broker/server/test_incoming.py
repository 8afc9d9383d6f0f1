"""Accepted connections that the peer has already reset."""

import asyncio

from reference_broker.core.connection import Connection
from reference_broker.server.incoming import Incoming


class Closed(asyncio.Transport):
    """Transport of a connection that the peer has reset before it was accepted."""

    def get_extra_info(self, name, default=None):
        return default


class Shell:
    def __init__(self):
        self.connections = []

    def add(self, incoming):
        self.connections.append(incoming)

    def remove(self, incoming):
        self.connections.remove(incoming)


def test_connection_that_is_reset_at_once_is_added_and_removed():
    shell = Shell()
    incoming = Incoming(shell, Connection(), frame_size_max_bytes=100)
    incoming.connection_made(Closed())
    assert shell.connections == [incoming]
    incoming.connection_lost(None)
    assert shell.connections == []
