"""Requirement that no request of any API, whether well-formed or broken, stops a broker from serving other requests.

The requests are those of `kafkatrial fuzz`, generated without the ids of a cluster, and sent one at a time, each on a
separate connection, so that a finding names the request that ended the broker. They are sent only to clusters that the
run has started, because some create topics or change groups.
"""

import struct
from functools import cache
from typing import Final
from uuid import UUID

from hypothesis import strategies as st

from conformance.fuzz.generator import FuzzRequest, Generator
from conformance.fuzz.wire import known_apis
from conformance.fuzz.world import TOPICS, WITNESS, Port, World
from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement
from conformance.sequential.check import judges, sequential
from conformance.sequential.steps import BrokenRequest
from conformance.sequential.strategies import many, script
from fixtures.clients.messages import api_name
from fixtures.targets.target import Capability

_SEED: Final = 1
_NUMBERS: Final = st.integers(0, 2**20)
_REQUESTS_PER_SCRIPT: Final = 12
_BYTES_MAX: Final = 2_000
"""Longer frames make a finding unreadable."""
_NODE_IDS: Final = tuple(range(1, 10))
"""Requests that act in the name of one of these nodes are not sent."""
_UNKNOWN_API: Final = BrokenRequest(struct.pack(">ihhih", 10, 1000, 0, 1, -1), "API key 1000 v0")


@cache
def _generator() -> Generator:
    """Return a generator for any cluster: it uses invented topic ids, and every API and version that kio has.

    The requests that are known to end nodes of Apache Kafka are left out for every target.
    """
    served: dict[int, tuple[int, int]] = {}
    for key, version in known_apis():
        lowest, highest = served.get(key, (version, version))
        served[key] = (min(lowest, version), max(highest, version))
    ids = {name: UUID(int=place) for place, name in enumerate((*TOPICS, WITNESS), start=2**64)}
    return Generator(_SEED, World("cluster", _NODE_IDS, ids, {Port.CLIENT: served}, kind="apache-kafka"))


def _broken_request(number: int) -> BrokenRequest:
    """Return the first request from this number on that is for the client listener and not longer than `_BYTES_MAX`."""
    request = _generator().request(number)
    while request.port is not Port.CLIENT or len(request.data) > _BYTES_MAX:
        number += 1
        request = _generator().request(number)
    return BrokenRequest(request.data, _title(request))


def _title(request: FuzzRequest) -> str:
    return "; ".join((f"{api_name(request.api_key)} v{request.version}", *request.notes))


REQUIREMENTS: Final = (
    Requirement(
        id="negotiation/broken-requests-are-survived",
        level=Level.MUST,
        text="After a well-formed or broken request of any API, by a client that does not read the response, the "
        "broker continues: new connections and those of other clients are served, and its memory stays bounded.",
        sources=(sources.PROTOCOL_NETWORK,),
        check=sequential(
            script(_UNKNOWN_API, many(_NUMBERS.map(_broken_request), at_most=_REQUESTS_PER_SCRIPT)),
            judges("broker", "other_connections", "memory", of=BrokenRequest),
        ),
        needs=frozenset({Capability.PROCESS_CONTROL}),
    ),
)
"""Last of all requirements, because the requests leave groups, producers and topics behind."""
