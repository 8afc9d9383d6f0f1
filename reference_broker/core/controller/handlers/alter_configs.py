"""AlterConfigs (33), versions 0-2: the properties of topics and brokers are given anew; those not named go (KIP-133).

Errors and gaps are those of IncrementalAlterConfigs, which came to replace it.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.controller.configs import Resource, config_records, replaced
from reference_broker.core.controller.controller import Controller, only_active
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import ConfigRecord

Values = Callable[[Resource, Any], dict[str, str | None]]
"""What each property becomes, of a resource and what is asked of it. Raises `ControllerError`."""


@only_active
def handle(controller: Controller, request: Request, now: Now) -> Any:
    """What became of each resource."""

    def values(resource: Resource, asked: Any) -> dict[str, str | None]:
        new = {config.name: config.value for config in asked.configs}
        return replaced(new, controller.image.overrides(resource.type, resource.name))

    return alter(controller, request, request.replies.AlterConfigsResponse, values, now)


def alter(controller: Controller, request: Request, make_response: Callable[..., Any], values: Values, now: Now) -> Any:
    """What became of each resource, where `values` says what is asked of it."""
    resources = {(asked.resource_type, asked.resource_name): asked for asked in request.body.resources}
    count = Counter((asked.resource_type, asked.resource_name) for asked in request.body.resources)
    records: list[ConfigRecord] = []
    responses = []
    for key, asked in resources.items():
        code, message = ErrorCode.none, None
        try:
            resource = _resource(asked, repeated=count[key] > 1)
            new = values(resource, asked)
            records += config_records(controller.image, resource, new, controller.runtime.configuration)
        except ControllerError as error:
            code, message = error.code, error.message
        responses.append(
            request.replies.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
        )
    response = make_response(responses=tuple(responses))
    return controller.respond_when_committed(request, () if request.body.validate_only else records, response, now)


def _resource(asked: Any, *, repeated: bool) -> Resource:
    if asked.resource_type not in set(ResourceType):
        message = f"Unknown resource type {asked.resource_type}."
        raise ControllerError(ErrorCode.unsupported_version, message)
    if repeated:
        raise ControllerError(ErrorCode.invalid_request, "Duplicate resource.")
    return Resource(ResourceType(asked.resource_type), asked.resource_name)
