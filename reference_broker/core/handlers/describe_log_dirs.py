"""DescribeLogDirs (35), versions 1-5: what lies in a broker's log directories (KIP-113).

- All replicas of this broker, or those that are named; each with its size, and how far its end is behind its high
  watermark. None is a future replica: there is one directory.

Gaps: the size of the volume and what is free on it (version 4, KIP-827) are not known to the core: -1. A directory that
has failed takes its broker down, so none is ever offline.
"""

from collections import defaultdict
from typing import Any

from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.replication.partition import Partition
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


def handle(broker: Broker, request: Request, now: Now) -> Any:
    """The one directory."""
    new = request.replies
    asked = None
    if request.body.topics is not None:
        asked = {(topic.topic, index) for topic in request.body.topics for index in topic.partitions}
    by_topic: defaultdict[str, list[Partition]] = defaultdict(list)
    for partition in broker.replicas:
        if asked is None or partition.key in asked:
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
