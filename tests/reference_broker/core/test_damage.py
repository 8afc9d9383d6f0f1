"""Loss or damage of derived files while a broker is down. No acknowledged record is lost."""

import pytest

from tests.reference_broker.scripted import ScriptedBroker, batch

DERIVED = (".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "-offset-checkpoint")
DAMAGES = {
    "deleted": lambda files, name: files.pop(name),
    "empty": lambda files, name: files[name].clear(),
    "cut": lambda files, name: files[name].__delitem__(slice(len(files[name]) // 2, None)),
    "garbage": lambda files, name: files[name].__setitem__(slice(None), bytes(b ^ 0x5A for b in files[name])),
}


@pytest.fixture
def broker() -> ScriptedBroker:
    """Return a broker with records of an idempotent producer in several segments, flushed and checkpointed."""
    broker = ScriptedBroker(offsets_topic_num_partitions="1")
    broker.create_topic(segment_bytes="1048576", index_interval_bytes="100")
    for number in range(12):
        producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": number}
        assert broker.produce(batch(b"x" * 150_000, timestamp_ms=broker.now.wall_ms, **producer)).error_code == 0
    broker.advance(60_000)
    return broker


def check(broker: ScriptedBroker) -> None:
    """Assert that all records can be read, and that the producer can continue."""
    response = broker.fetch(0, max_bytes=10_000_000)
    assert (response.error_code, response.high_watermark, response.log_start_offset) == (0, 12, 0)
    size = len(batch(b"x" * 150_000))
    found = sum(len(broker.fetch(offset, max_bytes=1).records) for offset in range(12))
    assert found == 12 * size
    producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 12}
    assert broker.produce(batch(b"y", timestamp_ms=broker.now.wall_ms, **producer)).base_offset == 12
    topics = [{"name": "orders", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    assert broker.request("ListOffsets", 7, replica_id=-1, topics=topics).topics[0].partitions[0].offset == 13


def derived(broker: ScriptedBroker) -> list[str]:
    return sorted(name for name in broker.disk.files if name.endswith(DERIVED) and "__cluster_metadata" not in name)


def start(broker: ScriptedBroker) -> None:
    broker.cluster.start(1)
    broker._begin()


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_one_damaged_file_loses_no_record(broker, damage, clean):
    if clean:
        broker.cluster.stop(1)
    else:
        broker.cluster.kill(1)
    left = {path: bytes(content) for path, content in broker.disk.files.items()}
    names = derived(broker)
    assert len(names) >= 7
    for name in names:
        DAMAGES[damage](broker.disk.files, name)
        start(broker)
        check(broker)
        broker.cluster.kill(1)
        broker.disk.files = {path: bytearray(content) for path, content in left.items()}


def test_deletion_of_all_derived_files_loses_no_record(broker):
    broker.cluster.kill(1)
    for name in derived(broker):
        del broker.disk.files[name]
    start(broker)
    check(broker)
