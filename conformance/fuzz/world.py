"""Metadata of the fuzzed cluster: node ids, topic ids, directory ids, and the versions that each listener advertises.

A saved frame contains ids of the cluster that it was sent to. `World.translated` replaces them by those of another
cluster, so that the request can be sent again.
"""

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Port(StrEnum):
    """The listeners of a node."""

    CLIENT = "client"
    REPLICATION = "replication"
    CONTROLLER = "controller"


TOPICS: Mapping[str, Mapping[str, str]] = {
    "fuzz-plain": {},
    "fuzz-recompressed": {"compression.type": "zstd"},
    "fuzz-gzipped": {"compression.type": "gzip"},
    "fuzz-compacted": {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"},
}
"""Configurations of the topics that requests name. Their records may be lost."""
NEW_TOPICS = ("fuzz-new-1", "fuzz-new-2", "fuzz-new-3", "n" * 249)
"""Topics that requests may create and delete."""
WITNESS = "witness-of-the-fuzzing"
"""The topic whose acknowledged records must exist at the end. No request that would change it is sent."""


@dataclass(frozen=True, slots=True)
class World:
    """The metadata of one cluster.

    :ivar nodes: node ids.
    :ivar topic_ids: ids of `TOPICS` and of the witness topic.
    :ivar served: lowest and highest version by API key, as each listener advertises them.
    :ivar kind: kind of the target, for the known defects of Apache Kafka (`conformance.fuzz.protection`).
    """

    cluster_id: str
    nodes: tuple[int, ...]
    topic_ids: Mapping[str, uuid.UUID]
    served: Mapping[Port, Mapping[int, tuple[int, int]]]
    directory_ids: Mapping[int, uuid.UUID] = field(default_factory=dict)
    kind: str = ""

    def translated(self, frame: bytes, other: "World") -> bytes:
        """Return the frame with each id of this cluster replaced by the corresponding id of the other cluster."""
        theirs = other.ids()
        for name, ours in self.ids().items():
            frame = frame.replace(ours, theirs.get(name, ours))
        return frame

    def ids(self) -> dict[str, bytes]:
        """Return the ids as they occur in frames, by names that are the same in every cluster."""
        topics = {f"topic {name}": topic_id.bytes for name, topic_id in self.topic_ids.items()}
        directories = {f"directory {node}": directory.bytes for node, directory in self.directory_ids.items()}
        return {"cluster": self.cluster_id.encode(), **topics, **directories}

    def as_json(self) -> dict[str, Any]:
        """Return the ids for a saved finding."""
        return {
            "cluster_id": self.cluster_id,
            "nodes": list(self.nodes),
            "topic_ids": {name: str(topic_id) for name, topic_id in self.topic_ids.items()},
            "directory_ids": {str(node): str(directory) for node, directory in self.directory_ids.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "World":
        """Parse what `as_json` returned; `served` is empty. Raises `KeyError`, `TypeError` or `ValueError`."""
        return cls(
            cluster_id=str(data["cluster_id"]),
            nodes=tuple(int(node) for node in data["nodes"]),
            topic_ids={str(name): uuid.UUID(topic_id) for name, topic_id in data["topic_ids"].items()},
            served={},
            directory_ids={int(node): uuid.UUID(directory) for node, directory in data["directory_ids"].items()},
        )


def uuid_of(text: str) -> uuid.UUID:
    """Parse an id in the form of Kafka's `Uuid`: 22 characters of base64, as in `meta.properties`."""
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
