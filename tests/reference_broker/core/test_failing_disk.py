"""A log directory that fails while the broker runs: at any moment, what it acknowledged is there, and nothing hangs.

The disk fails at its n-th change and stays failed, as a directory that has gone does. The shell ends the process at
the first `OSError` that comes out of the node; here that is the end of the node, which comes back on the same files.
"""

import pytest
from kio.schema.errors import ErrorCode

from fixtures.clients.record_batch import decode_batches
from reference_broker.simulation.disk import SimulatedDisk
from tests.reference_broker.scripted import ScriptedBroker, batch

RECORDS = 6
CHANGES_MAX = 400


class FailingDisk(SimulatedDisk):
    """`changes_left` counts down to the failure; null for a disk that does not fail. A failed append is half done."""

    def __init__(self, files):
        super().__init__()
        self.__dict__.update(files.__dict__)
        self.changes_left = None
        self.has_failed = False

    def _change(self):
        if self.has_failed or self.changes_left == 0:
            self.has_failed = True
            raise OSError(5, "Input/output error")
        if self.changes_left is not None:
            self.changes_left -= 1

    def append(self, path, *parts):
        try:
            self._change()
        except OSError:
            whole = b"".join(parts)
            super().append(path, whole[: len(whole) // 2])
            raise
        super().append(path, *parts)

    def replace(self, path, data):
        self._change()
        super().replace(path, data)

    def truncate(self, path, size):
        self._change()
        super().truncate(path, size)

    def flush(self, *paths):
        self._change()
        super().flush(*paths)

    def make_directory(self, path):
        self._change()
        super().make_directory(path)


@pytest.fixture(scope="module")
def lives():
    """For each n, until a life needs fewer changes: what was acknowledged before the n-th failed, and what is there."""
    found = []
    for number in range(CHANGES_MAX):
        has_failed, acknowledged, there = live(number)
        found.append((acknowledged, there))
        if not has_failed:
            return found
    raise AssertionError(f"a life takes more than {CHANGES_MAX} changes")


def live(changes):
    """Create a topic and write to it on a disk that fails after a number of changes, then restart on that disk."""
    broker = ScriptedBroker(metadata_max_idle_interval_ms="0")
    disk = broker.cluster.disks[1] = FailingDisk(broker.disk)
    broker.restart()
    disk.changes_left = changes
    acknowledged = []
    try:
        broker.create_topic()
        for number in range(RECORDS):
            value = b"%d" % number
            if broker.produce(batch(value)).error_code == ErrorCode.none:
                acknowledged.append(value)
    except OSError:
        pass
    has_failed, disk.has_failed, disk.changes_left = disk.has_failed, False, None
    broker.restart(clean=not has_failed)
    return has_failed, acknowledged, values(broker)


def values(broker):
    [topic] = broker.request("Metadata", 12, topics=[{"name": "orders"}]).topics
    if topic.error_code != ErrorCode.none:
        return []
    return [record.value for found in decode_batches(broker.fetch(0).records or b"") for record in found.records]


def test_what_was_acknowledged_is_there(lives):
    for acknowledged, there in lives:
        assert there[: len(acknowledged)] == acknowledged


def test_lives_end_everywhere(lives):
    """Before the topic, between any two records, and not at all."""
    assert {len(acknowledged) for acknowledged, _ in lives} == set(range(RECORDS + 1))
