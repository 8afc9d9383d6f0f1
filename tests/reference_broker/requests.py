"""Builders of requests, which are entities of kio.

`request("CreateTopics", 7, topics=[{"name": "orders", "num_partitions": 3}])` is kio's request of that version.
"""

import dataclasses
import types
from datetime import timedelta
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.schema.index import api_key_map
from kio.static.primitive import Records

from fixtures.clients.messages import request_schema
from fixtures.clients.record_batch import Record, RecordBatch, encode_batch
from reference_broker.simulation.clock import WALL_START_MS

API_KEYS = {"".join(word.capitalize() for word in name.split("_")): key for key, name in api_key_map.items()}
st.register_type_strategy(Records, st.binary(max_size=200))  # the only type of kio without a strategy
START_MS = WALL_START_MS


def request(api: str, version: int, **fields: Any) -> Any:
    """Return a request entity with the given fields."""
    return fill(getattr(request_schema(API_KEYS[api], version), f"{api}Request"), fields)


def fill(entity_type: Any, fields: dict[str, Any]) -> Any:
    """Return an entity from a dict of fields, with nested dicts.

    Omitted fields have their defaults; without a default, they are empty, zero or null.
    """
    hints = get_type_hints(entity_type)
    values = {}
    for field in dataclasses.fields(entity_type):
        if field.name in fields:
            values[field.name] = _as_type(hints[field.name], fields[field.name])
        elif field.default is dataclasses.MISSING:
            values[field.name] = _empty(hints[field.name])
    return entity_type(**values)


def _as_type(hint: Any, value: Any) -> Any:
    inner = _without_null(hint)
    if isinstance(value, dict):
        return fill(inner, value)
    if get_origin(inner) is tuple and value is not None:
        return tuple(_as_type(get_args(inner)[0], part) for part in value)
    if isinstance(inner, type) and issubclass(inner, timedelta):
        return timedelta(milliseconds=value)
    return value


def _without_null(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


def _empty(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return None
    if get_origin(hint) is tuple:
        return ()
    if dataclasses.is_dataclass(hint):
        return fill(hint, {})
    for kind, value in ((bool, False), (timedelta, timedelta(0)), (int, 0), (str, ""), (bytes, b"")):
        if issubclass(hint, kind):
            return value
    raise AssertionError(hint)


def any_request(api_key: int, version: int) -> st.SearchStrategy[Any]:
    """Return a strategy for requests with any content.

    The retention time of old OffsetCommit versions is always the default, because kio cannot read every int64 value.
    """

    def with_default_retention(entity: Any) -> Any:
        has_retention = hasattr(entity, "retention_time")
        return dataclasses.replace(entity, retention_time=timedelta(milliseconds=-1)) if has_retention else entity

    return st.from_type(load_request_schema(api_key, version)).map(with_default_retention)


def populated(entity_type: Any) -> Any:
    """Return an entity without empty fields: every array has two elements."""
    return entity_type(**{name: _value(hint) for name, hint in get_type_hints(entity_type).items() if name[0] != "_"})


def _value(hint: Any) -> Any:
    inner = _without_null(hint)
    if get_origin(inner) is tuple:
        return (_value(get_args(inner)[0]),) * 2
    if dataclasses.is_dataclass(inner):
        return populated(inner)
    known = {bool: True, timedelta: timedelta(milliseconds=5), int: 3, str: "orders", bytes: b"abc", UUID: UUID(int=1)}
    return next(value for kind, value in known.items() if issubclass(inner, kind))


def batch(*values: bytes, timestamp_ms: int = START_MS, **producer: int) -> bytes:
    """Return an uncompressed batch; `producer_id`, `producer_epoch` and `base_sequence` make it idempotent."""
    records = [Record(offset=number, timestamp_ms=timestamp_ms, value=value) for number, value in enumerate(values)]
    return encode_batch(RecordBatch(records=tuple(records), **producer))


def fetch_fields(
    offset: int, topic: str = "orders", partition: int = 0, *, epoch: int = -1, max_bytes: int = 2**20, **fields: Any
) -> dict[str, Any]:
    """Return the fields of a Fetch request of one partition without waiting."""
    fetched = {
        "partition": partition,
        "fetch_offset": offset,
        "current_leader_epoch": epoch,
        "partition_max_bytes": max_bytes,
    }
    return {"max_wait": 0, "min_bytes": 0, "topics": [{"topic": topic, "partitions": [fetched]}], **fields}
