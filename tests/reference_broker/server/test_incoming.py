"""A connection as the loop gives it to us."""

import asyncio

from reference_broker.core.connection import Connection
from reference_broker.server.incoming import Incoming


class Closed(asyncio.Transport):
    """Of one who connected and reset the connection before we looked: nobody is at the other end any more."""

    def get_extra_info(self, name, default=None):
        return default


class Added:
    def __init__(self):
        self.connections = []

    def add(self, incoming):
        self.connections.append(incoming)

    def remove(self, incoming):
        self.connections.remove(incoming)


def test_one_who_is_gone_at_once():
    shell = Added()
    incoming = Incoming(shell, Connection(), frame_size_max_bytes=100)
    incoming.connection_made(Closed())
    assert shell.connections == [incoming]
    incoming.connection_lost(None)
    assert shell.connections == []
