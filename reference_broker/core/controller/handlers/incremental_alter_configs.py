"""IncrementalAlterConfigs (44), versions 0-1: change some properties of topics and brokers.

Follows: org.apache.kafka.controller.ConfigurationControlManager (KIP-339).

- Each resource changes as a whole or not at all. Errors, in this order: UNSUPPORTED_VERSION(35) for an unknown resource
  type, INVALID_REQUEST(42) if a resource occurs twice, UNKNOWN_SERVER_ERROR(-1) for an unknown operation,
  INVALID_CONFIG(40) for APPEND or SUBTRACT on a property that is not a list, INVALID_TOPIC_EXCEPTION(17) or
  INVALID_REQUEST(42) for an invalid resource name, INVALID_CONFIG(40) for an invalid value, then
  UNKNOWN_TOPIC_OR_PARTITION(3) or BROKER_ID_NOT_REGISTERED(102).
- `validate_only` returns the same response and writes nothing.

The broker that forwards the request has already validated properties of brokers.

Gaps: no properties of groups, client metrics or loggers; no alter-config policy.
"""

from typing import Any

from reference_broker.core.controller.configs import Change, Operation, Resource, apply_changes
from reference_broker.core.controller.controller import Controller, Decision, decide_in_steps
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.handlers.alter_configs import alter
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.steps import Steps


@decide_in_steps
def handle(controller: Controller, request: Request) -> Steps[Decision]:
    """Change each resource, and return its error or success."""

    def new_values(resource: Resource, element: Any) -> dict[str, str | None]:
        changes = [Change(config.name, _operation(config), config.value) for config in element.configs]
        return apply_changes(resource, changes, controller.image.overrides(resource.type, resource.name))

    return alter(controller, request, request.replies.IncrementalAlterConfigsResponse, new_values)


def _operation(config: Any) -> Operation:
    try:
        return Operation(config.config_operation)
    except ValueError:
        raise ControllerError(ErrorCode.unknown_server_error) from None
