"""IncrementalAlterConfigs (44), versions 0-1: change some properties of topics and brokers.

Follows: org.apache.kafka.controller.ConfigurationControlManager (KIP-339).

Each resource changes as a whole or not at all. The errors of a resource, in the order of the checks:

| problem                                             | error                                                        |
|-----------------------------------------------------|--------------------------------------------------------------|
| the resource type is unknown                        | UNSUPPORTED_VERSION(35)                                      |
| the resource occurs twice                           | INVALID_REQUEST(42)                                          |
| an operation is unknown                             | UNKNOWN_SERVER_ERROR(-1)                                     |
| APPEND or SUBTRACT on a property that is not a list | INVALID_CONFIG(40)                                           |
| a value has more than 32767 characters              | INVALID_CONFIG(40)                                           |
| the resource name is invalid                        | INVALID_TOPIC_EXCEPTION(17), INVALID_REQUEST(42)             |
| a value of a topic property is invalid              | INVALID_CONFIG(40)                                           |
| the resource does not exist                         | UNKNOWN_TOPIC_OR_PARTITION(3), BROKER_ID_NOT_REGISTERED(102) |

`validate_only` returns the same response and writes nothing.

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
