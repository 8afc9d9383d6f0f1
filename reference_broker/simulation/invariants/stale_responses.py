"""The invariant `stale-response`: a follower ignores a Fetch response for a partition that changed since the request.

Between a request and its response a partition may get another leader epoch, another fetcher or another log end, and
`AbstractFetcherThread.processFetchRequest` uses the response only for partitions whose fetch offset and leader epoch
are those of the request. Stale responses are rare in a run, so each response is passed to its fetcher a second time:
for the partitions that it has changed it is stale, and must not change them again.
"""

from collections.abc import Callable
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.replication.fetch_state import FetchPhase, FetchState
from reference_broker.core.replication.fetcher import Fetcher
from reference_broker.core.replication.requests import Asked
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Observer, Watched

Take = Callable[[tuple[Asked, ...], Any, Now], None]


class StaleResponseInvariants(Observer):
    """Observer that repeats the responses of every fetcher."""

    def metadata_advanced(self, watched: Watched, from_offset: int) -> None:
        """Wrap the fetchers, which are created when partitions are assigned."""
        assert watched.node is not None
        if watched.node.broker is not None:
            for fetcher in watched.node.broker.replicas._fetchers._fetchers.values():
                repeat_responses(fetcher)


def repeat_responses(fetcher: Fetcher) -> None:
    """Wrap a fetcher so that it gets each response twice. Raises `InvariantViolation` if a stale one has an effect."""
    if "_take" in vars(fetcher):
        return
    take = fetcher._take

    def twice(named: tuple[Asked, ...], response: Any, now: Now) -> None:
        take(named, response, now)
        stale = tuple((state, offset) for state, offset in named if _is_stale(fetcher, state, offset))
        before = [_known(state) for state, _ in stale]
        if stale:
            take(stale, response, now)
        for (state, offset), was in zip(stale, before, strict=True):
            if (now_known := _known(state)) != was:
                partition = f"{state.partition.topic}-{state.partition.index}"
                detail = f"a stale response changed log end, high watermark and phase from {was} to {now_known}"
                raise InvariantViolation("stale-response", f"{partition}, fetch from {offset}: {detail}")

    fetcher._take = twice  # type: ignore[method-assign]


def _is_stale(fetcher: Fetcher, state: FetchState, offset: int) -> bool:
    partition = state.partition
    current: object = fetcher._states.get(partition.key)
    return (
        current is not state
        or state.phase is not FetchPhase.FETCHING
        or (partition.leader_epoch, partition.log.log_end_offset) != (state.leader_epoch, offset)
    )


def _known(state: FetchState) -> tuple[int, int, FetchPhase]:
    return state.partition.log.log_end_offset, state.partition.high_watermark, state.phase
