"""A follower uses a Fetch response only where it still fits: the invariant `stale-response`.

Between a request and its response a partition may get another leader epoch, another fetcher or another log end, and
`AbstractFetcherThread.processFetchRequest` uses the response only for partitions that still are as the request said.
How rarely a stale response arrives depends on the rest of the broker, so each response is given to its fetcher a second
time: for the partitions that it has changed it is stale by then, and must not change them again.
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
    """An observer of a watch."""

    def metadata_advanced(self, watched: Watched, from_offset: int) -> None:
        """See the module. Fetchers come with the partitions that they follow."""
        assert watched.node is not None
        if watched.node.broker is not None:
            for fetcher in watched.node.broker.replicas._fetchers._fetchers.values():
                repeat_responses(fetcher)


def repeat_responses(fetcher: Fetcher) -> None:
    """Give a fetcher each response a second time. Raises `InvariantViolation` if a stale one changes anything."""
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
            if (is_so := _known(state)) != was:
                where = f"{state.partition.topic}-{state.partition.index}"
                detail = f"{where}: the response to a fetch from {offset} made of end, watermark, phase {was}: {is_so}"
                raise InvariantViolation("stale-response", detail)

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
