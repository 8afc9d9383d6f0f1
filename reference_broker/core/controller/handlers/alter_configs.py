"""AlterConfigs (33), versions 0-2: replace all properties of topics and brokers.

Follows: org.apache.kafka.controller.ConfigurationControlManager (KIP-133).

KIP-339 deprecates this API in favour of IncrementalAlterConfigs. The module `incremental_alter_configs` lists the
errors. AlterConfigs requests have no operations, and therefore no errors of operations.

Gaps: no properties of groups, client metrics or loggers; no alter-config policy.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.controller.configs import Resource, config_records, replace_properties
from reference_broker.core.controller.controller import Controller, Decision, decide_in_steps
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import ConfigRecord
from reference_broker.protocol.steps import Pace, Steps

NewValues = Callable[[Resource, Any], dict[str, str | None]]
"""Function of a resource and its element in the request. Returns the new value of each property; null deletes it.

Raises `ControllerError`.
"""


@decide_in_steps
def handle(controller: Controller, request: Request) -> Steps[Decision]:
    """Replace the properties of each resource."""

    def new_values(resource: Resource, element: Any) -> dict[str, str | None]:
        new = {config.name: config.value for config in element.configs}
        return replace_properties(new, controller.image.overrides(resource.type, resource.name))

    return alter(controller, request, request.replies.AlterConfigsResponse, new_values)


def alter(
    controller: Controller, request: Request, make_response: Callable[..., Any], new_values: NewValues
) -> Steps[Decision]:
    """Set the new values of each resource, and return its error or success.

    A resource with an error is not changed. With `validate_only`, no resource is changed.

    :param make_response: class of the response.
    :param new_values: computes the new values of a resource.
    """
    elements = {(element.resource_type, element.resource_name): element for element in request.body.resources}
    count = Counter((element.resource_type, element.resource_name) for element in request.body.resources)
    records: list[ConfigRecord] = []
    responses = []
    pace = Pace()
    for key, element in elements.items():
        if pace.is_due():
            yield
        code, message = ErrorCode.none, None
        try:
            resource = _resource(element, repeated=count[key] > 1)
            values = new_values(resource, element)
            records += config_records(controller.image, resource, values, controller.runtime.configuration)
        except ControllerError as error:
            code, message = error.code, error.message
        responses.append(
            request.replies.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=element.resource_type,
                resource_name=element.resource_name,
            )
        )
    response = make_response(responses=tuple(responses))
    return () if request.body.validate_only else records, response


def _resource(element: Any, *, repeated: bool) -> Resource:
    if element.resource_type not in set(ResourceType):
        message = f"Unknown resource type {element.resource_type}."
        raise ControllerError(ErrorCode.unsupported_version, message)
    if repeated:
        raise ControllerError(ErrorCode.invalid_request, "Duplicate resource.")
    return Resource(ResourceType(element.resource_type), element.resource_name)
