"""Connections to other nodes: a channel with an invalid address is reported as lost."""

import asyncio

import pytest

from reference_broker.core.connection import Channel
from reference_broker.server.outgoing import Outgoing


@pytest.mark.parametrize(("host", "port"), [("a" * 64, 9092), ("..", 9092), ("\0", 9092), ("127.0.0.1", 1 << 40)])
def test_an_invalid_address_of_another_node_is_a_lost_channel(host, port):
    async def lost():
        done = asyncio.get_running_loop().create_future()
        Outgoing(None, lambda *_: None, done.set_result).send(channel, b"")
        return await asyncio.wait_for(done, 10)

    channel = Channel("test", 2, host, port)
    assert asyncio.run(lost()) == channel
