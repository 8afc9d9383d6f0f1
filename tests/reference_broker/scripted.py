"""Broker for tests: a simulated cluster of one node, driven by requests with plain arguments.

`broker.request("CreateTopics", 7, topics=[{"name": "orders", "num_partitions": 3}])` sends a request through the node
as bytes and decodes the response. Messages take no time, so a request has its effects at once. The clock advances only
in `advance` and `restart`.
"""

import itertools
from typing import Any
from uuid import UUID

from kio.index import load_response_schema

from fixtures.clients.raw import encode_request
from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.node import Node
from reference_broker.simulation.disk import SimulatedDisk
from tests.reference_broker.cluster import CLOSED, Cluster
from tests.reference_broker.requests import (
    API_KEYS,
    START_MS,
    any_request,
    batch,
    fetch_fields,
    fill,
    populated,
    request,
)

__all__ = [
    "API_KEYS",
    "CLOSED",
    "START_MS",
    "ScriptedBroker",
    "any_request",
    "batch",
    "fetch_fields",
    "fill",
    "populated",
    "request",
]

_STEPWISE_MAX_MS = 120_000


class ScriptedBroker:
    """One broker, its disk, its clock, and a client, which reconnects if its connection was closed.

    The only periodic actions are heartbeats.
    """

    def __init__(self, **properties: str) -> None:
        alone = {"metadata_max_idle_interval_ms": "0", "offsets_topic_replication_factor": "1"}
        self.cluster = Cluster(1, latency_ms=0, **{**alone, **properties})
        self._sent: list[tuple[Connection, Any]] = []
        self._correlation_ids = itertools.count(1)
        self._begin()

    def _begin(self) -> None:
        self.cluster.run_until(lambda: self.node.is_ready)
        self.connection = Connection()
        self._is_closed = False
        self._sent.clear()

    @property
    def node(self) -> Node:
        return self.cluster.nodes[1]

    @property
    def broker(self) -> Broker:
        assert self.node.broker is not None
        return self.node.broker

    @property
    def disk(self) -> SimulatedDisk:
        return self.cluster.disks[1]

    @property
    def now(self) -> Now:
        return self.cluster.now

    def restart(self, *, clean: bool = True) -> None:
        """Stop or kill the broker, start it on the same disk, and wait until it is ready.

        After a kill, it is ready when its old session has expired.
        """
        if clean:
            self.cluster.stop(1)
        else:
            self.cluster.kill(1)
        self.cluster.start(1)
        self._begin()

    def send(self, api: str, version: int, connection: Connection | None = None, **fields: Any) -> list[Any]:
        """Send a request. Return what the broker then sends: pairs of a connection and a response or `CLOSED`."""
        return self.send_entity(request(api, version, **fields), connection)

    def send_entity(self, entity: Any, connection: Connection | None = None) -> list[Any]:
        """Send a request entity. Return what the broker then sends."""
        frame = encode_request(entity, next(self._correlation_ids), "test")
        return self.send_bytes(frame, connection, load_response_schema(entity.__api_key__, entity.__version__))

    def send_bytes(self, frame: bytes, connection: Connection | None = None, schema: Any = None) -> list[Any]:
        """Send a frame. Return what the broker then sends; responses are decoded if there is a schema."""
        if self._is_closed:
            self.connection, self._is_closed = Connection(), False
        self.cluster.send_bytes(1, connection or self.connection, frame, schema, self._sent.append)
        return self._settled()

    def disconnect(self, connection: Connection) -> None:
        """Close a client's connection."""
        self.cluster.disconnect(connection)
        self.cluster.run(0)

    def request(self, api: str, version: int, connection: Connection | None = None, **fields: Any) -> Any:
        """Send a request and return its response. It must arrive at once, and no other response may be sent."""
        sent = self.send(api, version, connection, **fields)
        assert len(sent) == 1, sent
        receiver, response = sent[0]
        assert receiver is (connection or self.connection)
        return response

    def advance(self, by_ms: int) -> list[Any]:
        """Advance the time, and return what the broker sends meanwhile.

        More than two minutes are one step: all timers fire at the end.
        """
        if by_ms <= _STEPWISE_MAX_MS:
            self.cluster.run(by_ms)
        else:
            self.cluster.jump(by_ms)
        return self._settled()

    def _settled(self) -> list[Any]:
        self.cluster.run(0)
        sent = self._sent.copy()
        self._sent.clear()
        self._is_closed |= (self.connection, CLOSED) in sent
        return sent

    # Common requests

    def create_topic(self, name: str = "orders", partitions: int = 1, **configs: str) -> UUID:
        """Create a topic and return its id."""
        settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
        [created] = self.request("CreateTopics", 7, topics=[topic]).topics
        assert created.error_code == 0, created
        return created.topic_id

    def produce(self, records: bytes | None, topic: str = "orders", partition: int = 0, **fields: Any) -> Any:
        """Send a Produce request of version 12 and return the response of its partition."""
        data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
        response = self.request("Produce", 12, **{"acks": -1, "timeout": 1_000, "topic_data": data, **fields})
        return response.responses[0].partition_responses[0]

    def fetch(self, offset: int, topic: str = "orders", partition: int = 0, **fields: Any) -> Any:
        """Send a Fetch request of version 12 without waiting and return the response of its partition."""
        return self.request("Fetch", 12, **fetch_fields(offset, topic, partition, **fields)).responses[0].partitions[0]
