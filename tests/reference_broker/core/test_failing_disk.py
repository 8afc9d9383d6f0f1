"""Failure of the log directory at any change: no acknowledged record is lost, and no request hangs.

The disk fails at its nth change and stays failed, like a directory that was removed. In a process, the shell ends at
the first `OSError` of the node; here the simulated node ends, and restarts on the same files.
"""

import pytest
from kio.schema.errors import ErrorCode

from fixtures.clients.record_batch import decode_batches
from reference_broker.simulation.disk import SimulatedDisk
from tests.reference_broker.scripted import ScriptedBroker, batch

RECORDS = 6
CHANGES_MAX = 400


class FailingDisk(SimulatedDisk):
    """A disk that fails after `changes_left` changes; with None, it never fails.

    Flushes and new directories are changes too. A failed append writes half of its data.
    """

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
def runs():
    """Return the acknowledged and stored records of each run.

    In run n, the disk fails after n changes. The last run makes fewer changes, so its disk does not fail.
    """
    found = []
    for number in range(CHANGES_MAX):
        has_failed, acknowledged, stored = run(number)
        found.append((acknowledged, stored))
        if not has_failed:
            return found
    raise AssertionError(f"a run makes more than {CHANGES_MAX} changes")


def run(changes):
    """Create a topic and produce to it on a disk that fails after a number of changes, then restart on that disk.

    Return whether the disk failed, the acknowledged values, and the values stored after the restart.
    """
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


def test_acknowledged_records_are_stored(runs):
    for acknowledged, stored in runs:
        assert stored[: len(acknowledged)] == acknowledged


def test_runs_fail_at_every_stage(runs):
    """The disk fails before the topic is created, between any two records, and not at all."""
    assert {len(acknowledged) for acknowledged, _ in runs} == set(range(RECORDS + 1))
