"""Reads of the replicas on disk after a script: each replica is recorded as an operation that reads its log.

So the checkers compare the replicas: a missing record is a lost write, two records at one offset are a divergence. The
replicas of a partition are read when all have the same end offset, or after `EQUAL_TIMEOUT_S`. Each is read from the
highest of their log start offsets.
"""

from collections.abc import Iterable, Mapping

from conformance.concurrent.trial_context import TrialContext
from fixtures.clients.transport import Transport
from fixtures.targets.controls import LogDirectories
from fixtures.targets.replica_logs import Replica, read_replica
from fixtures.targets.stored_batches import segment_files
from fixtures.targets.target import Capability

EQUAL_TIMEOUT_S = 10.0
"""Timeout for all replicas to have the same end offset: longer than `replica.fetch.wait.max.ms`."""
_POLL_INTERVAL_S = 0.2


def record_replicas(context: TrialContext) -> None:
    """Record an operation `read_replica` for every replica of the topic, if the target exposes its disks."""
    target = context.target
    if not isinstance(target, LogDirectories) or Capability.LOG_DIRECTORIES not in target.capabilities:
        return
    for partition, replicas in context.replicas.items():
        name = f"{context.topic}-{partition}"
        logs = _await_equal_ends(target, replicas.nodes, name, target.transport)
        start = max(log.start_offset for log in logs.values())
        for node in logs:
            directory = target.log_directories(node)[0] / name
            data = b"".join(segment.read_bytes() for segment in segment_files(directory))
            with context.raw_client(node) as client:
                client.read_replica(context.topic, partition, start, data)


def _await_equal_ends(
    disks: LogDirectories, nodes: Iterable[int], partition: str, transport: Transport
) -> Mapping[int, Replica]:
    deadline = transport.monotonic() + EQUAL_TIMEOUT_S
    while True:
        logs = {node: read_replica(str(node), disks.log_directories(node)[0] / partition) for node in nodes}
        if len({log.end_offset for log in logs.values()}) == 1 or transport.monotonic() > deadline:
            return logs
        transport.sleep(_POLL_INTERVAL_S)
