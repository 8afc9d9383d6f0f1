"""The active controller: turns requests to change the cluster's metadata into records of the quorum's log.

Follows: org.apache.kafka.controller.QuorumController (KIP-500, KIP-631).

Rules of this package:
- A decision consists of records and a response, like Kafka's `ControllerResult`. It is computed from an image and a
  request. The computation changes neither of them.
- Checks come in Kafka's order, since the first one that fails determines the error.
- Records are applied to the controller's own image at once, before they are committed, so that the next decision
  uses them. A response is sent when all records that it depends on are committed, even if the decision itself has no
  records. So a response contains no uncommitted metadata. As in Kafka, an error of a whole request is sent at once.
- A controller is active in one epoch of the quorum. When that epoch ends, the image is discarded with all uncommitted
  changes, and waiting requests fail with NOT_CONTROLLER.

`broker_heartbeat_manager` keeps broker sessions, `elections` chooses leaders, `periodic_tasks` has the timers.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol

from reference_broker.core.clock import Now
from reference_broker.core.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.error_responses import error_response
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.periodic_tasks import PeriodicTasks, ignore_commit
from reference_broker.core.metadata.bootstrap import bootstrap_records
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.request import Request, RequestOutcome
from reference_broker.core.runtime import Runtime
from reference_broker.core.tracer import ControllerActivated, RequestDecided
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import MetadataRecord
from reference_broker.protocol.steps import ELEMENTS_PER_STEP, Steps, finish

CommitHandler = Callable[[Now], None]
"""Called when records are committed."""
MAX_RECORDS_PER_USER_OP = 10_000
"""Maximum number of records that one request may write, as `QuorumController.MAX_RECORDS_PER_USER_OP`."""
TOO_MANY_RECORDS = "Unable to perform excessively large batch operation."


class MetadataWriter(Protocol):
    """The metadata log on the quorum's leader."""

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""

    def append(self, records: Sequence[MetadataRecord], epoch: int, now: Now) -> int:
        """Append records as one atomic batch. Return the offset after the last."""


@dataclass(frozen=True, slots=True)
class _DeferredEvent:
    """A callback to run when all records below an offset are committed, and the request that waits for it, if any."""

    end_offset: int
    then: CommitHandler
    request: Request | None


class Controller:
    """A controller, active or standby.

    :param log: receives the records while the controller is active.
    """

    def __init__(self, runtime: Runtime, log: MetadataWriter) -> None:
        self.runtime = runtime
        self.image = MetadataImage()
        self.heartbeat_manager = BrokerHeartbeatManager(runtime.configuration.integer("broker.session.timeout.ms"))
        self.periodic_tasks = PeriodicTasks(self)
        self._log = log
        self._epoch: int | None = None
        self._waiting: deque[_DeferredEvent] = deque()

    @property
    def is_active(self) -> bool:
        """Whether this is the active controller."""
        return self._epoch is not None

    @property
    def elections(self) -> Elections:
        """Elections on the present image."""
        return Elections(self.image, self.runtime.configuration, self.runtime.identity.node_id)

    @property
    def next_offset(self) -> int:
        """Offset of the next record, which becomes the epoch of a broker that registers now."""
        return self._log.end_offset

    @property
    def image_version(self) -> tuple[int | None, int]:
        """Version of the image, which changes with the epoch and with every record."""
        return self._epoch, self._log.end_offset

    # The quorum

    def activate(self, epoch: int, image: MetadataImage, now: Now) -> None:
        """Become active: this node leads the quorum in an epoch, and the log before this epoch is committed.

        :param image: the committed state; the controller applies its records to this object.
        """
        self._epoch = epoch
        self.runtime.trace(ControllerActivated(epoch))
        self.image = image
        if not image.features:
            self.write(bootstrap_records(), ignore_commit, now)
        self.heartbeat_manager.activate(image.brokers.values(), now)
        self.periodic_tasks.start(now)

    def deactivate(self, now: Now) -> None:
        """Become standby: this node no longer leads the quorum."""
        self._epoch = None
        self.periodic_tasks.stop()
        self.image = MetadataImage()
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            if entry.request is not None:
                self.runtime.respond(entry.request, error_response(entry.request, ErrorCode.not_controller))

    def handle_commit(self, high_watermark: int, now: Now) -> None:
        """Complete the events that waited for the high watermark to reach this offset."""
        while self._waiting and self._waiting[0].end_offset <= high_watermark:
            self._waiting.popleft().then(now)

    # Writing

    def write(
        self, records: Sequence[MetadataRecord], then: CommitHandler, now: Now, *, request: Request | None = None
    ) -> None:
        """Write records atomically, and call `then` once they are committed.

        If `records` is empty, `then` is called once all records written earlier are committed. This is allowed only
        while another call waits for a commit. `then` is never called if the controller is deactivated before that.

        :param request: the request that waits; it fails with NOT_CONTROLLER if the controller is deactivated.
        """
        assert self._epoch is not None, "a standby controller writes no records"
        if records:
            end_offset = self._log.append(records, self._epoch, now)
            for record in records:
                self.image.apply(record)
            self._waiting.append(_DeferredEvent(end_offset, then, request))
            self.periodic_tasks.records_written(records, now)
        else:
            self._waiting.append(_DeferredEvent(self._waiting[-1].end_offset, then, request))

    def respond_when_committed(
        self, request: Request, records: Sequence[MetadataRecord], response: Any, now: Now
    ) -> Any:
        """Write records, and respond once they are committed. A handler returns the result of this method.

        Raises `ControllerError` with POLICY_VIOLATION if there are more records than one request may write.
        """
        check_record_count(records)
        self.runtime.trace(RequestDecided(request, records, response))
        if not records and not self._waiting:
            return response
        self.write(records, lambda _: self.runtime.respond(request, response), now, request=request)
        return RequestOutcome.DEFERRED


def check_record_count(records: Sequence[MetadataRecord]) -> None:
    """Raise `ControllerError` with POLICY_VIOLATION if there are more records than one request may write."""
    if len(records) > MAX_RECORDS_PER_USER_OP:
        raise ControllerError(ErrorCode.policy_violation, TOO_MANY_RECORDS)


Handle = Callable[[Controller, Request, Now], Any]


def require_active(handle: Handle) -> Handle:
    """Wrap a handler: return NOT_CONTROLLER on a standby controller, and an error response for a `ControllerError`."""

    @wraps(handle)
    def handle_if_active(controller: Controller, request: Request, now: Now) -> Any:
        if not controller.is_active:
            return error_response(request, ErrorCode.not_controller)
        try:
            return handle(controller, request, now)
        except ControllerError as error:
            return error_response(request, error.code, error.message)

    return handle_if_active


Decision = tuple[Sequence[MetadataRecord], Any]
"""Records and response of a request."""
Decide = Callable[[Controller, Request], Steps[Decision]]
"""Function that computes the decision on a request in steps, and changes nothing. Raises `ControllerError`."""


def decide_in_steps(decide: Decide) -> Handle:
    """Return a handler that computes the decision in steps.

    If the image has changed since the first step, the decision is computed again, in one step.
    """

    @wraps(decide)
    def handle(controller: Controller, request: Request, now: Now) -> Any:
        version = controller.image_version

        def conclude(decision: Decision | ControllerError, later: Now) -> None:
            if controller.image_version != version:
                decision = finish(_decision(controller, request, decide))
            controller.runtime.complete(request, _conclude(controller, request, decision, later))

        controller.runtime.work.run(request, _decision(controller, request, decide), conclude, now)
        return RequestOutcome.DEFERRED

    return handle


def _decision(controller: Controller, request: Request, decide: Decide) -> Steps[Decision | ControllerError]:
    if not controller.is_active:
        return ControllerError(ErrorCode.not_controller)
    try:
        decision = yield from decide(controller, request)
        if len(decision[0]) > ELEMENTS_PER_STEP:
            yield  # the records are written in the next step
        return decision
    except ControllerError as error:
        return error


def _conclude(controller: Controller, request: Request, decision: Decision | ControllerError, now: Now) -> Any:
    try:
        if isinstance(decision, ControllerError):
            raise decision
        records, response = decision
        return controller.respond_when_committed(request, records, response, now)
    except ControllerError as error:
        return error_response(request, error.code, error.message)
