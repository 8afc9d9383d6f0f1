"""Preconditions of scripts: for each kind of request a plain one, which every broker that offers the API must serve.

If the plain request fails in the same way as a request of a script, then the script shows nothing about its
requirement. The first requirement of a run that finds this failure reports it. Later ones that find it have the verdict
*unknown*, because the failure blocks them.
"""

from collections.abc import Container, Mapping
from typing import Final

from conformance.check_context import BasicFailure
from conformance.sequential.connections import TargetDown
from conformance.sequential.judging import Deviation, Judges, deviations
from conformance.sequential.response import NO_RESPONSE_FIELDS
from conformance.sequential.routing import NotReady
from conformance.sequential.session import Session
from conformance.sequential.steps import (
    Batch,
    CreatePartitions,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    DescribeCluster,
    DescribeConfigs,
    Fetch,
    InitProducerId,
    JoinGroup,
    ListOffsets,
    Metadata,
    OffsetCommit,
    OffsetFetch,
    OffsetForLeaderEpoch,
    Produce,
    Record,
    Script,
    Step,
)
from fixtures.clients.raw import UnsupportedApi

_FAILURE_FIELDS: Final = frozenset({"error", *NO_RESPONSE_FIELDS})
"""Response fields that show that a request failed."""
_PRODUCE: Final = Produce((Batch((Record(b"basic"),)),))
_PLAIN_REQUESTS: Final = (
    CreateTopic("trial-basic"),
    _PRODUCE,
    Fetch(),
    ListOffsets(),
    OffsetForLeaderEpoch(),
    DeleteRecords(),
    InitProducerId(),
    Metadata(),
    OffsetCommit(0),
    OffsetFetch(),
    JoinGroup(),
    CreatePartitions(2),
    DeleteTopic(),
    DescribeConfigs(("cleanup.policy",)),
    DescribeCluster(),
)
_PLAIN_REQUEST_BY_KIND: Final[Mapping[type[Step], Step]] = {type(step): step for step in _PLAIN_REQUESTS}


def basic_failure(
    target: str, session: Session, worst: Deviation, known: Container[BasicFailure]
) -> BasicFailure | None:
    """Return the failure of the plain request, if it fails in the same way as the request of the deviation.

    The result is None if the deviation is not a failure, if there is no plain request of this kind, or if the plain
    request succeeds, fails in another way or cannot be sent. A known failure is returned without another request.

    :param worst: the worst deviation of a script.
    :param known: the failures that were found before.
    """
    field, request = worst.mismatch.field, _PLAIN_REQUEST_BY_KIND.get(worst.kind)
    if request is None or field not in _FAILURE_FIELDS:
        return None
    failure = BasicFailure(target, worst.kind.__name__, field, worst.mismatch.actual if field == "error" else "")
    if failure in known:
        return failure
    script = Script((CreateTopic(), _PRODUCE, request))
    try:
        responses = session.run(script)
    except (TargetDown, NotReady, UnsupportedApi):
        return None
    found = deviations(session.pinned(script), responses, Judges({worst.kind: frozenset({field})}))
    mismatches = [deviation.mismatch for deviation in found if deviation.mismatch.field == field]
    if field == "error":
        mismatches = [mismatch for mismatch in mismatches if mismatch.actual == failure.actual]
    return failure if mismatches else None
