"""Model of fetch sessions (`FetchSession.scala`, KIP-227).

- A request with epoch 0 creates a session, which has the requested partitions. Its response has all of them.
- Each later request has the next epoch, and adds, updates and removes partitions. The response has only partitions with
  records from their fetch offset on, and those whose high watermark has changed since the last response with them. A
  changed log start offset has the same effect, but no script changes it.
- A request with epoch -1 ends the session. Its response has the partitions that it requests.
"""

from conformance.sequential.expectation import Expectation
from conformance.sequential.model.cluster import FetchSession, ModelCluster
from conformance.sequential.steps import SessionFetch

_NEW, _FINAL = 0, -1


def fetch(cluster: ModelCluster, step: SessionFetch) -> Expectation:
    """Return the partitions of a response, or the error of a request outside the session."""
    session = cluster.fetch_session
    if step.epoch in {_NEW, _FINAL}:
        session = FetchSession(1, dict(step.partitions))
        cluster.fetch_session = session if step.epoch == _NEW else None
        returned = list(session.offsets)
        return _response(cluster, step, session, returned)
    if session is None:
        return {"error": "FETCH_SESSION_ID_NOT_FOUND"}
    if step.epoch not in {None, session.epoch}:
        return {"error": "INVALID_FETCH_SESSION_EPOCH"}
    session.epoch += 1
    session.offsets |= dict(step.partitions)
    for index in step.forgotten:
        session.offsets.pop(index, None)
        session.returned.pop(index, None)
    ends = {index: _log_end(cluster, step, index) for index in session.offsets}
    changed = [
        index for index, end in ends.items() if session.offsets[index] < end or session.returned.get(index) != end
    ]
    return _response(cluster, step, session, changed)


def _response(cluster: ModelCluster, step: SessionFetch, session: FetchSession, indexes: list[int]) -> Expectation:
    ends = {index: _log_end(cluster, step, index) for index in indexes}
    session.returned |= ends
    return {
        "error": "NONE",
        "has_session": step.epoch != _FINAL,
        "partitions": tuple(
            (index, "NONE", tuple(range(session.offsets[index], ends[index])), ends[index]) for index in sorted(indexes)
        ),
    }


def _log_end(cluster: ModelCluster, step: SessionFetch, index: int) -> int:
    return cluster.topics[step.topic].partitions[index].log_end_offset
