"""Conversion of the public tables, as Arrow, into the columns that the checks read; every engine uses it.

If a row lacks `acks` or `isolation`, the client's properties are used. If these do not set `acks`, an idempotent
producer has acks=all, because Kafka rejects other values; any other producer is judged with acks=1, which promises
nothing.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from linearizability.anomalies.columns import (
    FAIL,
    INFO,
    NO_EPOCH,
    NO_KEY,
    NO_NODE,
    NO_OFFSET,
    OK,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    UNKNOWN_ISOLATION,
    AssignmentColumns,
    InputColumns,
    Int32s,
    Int64s,
    OffsetColumns,
    OperationColumns,
    PositionColumns,
    RecordColumns,
    StateColumns,
    Texts,
)
from linearizability.anomalies.faults import NEVER_NS
from linearizability.anomalies.transactions import Transactions

OPERATION_FIELDS: Final = (
    "op_id", "process", "invoke_ns", "complete_ns", "outcome", "acks", "isolation", "producer_id", "producer_epoch",
    "txn_seq", "node", "f", "error", "attempts",
)  # fmt: skip
"""The columns of `operations` that the checks read."""
RECORD_FIELDS: Final = ("op_id", "seq", "offset", "value", "key", "leader_epoch", "intact")
"""The columns of `records` that the checks read, apart from direction and place."""
POSITION_FIELDS: Final = ("op_id", "before", "after", "cause", "last_stable_offset", "log_start_offset")
STATE_FIELDS: Final = (
    "asked_ns", "answered_ns", "source", "isolation", "node", "leader_epoch", "isr", "high_watermark",
    "last_stable_offset", "log_start_offset", "error",
)  # fmt: skip
OFFSET_FIELDS: Final = ("op_id", "group", "offset", "direction")
INPUT_FIELDS: Final = ("op_id", "offset")
ASSIGNMENT_FIELDS: Final = ("at_ns", "process", "group", "member_id", "instance_id", "generation", "event")
PLACE_FIELDS: Final = ("topic", "topic_id", "partition")
Place = tuple[str, str | None, int]
"""Topic, topic id and partition of a row (PLACE_FIELDS)."""

_FEW_PLACES: Final = 1_024
"""The number of possible places (or the number of rows, if that is higher) up to which places are numbered by an array
with an element for each, instead of by a sort."""
_OUTCOMES: Final = {"ok": OK, "fail": FAIL, "info": INFO}
_ISOLATIONS: Final = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
_NOT_SERVED_ERRORS: Final = pa.array(
    ["BROKER_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR", "LEADER_NOT_AVAILABLE", "NETWORK_EXCEPTION", "REQUEST_TIMED_OUT"]
)
_ACKS: Final = {"all": -1, "-1": -1, "0": 0, "1": 1}


def operation_columns(
    table: pa.Table, transactions: Transactions, clients: Mapping[int, Mapping[str, str]]
) -> OperationColumns:
    """Convert rows of `operations` (OPERATION_FIELDS), sorted by op_id."""
    process = numbers(table["process"], 0)
    idempotent = _flags(pc.is_valid(table["producer_id"]))
    in_transaction = _flags(pc.is_valid(table["txn_seq"]))
    acks = numbers(table["acks"], NO_OFFSET)
    _fill_from_clients(acks, NO_OFFSET, process, _client_codes(clients, "acks", _ACKS))
    acks[(acks == NO_OFFSET) & idempotent] = -1
    acks[acks == NO_OFFSET] = 1
    isolation = _codes(table["isolation"], _ISOLATIONS, UNKNOWN_ISOLATION)
    _fill_from_clients(isolation, UNKNOWN_ISOLATION, process, _client_codes(clients, "isolation.level", _ISOLATIONS))
    return OperationColumns(
        op_id=numbers(table["op_id"], 0),
        process=process.astype(np.int32),
        invoke_ns=numbers(table["invoke_ns"], 0),
        complete_ns=numbers(table["complete_ns"], NEVER_NS),
        outcome=_codes(table["outcome"], _OUTCOMES, INFO).astype(np.int8),
        acks=acks.astype(np.int16),
        isolation=isolation.astype(np.int8),
        idempotent=idempotent,
        producer_id=numbers(table["producer_id"], -1),
        producer_epoch=numbers(table["producer_epoch"], -1).astype(np.int32),
        transaction=transactions.index_of(process, numbers(table["txn_seq"], 0), in_transaction),
        node=numbers(table["node"], NO_NODE).astype(np.int32),
        polls=_flags(pc.equal(table["f"], "poll")),
        reads_disk=_flags(pc.equal(table["f"], "read_replica")),
        not_served=not_served(table),
        sent_once=_flags(pc.fill_null(pc.equal(table["attempts"], 1), False)),
    )


def not_served(table: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether each row of `operations` failed because no broker served it, according to its error."""
    failed = pc.and_(pc.not_equal(table["outcome"], "ok"), pc.is_valid(table["complete_ns"]))
    return _flags(pc.and_(failed, is_in(table["error"], _NOT_SERVED_ERRORS)))


def is_in(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    """Whether each value is one of `values`. A dictionary-encoded column is not expanded: its values may be long."""
    if not pa.types.is_dictionary(column.type):
        return pc.is_in(column, value_set=values)
    parts = [pc.is_in(chunk.dictionary, value_set=values).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(parts, pa.bool_()).fill_null(False)


def record_columns(table: pa.Table, operation: Int32s, key: Int32s) -> RecordColumns:
    """Convert rows of `records` of one direction, given the indexes of their operations and the codes of their keys."""
    valued = _flags(pc.is_valid(table["value"]))
    return RecordColumns(
        operation=operation,
        seq=numbers(table["seq"], 0).astype(np.int32),
        offset=numbers(table["offset"], NO_OFFSET),
        value=numbers(table["value"], 0),
        valued=valued,
        key=key,
        leader_epoch=numbers(table["leader_epoch"], NO_EPOCH).astype(np.int32),
        corrupt=_flags(pc.fill_null(pc.invert(table["intact"]), False)),
    )


def position_columns(table: pa.Table, operation: Int32s) -> PositionColumns:
    """Convert rows of `positions`, given the indexes of their operations. A row without `before` counts as no read."""
    return PositionColumns(
        operation=operation,
        before=numbers(table["before"], NO_OFFSET),
        after=numbers(table["after"], NO_OFFSET),
        is_read=_flags(pc.and_(pc.fill_null(pc.equal(table["cause"], "read"), False), pc.is_valid(table["before"]))),
        last_stable_offset=numbers(table["last_stable_offset"], NO_OFFSET),
        log_start_offset=numbers(table["log_start_offset"], NO_OFFSET),
    )


def state_columns(table: pa.Table) -> StateColumns:
    """Convert rows of `states`."""
    succeeded = _flags(pc.is_null(table["error"]))
    lists = _flags(pc.fill_null(pc.equal(table["source"], "list_offsets"), False))
    fetches = _flags(pc.fill_null(pc.equal(table["source"], "fetch"), False))
    uncommitted = _flags(pc.fill_null(pc.equal(table["isolation"], "read_uncommitted"), False))
    high_watermark = numbers(table["high_watermark"], NO_OFFSET)
    leader_epoch = numbers(table["leader_epoch"], NO_EPOCH).astype(np.int32)
    isr = np.empty(table.num_rows, np.object_)
    isr[:] = [None if nodes is None else tuple(nodes) for nodes in table["isr"].to_pylist()]
    return StateColumns(
        requested_ns=numbers(table["asked_ns"], 0),
        received_ns=numbers(table["answered_ns"], 0),
        end_offset=np.where(succeeded & lists & uncommitted, high_watermark, NO_OFFSET),
        leader_epoch=leader_epoch,
        node=numbers(table["node"], NO_NODE).astype(np.int32),
        from_leader=succeeded & (lists | fetches) & (leader_epoch != NO_EPOCH),
        high_watermark=high_watermark,
        last_stable_offset=numbers(table["last_stable_offset"], NO_OFFSET),
        log_start_offset=numbers(table["log_start_offset"], NO_OFFSET),
        isr=isr,
        describes_quorum=_flags(pc.fill_null(pc.equal(table["source"], "describe_quorum"), False)),
    )


def offset_columns(table: pa.Table, operation: Int32s) -> OffsetColumns:
    """Convert rows of `offsets`, given the indexes of their operations."""
    return OffsetColumns(
        operation=operation,
        group=_texts(table["group"]),
        offset=numbers(table["offset"], NO_OFFSET),
        is_commit=_flags(pc.equal(table["direction"], "commit")),
    )


def input_columns(table: pa.Table, operation: Int32s) -> InputColumns:
    """Convert rows of `inputs`, given the indexes of their operations."""
    return InputColumns(operation=operation, offset=numbers(table["offset"], NO_OFFSET))


def assignment_columns(table: pa.Table) -> AssignmentColumns:
    """Convert rows of `assignments`."""
    return AssignmentColumns(
        at_ns=numbers(table["at_ns"], 0),
        process=numbers(table["process"], 0),
        group=_texts(table["group"]),
        member_id=_texts(table["member_id"]),
        instance_id=_texts(table["instance_id"]),
        generation=numbers(table["generation"], NO_OFFSET),
        is_assigned=_flags(pc.equal(table["event"], "assigned")),
    )


class KeyCodes:
    """Codes of record keys: equal keys have equal codes, in any number of batches.

    The provisional code of a key is its place in the joined dictionaries of the batches, so that no key is looked up on
    its own. A key of several batches has several such codes; `settle` replaces them by one.
    """

    def __init__(self) -> None:
        self._dictionaries: list[pa.Array] = []
        self._count = 0

    def of(self, keys: pa.ChunkedArray, wanted: npt.NDArray[np.bool_]) -> Int32s:
        """Return the provisional codes of the wanted keys, NO_KEY for the rest and for null."""
        encoded = pc.dictionary_encode(pc.if_else(pa.array(wanted), keys, None).combine_chunks())
        codes: Int32s = encoded.indices.fill_null(NO_KEY - self._count).to_numpy() + np.int32(self._count)
        if len(encoded.dictionary):
            self._dictionaries.append(encoded.dictionary)
            self._count += len(encoded.dictionary)
        return codes

    def settle(self, *columns: Int32s) -> None:
        """Replace the provisional codes of whole columns by final ones, in place, after every key has been seen."""
        if not self._dictionaries:
            return
        # Large strings, because all keys together may exceed 2 GiB, the limit of the offsets of a string array.
        keys = pa.chunked_array(self._dictionaries).cast(pa.large_string()).combine_chunks()
        final = pc.dictionary_encode(keys, memory_pool=pa.system_memory_pool()).indices.to_numpy()
        for codes in columns:
            known = codes != NO_KEY
            codes[known] = final[codes[known]]


def wanted_keys(table: pa.Table, compacted: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
    """Whether a check reads the key of each row of `records`: the row is a tombstone, or its topic is compacted."""
    topics = pc.unique(table["topic"]).to_pylist()
    keyed = pa.array([topic for topic in topics if compacted(topic)], pa.string())
    return _flags(pc.or_(pc.is_null(table["value"]), pc.is_in(table["topic"], value_set=keyed)))


def place_codes(table: pa.Table) -> tuple[list[Place], npt.NDArray[np.intp]]:
    """Return the distinct places of a table's rows, and for each row the index of its place."""
    if not table.num_rows:
        return [], np.empty(0, np.intp)
    encoded = [pc.dictionary_encode(table[name].combine_chunks()) for name in PLACE_FIELDS]
    sizes = [len(column.dictionary) + 1 for column in encoded]
    packed = np.zeros(table.num_rows, np.int64)
    for column, size in zip(encoded, sizes, strict=True):
        packed = packed * size + column.indices.fill_null(size - 1).to_numpy()
    if (size := math.prod(sizes)) <= max(table.num_rows, _FEW_PLACES):
        present = np.zeros(size, np.bool_)
        present[packed] = True
        distinct, codes = np.flatnonzero(present), (np.cumsum(present) - 1)[packed]
    else:
        distinct, codes = np.unique(packed, return_inverse=True)
    topics, topic_ids, partitions = ([*column.dictionary.to_pylist(), None] for column in encoded)
    places = []
    for code in distinct.tolist():
        rest, partition = divmod(code, sizes[2])
        topic, topic_id = divmod(rest, sizes[1])
        places.append((topics[topic], topic_ids[topic_id], partitions[partition]))
    return places, codes


def numbers(column: pa.ChunkedArray, null: int) -> Int64s:
    """Return an integer column as a writable int64 array, with nulls replaced."""
    if column.null_count:
        column = pc.fill_null(column.cast(pa.int64()), null)
    values: Int64s = column.to_numpy().astype(np.int64)
    return values


def _texts(column: pa.ChunkedArray) -> Texts:
    texts: Texts = column.to_numpy().astype(np.object_)
    return texts


def _flags(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = column.to_numpy().astype(np.bool_)
    return flags


def _codes(column: pa.ChunkedArray, codes: Mapping[str, int], null: int) -> Int64s:
    index = numbers(pc.index_in(column, value_set=pa.array(list(codes), pa.string())), len(codes))
    return np.array([*codes.values(), null], np.int64)[index]


def _client_codes(clients: Mapping[int, Mapping[str, str]], name: str, codes: Mapping[str, int]) -> dict[int, int]:
    spelt = {process: properties.get(name, "") for process, properties in clients.items()}
    return {process: codes[value] for process, value in spelt.items() if value in codes}


def _fill_from_clients(column: Int64s, null: int, process: Int64s, by_process: Mapping[int, int]) -> None:
    for number, code in by_process.items():
        column[(column == null) & (process == number)] = code
