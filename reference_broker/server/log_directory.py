"""Lock and identity of the log directory.

Follows: org.apache.kafka.metadata.properties.MetaProperties (KIP-858).

- `.lock` is locked while a broker runs, so that two brokers never write to one log.
- `meta.properties` has the ids of cluster, node and directory (version 1). If it has another node id or version, or
  another cluster id than the given one, the directory is rejected and stays unchanged.
"""

import fcntl
import os
from pathlib import Path
from uuid import UUID, uuid4

from reference_broker.protocol.uuids import format_uuid, parse_uuid
from reference_broker.server.errors import ServerError
from reference_broker.server.file_disk import FileDisk

_LOCK = ".lock"
_META_PROPERTIES = "meta.properties"
_VERSION = "1"


class LogDirectory:
    """A log directory that is locked by this process.

    `cluster_id` and `directory_id` come from `meta.properties`, which the first start writes.

    :param cluster_id: expected cluster id; null if any cluster id is valid.
    :raises ServerError: the directory is locked by another broker, belongs to another node or cluster, or cannot be
        used.
    """

    def __init__(self, path: Path, node_id: int, cluster_id: str | None) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = self._take_lock()
            self.disk = FileDisk(path)
            self.cluster_id, self.directory_id = self._identify(node_id, cluster_id)
        except OSError as error:
            raise ServerError(f"cannot use the log directory {path}: {error.strerror or error}") from error

    def _take_lock(self) -> int:
        descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ServerError(f"the log directory {self.path} is in use by another broker") from None
        return descriptor

    def _identify(self, node_id: int, cluster_id: str | None) -> tuple[str, UUID]:
        if not self.disk.exists(_META_PROPERTIES):
            new_cluster_id = cluster_id or format_uuid(uuid4())
            directory_id = uuid4()
            self.disk.replace(_META_PROPERTIES, _meta_properties(new_cluster_id, node_id, directory_id))
            return new_cluster_id, directory_id
        found = self._read_meta_properties()
        if found.get("node.id") != str(node_id):
            raise ServerError(f"{self.path} belongs to node {found.get('node.id')}, not to node {node_id}")
        if cluster_id is not None and found["cluster.id"] != cluster_id:
            raise ServerError(f"{self.path} belongs to cluster {found['cluster.id']}, not to cluster {cluster_id}")
        return found["cluster.id"], parse_uuid(found["directory.id"])

    def _read_meta_properties(self) -> dict[str, str]:
        text = self.disk.read(_META_PROPERTIES, 0, self.disk.size(_META_PROPERTIES)).decode(errors="replace")
        pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
        found = {name: value for name, _, value in pairs}
        version = found.get("version", _VERSION)
        if version != _VERSION:
            path = self.path / _META_PROPERTIES
            raise ServerError(f"{path} has version {version}, this broker reads version {_VERSION}")
        try:
            parse_uuid(found["directory.id"])
            found["cluster.id"], found["node.id"]
        except (KeyError, ValueError):
            raise ServerError(
                f"{self.path / _META_PROPERTIES} is damaged; restore it or use an empty directory"
            ) from None
        return found


def _meta_properties(cluster_id: str, node_id: int, directory_id: UUID) -> bytes:
    lines = (
        f"version={_VERSION}",
        f"cluster.id={cluster_id}",
        f"directory.id={format_uuid(directory_id)}",
        f"node.id={node_id}",
    )
    return ("\n".join(lines) + "\n").encode()
