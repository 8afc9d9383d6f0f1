"""The connection itself: versions, bytes, several requests at once on one or two."""

from dataclasses import dataclass, field

from conformance.sequential.steps.base import Step
from conformance.sequential.steps.records import Fetch, ListOffsets, Produce

API_VERSIONS_NEWEST = 99
"""An ApiVersions version that no broker has."""


@dataclass(frozen=True, slots=True)
class ApiVersions(Step):
    """ApiVersions, with the client's name and version since v3 (KIP-511). May be of a version nobody has."""

    version: int = 3
    software_name: str = "kafkatrial"
    software_version: str = "1"


@dataclass(frozen=True, slots=True)
class RawBytes(Step):
    """Bytes on a connection of their own. The answer says whether that was closed, and whether the broker lives."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pipelined(Step):
    """Several requests to one partition's leader, all sent before any answer is read."""

    steps: tuple[Produce | Fetch | ListOffsets, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class LongPoll(Step):
    """A fetch that waits while others produce to its partition on another connection; the fetch's answer."""

    fetch: Fetch
    produces: tuple[Produce, ...]
