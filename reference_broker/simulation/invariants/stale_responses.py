"""The invariant `stale-response`: a follower ignores a Fetch response for a partition that changed since the request.

Between a request and its response, the leader epoch, the fetcher or the log end of a partition may change. The response
is then stale for this partition. `AbstractFetcherThread.processFetchRequest` uses a response only for partitions whose
fetch offset and leader epoch are still those of the request.

Stale responses are rare in a run. Therefore each response is checked a second time, after the fetcher has processed it.
The log ends of some partitions have then changed, and the response is stale for these partitions: `usable_partitions`
must not return them.
"""

from reference_broker.core.replication.fetch_state import FetchPhase, PartitionFetchState
from reference_broker.core.replication.replica_fetcher import FetchResponseProcessed, ReplicaFetcher
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Watched


def check_stale_response(_watched: Watched, event: FetchResponseProcessed) -> None:
    """Raise `InvariantViolation` if the fetcher would use a stale response."""
    offsets = dict(event.requested)
    for state, _ in event.fetcher.usable_partitions(event.requested, event.response):
        if _is_stale(event.fetcher, state, offsets[state]):
            partition = f"{state.partition.topic}-{state.partition.index}"
            detail = f"a fetch from {offsets[state]} in epoch {state.leader_epoch} would be used; the log ends at"
            end = f"{state.partition.log.log_end_offset} in epoch {state.partition.leader_epoch}"
            raise InvariantViolation("stale-response", f"{partition}: {detail} {end}")


def _is_stale(fetcher: ReplicaFetcher, state: PartitionFetchState, offset: int) -> bool:
    partition = state.partition
    current: object = fetcher.states.get(partition.key)
    return (
        current is not state
        or state.phase is not FetchPhase.FETCHING
        or (partition.leader_epoch, partition.log.log_end_offset) != (state.leader_epoch, offset)
    )
