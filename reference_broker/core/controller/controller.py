"""The active controller: what is asked of the metadata becomes records of the quorum's log (KIP-500, KIP-631).

Rules of this package:
- A decision is a function of an image and a request. It gives the records that carry it out, and the answer; it
  changes nothing. The shape is that of Kafka's `QuorumController` and its `ControllerResult`.
- Checks come in Kafka's order, since the first one that fails is the answer.
- What is decided is applied to the controller's own image at once, before it is committed, so that the next decision
  builds on it. No one else sees it before: an answer is given once all that it rests upon is committed, a decision
  without records included.
- A controller is active in one epoch of the quorum. When that ends, its image is thrown away, with all that was not
  committed, and whoever waits is told NOT_CONTROLLER.

Sessions of brokers are kept in `heartbeats`, leaders found in `elections`; `periodic_tasks` has what its timers do.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol

from reference_broker.core.clock import Now
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.heartbeats import Heartbeats
from reference_broker.core.controller.periodic_tasks import PeriodicTasks, nothing
from reference_broker.core.controller.refusals import refusal
from reference_broker.core.metadata.bootstrap import bootstrap_records
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.request import Outcome, Request
from reference_broker.core.runtime import Runtime
from reference_broker.core.tracer import ControllerActivated, RequestDecided
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord

Then = Callable[[Now], None]
MAX_RECORDS_PER_USER_OP = 10_000
"""Of one request: Kafka's `QuorumController.MAX_RECORDS_PER_USER_OP`."""
TOO_MANY_RECORDS = "Unable to perform excessively large batch operation."


class MetadataWriter(Protocol):
    """The quorum's log, as its leader sees it."""

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""

    def append(self, records: Sequence[MetadataRecord], epoch: int, now: Now) -> int:
        """Write records as one batch, all of them or none; the offset behind the last."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Something to be done once everything below an offset is committed; a request that waits for it, if any."""

    end_offset: int
    then: Then
    request: Request | None


class Controller:
    """A controller, active or standing by.

    :param log: where its decisions are written while it is active.
    """

    def __init__(self, runtime: Runtime, log: MetadataWriter) -> None:
        self.runtime = runtime
        self.image = MetadataImage()
        self.heartbeats = Heartbeats(runtime.configuration.integer("broker.session.timeout.ms"))
        self.periodic_tasks = PeriodicTasks(self)
        self._log = log
        self._epoch: int | None = None
        self._waiting: deque[_Waiting] = deque()

    @property
    def is_active(self) -> bool:
        """Whether this one decides."""
        return self._epoch is not None

    @property
    def elections(self) -> Elections:
        """The elections that the image, as it is now, calls for."""
        return Elections(self.image, self.runtime.configuration, self.runtime.identity.node_id)

    @property
    def next_offset(self) -> int:
        """The offset of the next record that will be written; a new broker's epoch."""
        return self._log.end_offset

    # The quorum

    def activate(self, epoch: int, image: MetadataImage, now: Now) -> None:
        """Decide from here on: this node leads the quorum, and the log is committed up to the start of its epoch.

        :param image: after all that is committed; this controller's own from here on.
        """
        self._epoch = epoch
        self.runtime.trace(ControllerActivated(epoch))
        self.image = image
        if not image.features:
            self.write(bootstrap_records(), nothing, now)
        self.heartbeats.begin(image.brokers.values(), now)
        self.periodic_tasks.begin(now)

    def deactivate(self, now: Now) -> None:
        """Somebody else leads, or nobody."""
        self._epoch = None
        self.periodic_tasks.end()
        self.image = MetadataImage()
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            if entry.request is not None:
                self.runtime.respond(entry.request, refusal(entry.request, ErrorCode.not_controller))

    def committed(self, high_watermark: int, now: Now) -> None:
        """The log is committed up to an offset: whoever waited for that goes on."""
        while self._waiting and self._waiting[0].end_offset <= high_watermark:
            self._waiting.popleft().then(now)

    # Writing

    def write(self, records: Sequence[MetadataRecord], then: Then, now: Now, *, request: Request | None = None) -> None:
        """Make these records part of the metadata, all or none of them, and go on once they are committed.

        Without records: once all that was written before is committed, which may be at once. If this controller ceases
        to be active before, `then` is never called.

        :param request: of one who waits: in that case it is answered NOT_CONTROLLER.
        """
        assert self._epoch is not None, "a controller that stands by decides nothing"
        if records:
            end_offset = self._log.append(records, self._epoch, now)
            for record in records:
                self.image.apply(record)
            self._waiting.append(_Waiting(end_offset, then, request))
            self.periodic_tasks.records_written(records, now)
        elif self._waiting:
            self._waiting.append(_Waiting(self._waiting[-1].end_offset, then, request))
        else:
            then(now)

    def respond_when_committed(
        self, request: Request, records: Sequence[MetadataRecord], response: Any, now: Now
    ) -> Any:
        """Write, and answer once that is committed; to be returned by a handler.

        Raises `ControllerError`, POLICY_VIOLATION, for more records than one request may have.
        """
        self.runtime.trace(RequestDecided(request, records, response))
        if len(records) > MAX_RECORDS_PER_USER_OP:
            raise ControllerError(ErrorCode.policy_violation, TOO_MANY_RECORDS)
        if not records and not self._waiting:
            return response
        self.write(records, lambda _: self.runtime.respond(request, response), now, request=request)
        return Outcome.DEFERRED


Handle = Callable[[Controller, Request, Now], Any]


def only_active(handle: Handle) -> Handle:
    """Wrap a handler: NOT_CONTROLLER if the controller is not active, and the error of a `ControllerError`."""

    @wraps(handle)
    def handle_if_active(controller: Controller, request: Request, now: Now) -> Any:
        if not controller.is_active:
            return refusal(request, ErrorCode.not_controller)
        try:
            return handle(controller, request, now)
        except ControllerError as error:
            return refusal(request, error.code, error.message)

    return handle_if_active
