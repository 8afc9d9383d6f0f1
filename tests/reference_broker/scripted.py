"""A broker without a process: its pure core on a disk in memory, driven by requests written as plain words.

`broker.ask("CreateTopics", 7, topics=[{"name": "orders", "num_partitions": 3}])` builds kio's request of that version,
what is not said being empty or zero, sends it through `dispatch.handle` as bytes, and decodes the bytes that come back.
"""

import dataclasses
import struct
import types
from datetime import timedelta
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.static.primitive import Records

from fixtures.clients.messages import request_schema
from fixtures.clients.raw import decode_response, encode_request
from fixtures.clients.record_batch import Record, RecordBatch, encode_batch
from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Close, Connection
from reference_broker.core.disk import MemoryDisk
from reference_broker.core.dispatch import handle
from reference_broker.core.identity import Endpoint, Identity

API_KEYS = {"".join(word.capitalize() for word in name.split("_")): key for key, name in api_key_map.items()}
st.register_type_strategy(Records, st.binary(max_size=200))  # the one type of kio that has no strategy of its own
START_MS = 1_800_000_000_000
CLOSED = "closed"


def request(api: str, version: int, **fields: Any) -> Any:
    """A request of kio, with the fields that this version has."""
    return fill(getattr(request_schema(API_KEYS[api], version), f"{api}Request"), fields)


def fill(entity_type: Any, fields: dict[str, Any]) -> Any:
    """An entity from a dict of fields, nested entities being dicts too; the rest is empty, zero or null."""
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
    """Requests of any content.

    The retention time of an old OffsetCommit is left at its default: kio cannot read 290 thousand years and more.
    """

    def readable(entity: Any) -> Any:
        has_retention = hasattr(entity, "retention_time")
        return dataclasses.replace(entity, retention_time=timedelta(milliseconds=-1)) if has_retention else entity

    return st.from_type(load_request_schema(api_key, version)).map(readable)


def populated(entity_type: Any) -> Any:
    """An entity in which nothing is empty: every array has two elements."""
    return entity_type(
        **{name: _something(hint) for name, hint in get_type_hints(entity_type).items() if name[0] != "_"}
    )


def _something(hint: Any) -> Any:
    inner = _without_null(hint)
    if get_origin(inner) is tuple:
        return (_something(get_args(inner)[0]),) * 2
    if dataclasses.is_dataclass(inner):
        return populated(inner)
    known = {bool: True, timedelta: timedelta(milliseconds=5), int: 3, str: "orders", bytes: b"abc", UUID: UUID(int=1)}
    return next(value for kind, value in known.items() if issubclass(inner, kind))


def batch(*values: bytes, timestamp_ms: int = START_MS, **producer: int) -> bytes:
    """One uncompressed batch; `producer_id`, `producer_epoch`, `base_sequence` make it idempotent."""
    records = [Record(offset=number, timestamp_ms=timestamp_ms, value=value) for number, value in enumerate(values)]
    return encode_batch(RecordBatch(records=tuple(records), **producer))


class ScriptedBroker:
    """One broker, its disk and its clock, which stands still unless `advance` moves it."""

    def __init__(self, **properties: str) -> None:
        self.disk = MemoryDisk()
        self.now = Now(START_MS, 1_000)
        self._properties = {name.replace("_", "."): value for name, value in properties.items()}
        self._uuids = iter(UUID(int=number) for number in range(1, 10_000))
        self._schemas: dict[tuple[Connection, int], Any] = {}
        self._correlation_id = 0
        self.broker = self._open()
        self.connection = Connection()

    def _open(self) -> Broker:
        identity = Identity(1, "cluster", (Endpoint("PLAINTEXT", "localhost", 9092),), UUID(int=77), UUID(int=88))
        return Broker(identity, self._properties, self.disk, lambda: next(self._uuids), self.now)

    def restart(self, *, clean: bool = True) -> None:
        """Stop, cleanly or as a crash would, and start on the same disk."""
        if clean:
            self.broker.stop()
        self.broker = self._open()
        self.connection = Connection()

    def send(self, api: str, version: int, connection: Connection | None = None, **fields: Any) -> list[Any]:
        """What was sent in consequence of one request: (connection, response) pairs, response `CLOSED` for a close."""
        return self.send_entity(request(api, version, **fields), connection)

    def send_entity(self, entity: Any, connection: Connection | None = None) -> list[Any]:
        """The same for a request that is there already."""
        connection = connection or self.connection
        self._correlation_id += 1
        self._schemas[connection, self._correlation_id] = load_response_schema(entity.__api_key__, entity.__version__)
        frame = encode_request(entity, self._correlation_id, "test")
        return self._decoded(handle(self.broker, connection, frame, self.now))

    def send_bytes(self, frame: bytes, connection: Connection | None = None) -> list[Any]:
        """A frame as it is."""
        return handle(self.broker, connection or self.connection, frame, self.now)

    def ask(self, api: str, version: int, connection: Connection | None = None, **fields: Any) -> Any:
        """The answer to a request that is answered at once, and causes nothing else."""
        sent = self.send(api, version, connection, **fields)
        assert len(sent) == 1, sent
        asked, response = sent[0]
        assert asked is (connection or self.connection)
        return response

    def advance(self, by_ms: int) -> list[Any]:
        """Let time pass; what was sent meanwhile."""
        self.now = Now(self.now.wall_ms + by_ms, self.now.monotonic_ms + by_ms)
        self.broker.fire_timers(self.now)
        return self._decoded(self.broker.take_effects())

    def _decoded(self, effects: list[Any]) -> list[Any]:
        return [
            (effect.connection, CLOSED if isinstance(effect, Close) else self._decode(effect.connection, effect.data))
            for effect in effects
        ]

    def _decode(self, connection: Connection, data: bytes) -> Any:
        size, correlation_id = struct.unpack_from(">ii", data)
        assert size == len(data) - 4
        return decode_response(self._schemas.pop((connection, correlation_id)), data[4:])

    # Words for what most scripts do

    def create_topic(self, name: str = "orders", partitions: int = 1, **configs: str) -> UUID:
        """A topic, by CreateTopics; its id."""
        settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
        [created] = self.ask("CreateTopics", 7, topics=[topic]).topics
        assert created.error_code == 0, created
        return created.topic_id

    def produce(self, records: bytes | None, topic: str = "orders", partition: int = 0, **fields: Any) -> Any:
        """The answer for one partition, of Produce version 12."""
        data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
        response = self.ask("Produce", 12, **{"acks": -1, "timeout": 1_000, "topic_data": data, **fields})
        return response.responses[0].partition_responses[0]

    def fetch(self, offset: int, topic: str = "orders", partition: int = 0, **fields: Any) -> Any:
        """The answer for one partition, of Fetch version 12, at once."""
        return self.ask("Fetch", 12, **fetch_fields(offset, topic, partition, **fields)).responses[0].partitions[0]


def fetch_fields(
    offset: int, topic: str = "orders", partition: int = 0, *, epoch: int = -1, max_bytes: int = 2**20, **fields: Any
) -> dict[str, Any]:
    """The fields of a Fetch of one partition that does not wait."""
    asked = {
        "partition": partition,
        "fetch_offset": offset,
        "current_leader_epoch": epoch,
        "partition_max_bytes": max_bytes,
    }
    return {"max_wait": 0, "min_bytes": 0, "topics": [{"topic": topic, "partitions": [asked]}], **fields}
