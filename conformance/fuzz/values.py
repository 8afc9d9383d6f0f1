"""Values of fields: ids and names of the cluster, limits of a type, and random values.

A value that a broker rejects in its first check finds little. Therefore most ids, names and epochs are those of
the cluster, or adjacent to them. One integer in five is at or near a limit (`limits`), and one in twenty is random.
"""

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from conformance.fuzz.batches import random_batches
from conformance.fuzz.wire import FIXED, Field
from conformance.fuzz.world import NEW_TOPICS, TOPICS, WITNESS, World

STRING_SIZES: Final = (0, 1, 249, 250, 255, 256, 4000, 32767)
"""Lengths at limits: of topic names (249, `Topic.MAX_NAME_LENGTH`), of file names, of a signed 16-bit length."""
PHANTOM_NODES: Final = (-2147483648, -2, -1, 0, 77, 1000, 2147483647)
"""Node ids that no broker of the cluster has."""
_LIMIT_SHARE: Final = 0.2
_RANDOM_SHARE: Final = 0.05
_FLOATS: Final = (0.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324)
_SPECIAL_TOPICS: Final = (
    "",
    ".",
    "..",
    "__consumer_offsets",
    "__transaction_state",
    "__cluster_metadata",
    "nul\x00",
    "é\ud800",
)
_GROUPS: Final = ("fuzz-group", "fuzz-group-2", "", "nul\x00")
_TRANSACTIONS: Final = ("fuzz-transaction", "fuzz-transaction-2", "")
_STRINGS: Final = (
    "",
    "fuzz",
    "range",
    "consumer",
    "0",
    "-1",
    "localhost",
    "é\U0001f600",
    "nul\x00",
    "%s%n",
    "../../etc",
)
_CONFIGS: Final = (
    "retention.ms",
    "compression.type",
    "cleanup.policy",
    "segment.bytes",
    "max.message.bytes",
    "min.insync.replicas",
    "no.such.config",
    "",
)
_CONFIG_VALUES: Final = (
    "-1",
    "0",
    "1",
    "zstd",
    "compact",
    "delete",
    "9223372036854775807",
    "9223372036854775808",
    "NaN",
    "",
)
_RESERVED_UUIDS: Final = (uuid.UUID(int=0), uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=2**128 - 1))
_PARTITION_COUNTS: Final = (-2147483648, -1, 0, 1, 2, 3, 4, 10_001, 2_000_000_000, 2147483647)

_NODE_FIELDS: Final = frozenset(
    {
        "broker_id", "broker_ids", "replica_id", "replicas", "new_isr", "isr", "leader_id", "candidate_id", "voter_id",
        "controller_id", "replica_node_id", "coordinator_id", "preferred_candidates",
    }
)  # fmt: skip
_TOPIC_FIELDS: Final = frozenset({"topic", "topics", "topic_name", "topic_names", "subscribed_topic_names"})
_GROUP_FIELDS: Final = frozenset({"group_id", "group_ids", "groups", "groups_names", "group"})
_TRANSACTION_FIELDS: Final = frozenset({"transactional_id", "transactional_ids"})
_PARTITION_FIELDS: Final = frozenset(
    {"partition", "partitions", "partition_index", "partition_indexes", "partition_id", "index"}
)


@dataclass(frozen=True, slots=True)
class Values:
    """Chooser of the values of one request."""

    rng: random.Random
    world: World
    is_for_quorum: bool
    """Whether `KafkaRaftClient` handles the request, so that its topic is the metadata log."""
    enveloped: Callable[[], bytes]
    """Generates the request inside an Envelope (KIP-590)."""

    def choose(self, field: Field, path: str) -> Any:
        """Choose a value for a primitive field."""
        match field.kafka_type:
            case "string":
                return self._string(field, path)
            case "records":
                return random_batches(self.rng)
            case "bytes" if field.name == "request_data":
                return self.enveloped()
            case "bytes":
                return self.rng.randbytes(self.rng.choice((0, 1, 8, 100)))
            case "uuid":
                return self._uuid(field.name)
            case "bool":
                return self.rng.random() < 0.5
            case "float64":
                return self.rng.choice(_FLOATS)
        return self._integer(field)

    def count(self, field: Field, path: str) -> int:
        """Choose the number of elements of an array; -1 for null."""
        rng = self.rng
        if field.is_nullable and rng.random() < 0.1:
            return -1
        depth = path.count(".")
        return rng.choice((0, 1, 1, 1, 2, 3)) if depth < 3 else rng.choice((0, 1, 1, 2))

    def is_present(self, field: Field, path: str) -> bool:
        """Choose whether a tagged field or a nullable struct is present."""
        return self.rng.random() < 0.5

    def _integer(self, field: Field) -> int:
        bits = 8 * FIXED[field.kafka_type].size
        chance = self.rng.random()
        if chance < _RANDOM_SHARE:
            return self.rng.getrandbits(bits)
        if chance > _RANDOM_SHARE + _LIMIT_SHARE:
            return self.rng.choice(self._known_integers(field.name))
        return self.rng.choice(limits(bits))

    def _known_integers(self, name: str) -> Sequence[int]:
        """Return values for a field of this name, some of them valid in the cluster."""
        if name in _NODE_FIELDS:
            return (*self.world.nodes, *self.world.nodes, *PHANTOM_NODES)
        if name in _PARTITION_FIELDS:
            return (0, 0, 0, 1, 2, -1)
        if name in {"num_partitions", "count"}:
            return _PARTITION_COUNTS
        if name == "replication_factor":
            return (-1, 0, 1, 1, 2, 3, 4, 32767)
        if "epoch" in name or name == "generation_id":
            return (-1, 0, 1, 2, 3, 10, 100)
        if "timeout" in name or "wait" in name or "lifetime" in name or "retention" in name:
            return (0, 0, 1, 10, 100)
        if "offset" in name or "timestamp" in name or "sequence" in name:
            return (-3, -2, -1, 0, 1, 5, 1000)
        if name == "acks":
            return (-1, -1, 0, 1, 2)
        return (0, 1, 2, 3, 4, 10, 1024)

    def _string(self, field: Field, path: str) -> str | None:
        rng, name = self.rng, field.name
        if field.is_nullable and not field.is_array and rng.random() < 0.2:
            return None
        chance = rng.random()
        if chance < _RANDOM_SHARE:
            return chr(rng.choice((0, 97, 0x20AC))) * rng.choice(STRING_SIZES)
        return rng.choice(self._known_strings(name, path))

    def _known_strings(self, name: str, path: str) -> Sequence[str]:
        if name in _TOPIC_FIELDS or (name == "name" and "topic" in path):
            if self.is_for_quorum:
                return ("__cluster_metadata", "__cluster_metadata", "__cluster_metadata", *TOPICS)
            return (*TOPICS, *TOPICS, *TOPICS, *NEW_TOPICS, WITNESS, *_SPECIAL_TOPICS)
        if name in _GROUP_FIELDS:
            return _GROUPS
        if name in _TRANSACTION_FIELDS:
            return _TRANSACTIONS
        if name == "cluster_id":
            return (self.world.cluster_id, self.world.cluster_id, "", "another")
        if name == "resource_name":
            return (*TOPICS, WITNESS, "", *map(str, self.world.nodes), "77", "fuzz-group")
        if "config" in path:
            return _CONFIG_VALUES if name == "value" else _CONFIGS
        if "key" in name or name == "coordinator_keys":
            return (*_GROUPS, *_TRANSACTIONS)
        return _STRINGS

    def _uuid(self, name: str) -> uuid.UUID:
        chance = self.rng.random()
        if chance < _RANDOM_SHARE:
            return uuid.UUID(int=self.rng.getrandbits(128))
        if "directory" in name or name == "log_dirs":
            return self.rng.choice((*_RESERVED_UUIDS, *_in_order(self.world.directory_ids)))
        return self.rng.choice((*_in_order(self.world.topic_ids), *_in_order(self.world.topic_ids), *_RESERVED_UUIDS))


def limits(bits: int) -> tuple[int, ...]:
    """Return the limits of a signed integer of this size and of half the size, and their neighbours."""
    top, half = 1 << (bits - 1), 1 << (bits // 2 - 1)
    return (-top, -top + 1, -2, -1, 0, 1, half - 1, half, top - 2, top - 1)


def _in_order(ids: Mapping[Any, uuid.UUID]) -> Sequence[uuid.UUID]:
    return [ids[name] for name in sorted(ids)]
