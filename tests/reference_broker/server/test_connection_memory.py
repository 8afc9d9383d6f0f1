"""Limit of the memory of all connections. The connections of these tests have a size and no data."""

import pytest

from reference_broker.server.connection_memory import ConnectionMemory

MIB = 1024 * 1024
MAX_BYTES = 20 * MIB
"""Limit of `memory`: one request of 4 MiB, and 16 MiB in addition."""


class Connection:
    def __init__(self):
        self.size_bytes = self.reads = 0
        self.reasons = []

    @property
    def held_bytes(self):
        self.reads += 1
        return self.size_bytes

    def abort(self, reason):
        self.reasons.append(reason)
        self.size_bytes = 0


@pytest.fixture
def memory():
    return ConnectionMemory(request_max_bytes=4 * MIB)


def grow(memory, connection, size_bytes):
    connection.size_bytes += size_bytes
    memory.bound(connection)


def test_many_small_connections_do_not_exceed_the_limit(memory):
    connections = [Connection() for _ in range(1_000)]
    for connection in connections:
        grow(memory, connection, MIB // 2)
        assert sum(each.size_bytes for each in connections) <= MAX_BYTES
    assert len([each for each in connections if each.reasons]) == 1_000 - 40


def test_the_largest_connections_are_closed(memory):
    small, large, medium = (Connection() for _ in range(3))
    for connection, size_bytes in ((small, MIB), (large, 12 * MIB), (medium, 8 * MIB)):
        grow(memory, connection, size_bytes)
    assert (small.reasons, medium.reasons) == ([], [])
    [reason] = large.reasons
    assert "22,020,096 bytes" in reason
    assert "20,971,520; this connection holds 12,582,912" in reason


def test_memory_that_was_released_meanwhile_is_not_counted(memory):
    released, grown = Connection(), Connection()
    grow(memory, released, 15 * MIB)
    released.size_bytes = 0
    grow(memory, grown, 15 * MIB)
    assert (released.reasons, grown.reasons) == ([], [])


def test_closed_connections_are_not_counted(memory):
    closed, grown = Connection(), Connection()
    grow(memory, closed, 15 * MIB)
    memory.remove(closed)
    grow(memory, grown, 15 * MIB)
    assert (closed.reasons, grown.reasons) == ([], [])
    memory.remove(Connection())  # one that never held anything


def test_requests_of_one_connection_do_not_read_the_sizes_of_the_others(memory):
    idle = [Connection() for _ in range(100)]
    for connection in idle:
        grow(memory, connection, MIB // 8)
    busy = Connection()
    for _ in range(10_000):
        grow(memory, busy, MIB)
        grow(memory, busy, -MIB)
    assert sum(each.reads for each in idle) == 100
    assert busy.reasons == []
