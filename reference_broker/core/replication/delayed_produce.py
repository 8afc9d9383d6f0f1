"""acks=all: what was appended is acknowledged when it is committed (Kafka's `DelayedProduce`).

Some records of one or several partitions wait together, each until the high watermark has passed them. A partition
stops waiting with an error where

- this broker no longer leads it, or no longer has it:   NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION;
- it is committed, by a smaller ISR than demanded:       NOT_ENOUGH_REPLICAS_AFTER_APPEND;
- the time is over:                                      REQUEST_TIMED_OUT.

In each of these the records may be in the log for good all the same.
"""

from collections.abc import Callable, Hashable, Mapping

from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.replication.partition import Partition
from reference_broker.protocol.errors import ErrorCode

Key = tuple[str, int]
Settled = Callable[[Mapping[Key, ErrorCode], Now], None]
"""Takes what became of each partition."""


class DelayedProduce:
    """Appends that wait to be committed.

    :param required: for each partition the offset behind what was appended.
    :param find: gives the replica of this broker now, or the error that says why there is none.
    :param connection: of the client that waits, if one does: it is forgotten with that.
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
        """What became of those that wait no more."""
        self._required = dict(required)
        self._find = find
        self._settled = settled

    @property
    def required(self) -> Mapping[Key, int]:
        """The offset that each partition that waits has to reach."""
        return self._required

    @property
    def keys(self) -> tuple[Key, ...]:
        """The partitions that wait."""
        return tuple(self._required)

    def check(self) -> bool:
        """Look at those that wait. True if none is left."""
        for key, offset in tuple(self._required.items()):
            partition = self._find(key)
            error = partition if isinstance(partition, ErrorCode) else partition.replication_of(offset)
            if error is not None:
                self.errors[key] = error
                del self._required[key]
        return not self._required

    def answer(self, now: Now, happened: Hashable | None) -> bool:
        """The purgatory asks."""
        if not self.check() and happened is not None:
            return False
        self.errors.update(dict.fromkeys(self._required, ErrorCode.request_timed_out))
        self._settled(self.errors, now)
        return True
