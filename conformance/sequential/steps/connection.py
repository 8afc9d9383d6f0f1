"""Steps on the connection: versions, raw bytes, raw requests, and several requests at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.sequential.steps.base import TOPIC, Step
from conformance.sequential.steps.records import Fetch, ListOffsets, Produce
from fixtures.clients.messages import ApiKey

API_VERSIONS_NEWEST = 99
"""An ApiVersions version that no broker has."""


@dataclass(frozen=True, slots=True)
class ApiVersions(Step):
    """ApiVersions, with the client's name and version since v3 (KIP-511). The version may be an unknown one."""

    version: int = 3
    software_name: str = "kafkatrial"
    software_version: str = "1"


@dataclass(frozen=True, slots=True)
class RawBytes(Step):
    """Bytes on a separate connection. The response has the states of this connection and of the broker."""

    data: bytes


@dataclass(frozen=True, slots=True)
class BrokenRequest(Step):
    """A frame that is well-formed or broken, on a separate connection on which no response is read.

    The response has the state of the broker: whether it accepts connections, serves those of other clients, and uses
    little additional memory.
    """

    data: bytes
    title: str = ""
    """API, version and the changes that were made, for messages."""


@dataclass(frozen=True, slots=True)
class Kill(Step):
    """SIGKILL to one broker, which is down until its `Restart`."""

    broker: int = 1


@dataclass(frozen=True, slots=True)
class Restart(Step):
    """Restart of a broker that was killed, with the same disk.

    The script continues when the leaders of its partitions serve again, or after a timeout.
    """

    broker: int = 1


@dataclass(frozen=True, slots=True)
class Pipelined(Step):
    """Several requests to one partition's leader, all sent before any response is read."""

    steps: tuple[Produce | Fetch | ListOffsets, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Merged(Step):
    """Requests of one API, each for another partition, topic or group, merged into one request to each broker."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class LongPoll(Step):
    """A fetch that waits while records are produced on another connection. The response is that of the fetch."""

    fetch: Fetch
    produces: tuple[Produce, ...]


@dataclass(frozen=True, slots=True)
class Broker:
    """Placeholder in a `RawRequest` for the id of the broker in this place."""

    place: int


@dataclass(frozen=True, slots=True)
class Producer:
    """Placeholder in a `RawRequest` for the producer id that the script received in this place, 0 for the first."""

    place: int


@dataclass(frozen=True, slots=True)
class BrokerSetting:
    """Placeholder in a `RawRequest` for a number: a setting, as the broker that receives the request describes it.

    :ivar otherwise: the number if the broker does not describe the setting.
    :ivar plus: the difference from the setting.
    :ivar at_most: the highest number that the field can have. A script with a higher one is not applicable.
    :ivar stored_within: the setting that limits the record in which a text of this length is stored. If the record may
        exceed that limit, the script is not applicable. Empty if there is no such setting.
    """

    name: str
    otherwise: int
    plus: int = 0
    at_most: int = 2**31 - 1
    stored_within: str = ""


@dataclass(frozen=True, slots=True)
class RawRequest(Step):
    """A request given field by field, if no other step can express it, and the errors of its response.

    The fields are named as in kio. A string that begins with `trial` is a topic or group of the script. A
    number as `topic_id` is an index as in `MetadataById`, and one as `committed_metadata` is a length. A request for a
    partition is sent to the leader of `topic` and `partition`.

    :ivar errors: all error codes of the response, in any order, NONE included.
    :ivar or_errors: all error codes of another permitted response, if the request has two faults; otherwise None.
    :ivar distinct: whether `errors` has each error once and no NONE, since versions differ in the number of codes.
    :ivar names: the names of the request that the response must repeat, in the versions that have fields for them; None
        if they are not judged.
    :ivar has_elements: whether one of the response's lists must have an element.
    """

    api: ApiKey
    fields: Mapping[str, Any] = field(hash=False)
    errors: tuple[str, ...]
    version: int | None = None
    topic: str = TOPIC
    partition: int = 0
    distinct: bool = False
    names: tuple[str, ...] | None = None
    has_elements: bool = False
    or_errors: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Repeated(Step):
    """A request that only reads, sent several times in each of its versions that both sides support.

    The response has the errors of all responses, the fields in which they differ, and those that decreased.

    :ivar on_every_broker: whether each broker receives it.
    :ivar broker: the place of the only broker that receives it; None for the one that a client selects.
    :ivar varying: names of the fields that are not compared.
    :ivar rising: names of the fields that may differ, but do not decrease on any broker.
    """

    request: RawRequest
    on_every_broker: bool = False
    varying: tuple[str, ...] = ()
    rising: tuple[str, ...] = ()
    broker: int | None = None
