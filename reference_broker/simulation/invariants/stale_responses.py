"""The invariant `stale-response`: a follower ignores a Fetch response for a partition that changed since the request.

Between a request and its response a partition may get another leader epoch, another fetcher or another log end, and
`AbstractFetcherThread.processFetchRequest` uses the response only for partitions whose fetch offset and leader epoch
are those of the request. Stale responses are rare in a run, so each response is passed to its fetcher a second time:
for the partitions that it has changed it is stale, and must not change them again.
"""

from reference_broker.core.replication.fetch_state import FetchPhase, FetchState
from reference_broker.core.replication.fetcher import Fetcher
from reference_broker.core.tracer import FetchResponseProcessed
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched


def check_stale_response(_watched: Watched, event: FetchResponseProcessed) -> None:
    """Pass a response to its fetcher again. Raises `InvariantViolation` if that has an effect where it is stale."""
    fetcher: Fetcher = event.fetcher
    stale = tuple((state, offset) for state, offset in event.named if _is_stale(fetcher, state, offset))
    before = [_known(state) for state, _ in stale]
    if stale:
        fetcher.process_fetch_response(stale, event.response, event.now)
    for (state, offset), was in zip(stale, before, strict=True):
        if (now_known := _known(state)) != was:
            partition = f"{state.partition.topic}-{state.partition.index}"
            detail = f"a stale response changed log end, high watermark and phase from {was} to {now_known}"
            raise InvariantViolation("stale-response", f"{partition}, fetch from {offset}: {detail}")


def _is_stale(fetcher: Fetcher, state: FetchState, offset: int) -> bool:
    partition = state.partition
    current: object = fetcher.states.get(partition.key)
    return (
        current is not state
        or state.phase is not FetchPhase.FETCHING
        or (partition.leader_epoch, partition.log.log_end_offset) != (state.leader_epoch, offset)
    )


def _known(state: FetchState) -> tuple[int, int, FetchPhase]:
    return state.partition.log.log_end_offset, state.partition.high_watermark, state.phase
