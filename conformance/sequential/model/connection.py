"""Model of ApiVersions, broken requests, raw requests, and the end of a broker."""

import re
from typing import Final

from conformance.sequential.expectation import Expectation, OneOf
from conformance.sequential.model.cluster import ModelCluster
from conformance.sequential.steps import (
    API_VERSIONS_NEWEST,
    ApiVersions,
    BrokenRequest,
    Kill,
    RawBytes,
    RawRequest,
    Repeated,
)

_LEGAL_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""KIP-511's pattern for a client's name and version."""

_LISTED: Final = {"api_versions_listed": True, "listed_once": True, "ranges_in_order": True}


def api_versions(_cluster: object, step: ApiVersions) -> Expectation:
    """Return the version ranges. A malformed client name or version is rejected (KIP-511).

    In an unknown version, the ranges are returned with an error, in a response of version 0.
    """
    if step.version >= API_VERSIONS_NEWEST:
        return {"error": "UNSUPPORTED_VERSION", **_LISTED}
    software = (step.software_name, step.software_version)
    if step.version >= 3 and not all(_LEGAL_SOFTWARE.fullmatch(word) for word in software):
        return {"error": "INVALID_REQUEST"}
    return {"error": "NONE", **_LISTED}


def raw_bytes(_cluster: object, _step: RawBytes) -> Expectation:
    """Expect that the broker closes the connection, and continues to serve others."""
    return {"broker": "alive", "connection": "closed"}


def broken_request(_cluster: object, _step: BrokenRequest) -> Expectation:
    """Expect that the broker continues to serve other connections, however it treats the request."""
    return {"broker": "alive", "other_connections": "served", "memory": "bounded"}


def kill(cluster: ModelCluster, step: Kill) -> Expectation:
    """Expect nothing: the broker does not respond until it is started again."""
    cluster.down.add(step.broker)
    return {}


def repeated(_cluster: object, _step: Repeated) -> Expectation:
    """Return that all responses have the same information, and no error."""
    return {"errors": (), "differing": (), "decreased": ()}


def raw_request(_cluster: object, step: RawRequest) -> Expectation:
    """Return the outcome that the step specifies, independent of the model's state."""
    errors: object = tuple(sorted(step.errors))
    if step.or_errors is not None:
        errors = OneOf((errors, tuple(sorted(step.or_errors))), "the request has two faults")
    outcome: dict[str, object] = {"errors": errors, "explained": True}
    if step.names is not None:
        outcome["names"] = tuple(sorted(step.names))
    return outcome | {"has_elements": True} if step.has_elements else outcome
