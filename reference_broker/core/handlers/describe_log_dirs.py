"""DescribeLogDirs (35), versions 1-5: the replicas in a broker's log directories.

Follows: kafka.server.ReplicaManager (KIP-113, KIP-827).

The response has all replicas of this broker, or the requested ones. Each replica has its size, and the lag of its log
end offset behind its high watermark. There are no future replicas, since there is only one directory.

Gaps: total and usable bytes of the volume (version 4, KIP-827) are -1, since the core does not know them. A broker
stops when its directory fails, so no directory is ever offline.
"""

from collections import defaultdict
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.replication.partition import Partition
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """Describe the log directory."""
    new = request.replies
    requested = None
    if request.body.topics is not None:
        requested = {(topic.topic, index) for topic in request.body.topics for index in topic.partitions}
    by_topic: defaultdict[str, list[Partition]] = defaultdict(list)
    for partition in broker.replicas:
        if requested is None or partition.key in requested:
            by_topic[partition.topic].append(partition)
    result = new.DescribeLogDirsResult(
        error_code=ErrorCode.none,
        log_dir=str(broker.configuration.value("log.dirs")),
        topics=tuple(
            new.DescribeLogDirsTopic(name=name, partitions=tuple(_partition(request, partition) for partition in found))
            for name, found in by_topic.items()
        ),
        total_bytes=-1,
        usable_bytes=-1,
        is_cordoned=False,
    )
    return new.DescribeLogDirsResponse(error_code=ErrorCode.none, results=(result,))


def _partition(request: Request, partition: Partition) -> Any:
    return request.replies.DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=partition.log.size_bytes,
        offset_lag=max(partition.high_watermark - partition.log.log_end_offset, 0),
        is_future_key=False,
    )
