"""IncrementalAlterConfigs (44), versions 0-1: some properties of topics and brokers change (KIP-339).

- Each resource for itself, and as a whole: a resource twice in the request INVALID_REQUEST(42), one of another type
  UNSUPPORTED_VERSION(35), a value or an operation that cannot be INVALID_CONFIG(40), then UNKNOWN_TOPIC_OR_PARTITION(3)
  or BROKER_ID_NOT_REGISTERED(102).
- `validate_only` answers the same and leaves nothing.

The broker that forwards the request has judged properties of brokers before.

Gaps: no properties of groups, client metrics and loggers; no alter-config policy.
"""

from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.controller.configs import Change, Operation, Resource, altered
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.handlers.alter_configs import alter
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """What became of each resource."""

    def values(resource: Resource, asked: Any) -> dict[str, str | None]:
        changes = [Change(config.name, _operation(config), config.value) for config in asked.configs]
        return altered(resource, changes, controller.image.overrides(resource.type, resource.name))

    return alter(controller, request, request.replies.IncrementalAlterConfigsResponse, values, now)


def _operation(config: Any) -> Operation:
    try:
        return Operation(config.config_operation)
    except ValueError:
        raise ControllerError(ErrorCode.unknown_server_error) from None
