"""The fast writer of Fetch's answers, held against kio's."""

from datetime import timedelta
from io import BytesIO
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_payload_module
from kio.serial import entity_writer
from kio.static.constants import EntityType

from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.fetch_response import FETCH, FIRST_VERSION, fetch_response_writer

INT32, INT64 = st.integers(-1, 2**31 - 1), st.integers(-1, 2**63 - 1)


def answers(version: int) -> st.SearchStrategy[Any]:
    """Answers in which every optional part is there or not."""
    module: Any = load_payload_module(FETCH, version, EntityType.response)
    epochs = st.builds(module.EpochEndOffset, epoch=INT32, end_offset=INT64)
    leaders = st.builds(module.LeaderIdAndEpoch, leader_id=INT32, leader_epoch=INT32)
    snapshots = st.builds(module.SnapshotId, end_offset=INT64, epoch=INT32)
    aborted = st.builds(module.AbortedTransaction, producer_id=INT64, first_offset=INT64)

    def tagged(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({}, optional=parts)

    partitions = st.builds(
        lambda fields, tags: module.PartitionData(**fields, **tags),
        st.fixed_dictionaries(
            {
                "partition_index": INT32,
                "error_code": st.sampled_from(ErrorCode),
                "high_watermark": INT64,
                "last_stable_offset": INT64,
                "log_start_offset": INT64,
                "preferred_read_replica": INT32,
                "aborted_transactions": st.none() | st.lists(aborted, max_size=2).map(tuple),
                "records": st.none() | st.binary(max_size=200),
            }
        ),
        tagged(diverging_epoch=epochs, current_leader=leaders, snapshot_id=snapshots),
    )
    names: dict[str, Any] = (
        {"topic_id": st.none() | st.uuids(allow_nil=False)} if version > 12 else {"topic": st.text()}
    )
    topics = st.builds(module.FetchableTopicResponse, partitions=st.lists(partitions, max_size=3).map(tuple), **names)
    nodes: dict[str, Any] = {}
    if version >= 16:
        node = st.builds(module.NodeEndpoint, node_id=INT32, host=st.text(), port=INT32, rack=st.none() | st.text())
        nodes["node_endpoints"] = st.lists(node, max_size=2).map(tuple)
    return st.builds(
        module.FetchResponse,
        throttle_time=st.integers(0, 1000).map(lambda number: timedelta(milliseconds=number)),
        error_code=st.sampled_from(ErrorCode),
        session_id=INT32,
        responses=st.lists(topics, max_size=3).map(tuple),
        **nodes,
    )


def written(write: Any, response: Any) -> bytes:
    buffer = BytesIO()
    write(buffer, response)
    return buffer.getvalue()


@settings(max_examples=150, deadline=None)
@given(st.integers(FIRST_VERSION, 18).flatmap(lambda version: st.tuples(st.just(version), answers(version))))
def test_any_answer_is_written_as_kio_writes_it(versioned: tuple[int, Any]) -> None:
    version, response = versioned
    by_kio = entity_writer(type(response))
    assert written(fetch_response_writer(version), response) == written(by_kio, response)
