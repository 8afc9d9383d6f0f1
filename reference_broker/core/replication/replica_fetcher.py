"""Replica fetcher: replicates partitions from one leader, with one Fetch in flight, over a separate channel.

Follows: kafka.server.AbstractFetcherThread, kafka.server.ReplicaFetcherThread (KIP-101, KIP-279, KIP-595).

A state machine without IO, driven by metadata (`add_partition`, `remove_partition`) and the leader's responses:
- A Fetch has no session, and contains every partition in phase FETCHING. A partition that had records moves to the end
  of the request. Otherwise the first partitions could fill every response.
- A response is used for a partition only if the partition's leader epoch and log end offset are still those of the
  request.
- The table `PHASE_AFTER_ERROR` gives the phase after an error. After FENCED_LEADER_EPOCH this broker waits for newer
  metadata; after UNKNOWN_LEADER_EPOCH it retries until the leader has newer metadata.
- A Fetch without a response, or with a top-level error, delays all its partitions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.log.errors import AppendError
from reference_broker.core.replication.fetch_settings import FetchSettings
from reference_broker.core.replication.fetch_state import FetchPhase, PartitionFetchState
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.requests import RequestedPartition, fetch_request, list_offsets_request
from reference_broker.core.timers import Timers
from reference_broker.core.tracer import Event, Tracer, no_tracer
from reference_broker.protocol.errors import ErrorCode

SendToLeader = Callable[[Any, Callable[[Any, Now], None], Now], bool]
"""Sends a request to the leader. The callback takes the response, null if the request failed. Returns False, without a
callback, if the endpoint of the leader is unknown."""

_EARLIEST, _LATEST = -2, -1
"""Timestamps in ListOffsets for the log start offset and the log end offset."""

PHASE_AFTER_ERROR: Mapping[ErrorCode, FetchPhase] = MappingProxyType(
    {
        ErrorCode.offset_out_of_range: FetchPhase.TRUNCATING,
        ErrorCode.fenced_leader_epoch: FetchPhase.FAILED,
    }
)
"""Phase after an error of a partition in a response; DELAYED after any other error."""


class ReplicaFetcher:
    """The partitions that this broker replicates from one leader.

    :param broker_epoch: returns this broker's epoch, which the leader compares with the metadata (KIP-903).
    :param rebalance: called after each response, before the next request; it may add and remove partitions.
    """

    def __init__(
        self,
        settings: FetchSettings,
        timers: Timers,
        send: SendToLeader,
        broker_epoch: Callable[[], int],
        rebalance: Callable[[Now], None],
        *,
        trace: Tracer = no_tracer,
    ) -> None:
        self.is_in_flight = False
        self.busy_partitions: dict[tuple[str, int], None] = {}
        """Partitions that had records, in the order of their first records, until `remove_partition` removes them."""
        self._settings = settings
        self._timers = timers
        self._send = send
        self._broker_epoch = broker_epoch
        self._rebalance = rebalance
        self._trace = trace
        self._states: dict[tuple[str, int], PartitionFetchState] = {}
        self._request: Any = None
        self._requested: tuple[RequestedPartition, ...] = ()
        self._response_without_change: Any = None
        """The last response, if it changed nothing. The same object is not processed again for the same request."""

    def __len__(self) -> int:
        return len(self._states)

    @property
    def states(self) -> Mapping[tuple[str, int], PartitionFetchState]:
        """The fetch state of each partition."""
        return self._states

    def add_partition(self, partition: Partition) -> None:
        """Start to replicate a partition in its current leader epoch, at the next `maybe_fetch`."""
        state = self._states.get(partition.key)
        if state is None or state.leader_epoch != partition.leader_epoch or state.partition is not partition:
            self._states.pop(partition.key, None)
            self._states[partition.key] = PartitionFetchState(partition, partition.leader_epoch)
            self._request = None

    def remove_partition(self, key: tuple[str, int]) -> PartitionFetchState | None:
        """Stop replicating a partition. Return its fetch state; null if this fetcher does not replicate it."""
        self.busy_partitions.pop(key, None)
        self._request = None
        return self._states.pop(key, None)

    def add_fetch_state(self, state: PartitionFetchState) -> None:
        """Take over a partition that was removed from another fetcher."""
        self._states[state.partition.key] = state
        self._request = None

    def rebuild_request(self) -> None:
        """Do not reuse the last request, because its fields have changed."""
        self._request = None

    def idle_since(self, at_ms: int) -> list[tuple[str, int]]:
        """Return the partitions in phase FETCHING that have had no records since a monotonic time."""
        return [
            key
            for key, state in self._states.items()
            if state.phase is FetchPhase.FETCHING and state.had_records_ms < at_ms
        ]

    def phase(self, key: tuple[str, int]) -> FetchPhase | None:
        """Return the phase of a partition; null if this fetcher does not replicate it."""
        state = self._states.get(key)
        return None if state is None else state.phase

    def maybe_fetch(self, now: Now) -> None:
        """Send the next Fetch, unless one is in flight."""
        if self.is_in_flight:
            return
        request, requested = self._request_for_all()
        if not requested:
            return
        self.is_in_flight = True
        if not self._send(
            request, lambda response, later: self._handle_fetch_response(requested, response, later), now
        ):
            self.is_in_flight = False
            self._delay_partitions((state for state, _ in requested), now)

    def _request_for_all(self) -> tuple[Any, tuple[RequestedPartition, ...]]:
        """Return the next request, with its partitions. The last request is reused if its fields have not changed."""
        epoch = self._broker_epoch()
        if self._request is None or self._request.replica_state.replica_epoch != epoch:
            states = [state for state in self._states.values() if state.phase is FetchPhase.FETCHING]
            self._requested = tuple((state, state.partition.log.log_end_offset) for state in states)
            self._request = fetch_request(self._settings, epoch, self._requested)
        return self._request, self._requested

    # Responses

    def _handle_fetch_response(self, requested: tuple[RequestedPartition, ...], response: Any, now: Now) -> None:
        self.is_in_flight = False
        if response is None or response.error_code is not ErrorCode.none:
            self._delay_partitions((state for state, _ in requested), now)
        elif response is not self._response_without_change or requested is not self._requested:
            self.process_fetch_response(requested, response, now)
            self._trace(FetchResponseProcessed(self, requested, response))
            self._response_without_change = None if self._request is None else response
        self._rebalance(now)
        self.maybe_fetch(now)

    def process_fetch_response(self, requested: tuple[RequestedPartition, ...], response: Any, now: Now) -> None:
        """Process a response for the partitions that have not changed since the request."""
        delayed = []
        for state, partition_response in self.usable_partitions(requested, response):
            phase = self._process_partition_data(state, partition_response, now)
            if phase is FetchPhase.DELAYED:
                delayed.append(state)
            elif phase is not FetchPhase.FETCHING:
                self._become(state, phase, now)
        self._delay_partitions(delayed, now)

    def usable_partitions(
        self, requested: tuple[RequestedPartition, ...], response: Any
    ) -> Iterator[tuple[PartitionFetchState, Any]]:
        """Yield the partitions of a response that have not changed since the request.

        Each partition is checked just before it is yielded, because the caller may have changed partitions since the
        previous one.
        """
        by_id = {(state.partition.topic_id, state.partition.index): (state, offset) for state, offset in requested}
        for topic in response.responses:
            for partition_response in topic.partitions:
                found = by_id.get((topic.topic_id, partition_response.partition_index))
                if found is not None and self._is_current(*found):
                    yield found[0], partition_response

    def _is_current(self, state: PartitionFetchState, offset: int) -> bool:
        return (
            self._states.get(state.partition.key) is state
            and state.phase is FetchPhase.FETCHING
            and state.partition.leader_epoch == state.leader_epoch
            and state.partition.log.log_end_offset == offset
        )

    def _process_partition_data(self, state: PartitionFetchState, data: Any, now: Now) -> FetchPhase:
        """Process one partition of a response, and return the next phase."""
        if data.error_code is not ErrorCode.none:
            return PHASE_AFTER_ERROR.get(data.error_code, FetchPhase.DELAYED)
        partition, diverging = state.partition, data.diverging_epoch
        if diverging.epoch >= 0:
            partition.truncate_to(partition.truncation_offset(diverging.epoch, diverging.end_offset), now)
            self._request = None
            return FetchPhase.FETCHING
        try:
            start_before = partition.log_start_offset
            partition.replicate(data.records or b"", data.high_watermark, data.log_start_offset, now)
        except AppendError:
            return FetchPhase.DELAYED
        if data.records:
            state.had_records_ms = now.monotonic_ms
            self.busy_partitions.setdefault(partition.key)
            self._states[partition.key] = self._states.pop(partition.key)
        if data.records or partition.log_start_offset != start_before:
            self._request = None
        return FetchPhase.FETCHING

    def _become(self, state: PartitionFetchState, phase: FetchPhase, now: Now) -> None:
        state.become(phase)
        self._request = None
        if phase is FetchPhase.TRUNCATING:
            self._fetch_offset_and_truncate(state, now)

    def _delay_partitions(self, states: Iterable[PartitionFetchState], now: Now) -> None:
        delayed = [state for state in states if self._states.get(state.partition.key) is state]
        for state in delayed:
            state.become(FetchPhase.DELAYED)
        if delayed:
            self._request = None
            at_ms = now.monotonic_ms + self._settings.backoff_ms
            self._timers.set(at_ms, lambda later: self._resume(delayed, later))

    def _resume(self, delayed: list[PartitionFetchState], now: Now) -> None:
        for state in delayed:
            state.become(FetchPhase.FETCHING)
        self._request = None
        self.maybe_fetch(now)

    # After OFFSET_OUT_OF_RANGE

    def _fetch_offset_and_truncate(self, state: PartitionFetchState, now: Now, timestamp: int = _LATEST) -> None:
        """Request the leader's log end offset, or its log start offset, to truncate this log."""
        request = list_offsets_request(self._settings, state, timestamp)
        if not self._send(
            request, lambda response, later: self._handle_list_offsets_response(state, timestamp, response, later), now
        ):
            self._delay_partitions([state], now)

    def _handle_list_offsets_response(
        self, state: PartitionFetchState, timestamp: int, response: Any, now: Now
    ) -> None:
        if self._states.get(state.partition.key) is not state or state.phase is not FetchPhase.TRUNCATING:
            return
        data = None if response is None else response.topics[0].partitions[0]
        if data is None or data.error_code is not ErrorCode.none:
            fenced = data is not None and data.error_code is ErrorCode.fenced_leader_epoch
            if fenced:
                self._become(state, FetchPhase.FAILED, now)
            else:
                self._delay_partitions([state], now)
        elif not self._truncate_into_leader_range(state.partition, timestamp, data.offset, now):
            self._fetch_offset_and_truncate(state, now, _EARLIEST)
        else:
            self._become(state, FetchPhase.FETCHING, now)
            self.maybe_fetch(now)

    def _truncate_into_leader_range(self, partition: Partition, timestamp: int, offset: int, now: Now) -> bool:
        """Make this log end within the leader's log. Return False if the leader's log start offset is needed for that.

        After an unclean election, this log may be longer than the leader's. It may also end below the leader's log
        start offset, because retention has deleted the records in between on the leader.
        """
        end_offset = partition.log.log_end_offset
        if timestamp == _LATEST:
            if offset >= end_offset:
                return False
            partition.truncate_to(offset, now)
        elif offset > end_offset:
            partition.truncate_fully_and_start_at(offset, now)
        return True


@dataclass(frozen=True, slots=True)
class FetchResponseProcessed(Event):
    """A leader's response that a fetcher has processed; `response` is kio's entity.

    :param requested: the fetch state and fetch offset of each partition of the request.
    """

    fetcher: ReplicaFetcher
    requested: tuple[RequestedPartition, ...]
    response: Any
