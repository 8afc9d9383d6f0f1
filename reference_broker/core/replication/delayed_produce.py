"""Appended records with acks=all, which are acknowledged when they are committed.

Follows: org.apache.kafka.server.purgatory.DelayedProduce.

One operation waits for the records of one or several partitions. A partition is complete when its high watermark has
reached the end of its records. A partition fails if

- this broker no longer leads it, or no longer has it:              NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION;
- its records are committed by an ISR below `min.insync.replicas`:  NOT_ENOUGH_REPLICAS_AFTER_APPEND;
- the timeout expires:                                              REQUEST_TIMED_OUT.

In each of these cases the records may stay in the log.
"""

from collections.abc import Callable, Hashable, Mapping

from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.errors import ErrorCode

Key = tuple[str, int]
Settled = Callable[[Mapping[Key, ErrorCode], Now], None]
"""Callback for the result of each partition: `none` if its records are committed, or an error."""


class DelayedProduce:
    """Appended records that wait to be committed.

    :param required: the offset after the appended records, by partition.
    :param find: returns the replica of this broker, or an error if there is none.
    :param settled: called with the results when no partition waits any longer.
    :param connection: the client's connection; null for records of the broker itself. When the connection is closed,
        the operation is dropped.
    """

    def __init__(
        self,
        required: Mapping[Key, int],
        find: Callable[[Key], Partition | ErrorCode],
        settled: Settled,
        connection: Connection | None = None,
    ) -> None:
        self.connection = connection
        self.errors: dict[Key, ErrorCode] = {}
        """The result of each partition that no longer waits."""
        self._required = dict(required)
        self._find = find
        self._settled = settled

    @property
    def required(self) -> Mapping[Key, int]:
        """The offset that the high watermark of each waiting partition has to reach."""
        return self._required

    @property
    def keys(self) -> tuple[Key, ...]:
        """The waiting partitions."""
        return tuple(self._required)

    def check(self) -> bool:
        """Check the waiting partitions, and return whether all have a result."""
        for key, offset in tuple(self._required.items()):
            partition = self._find(key)
            error = (
                partition if isinstance(partition, ErrorCode) else partition.check_enough_replicas_reach_offset(offset)
            )
            if error is not None:
                self.errors[key] = error
                del self._required[key]
        return not self._required

    def try_complete(self, now: Now, changed_key: Hashable | None) -> bool:
        """Complete if all partitions have a result, or if the deadline has passed (`changed_key` is null)."""
        if not self.check() and changed_key is not None:
            return False
        self.errors.update(dict.fromkeys(self._required, ErrorCode.request_timed_out))
        self._settled(self.errors, now)
        return True
