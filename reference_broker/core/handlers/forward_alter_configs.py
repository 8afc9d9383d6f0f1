"""AlterConfigs (33), versions 0-2, and IncrementalAlterConfigs (44), versions 0-1: validation by the broker.

Follows: kafka.server.ConfigAdminManager (KIP-133, KIP-339).

The broker validates the resources of a request before it forwards the request to the active controller:

- Duplicate resources or properties, null values, unknown resource types: INVALID_REQUEST(42).
- A broker resource must be this broker, or all brokers (the empty name). Another broker, read-only properties and
  invalid values: INVALID_REQUEST(42). APPEND or SUBTRACT on a property that is not a list: INVALID_CONFIG(40).

Invalid resources are not forwarded. The response has their errors, and the controller's results for the valid resources
(`reassembleIncrementalResponse`). If forwarding fails, each valid resource has the error of the forwarded request.

Gaps: groups, client metrics and loggers have no properties: INVALID_REQUEST(42).
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from reference_broker.core import forwarding
from reference_broker.core.broker import Broker
from reference_broker.core.clock import Now
from reference_broker.core.configuration.key import ConfigType, InvalidConfigError
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS
from reference_broker.core.configuration.resource import ResourceType, parse_node_id
from reference_broker.core.configuration.validation import validate_dynamic
from reference_broker.core.controller.configs import Change, Operation, Resource, apply_changes
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.messages import client_codec
from reference_broker.protocol.steps import Pace, Steps

_INCREMENTAL = 44


def handle(broker: Broker, request: Request, now: Now) -> Steps[Any]:
    """Reject invalid resources, and forward the valid ones."""
    resources = request.body.resources
    count = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    rejected: dict[int, ControllerError] = {}
    pace = Pace()
    for position, resource in enumerate(resources):
        if pace.is_due():
            yield
        try:
            _check(broker, request, resource, repeated=count[resource.resource_type, resource.resource_name] > 1)
        except ControllerError as error:
            rejected[position] = error
    if not rejected:
        return forwarding.handle(broker, request, now)
    if len(rejected) == len(resources):
        return _response(
            request, [_error_result(request, resources[position], rejected[position]) for position in rejected]
        )
    return _forward_rest(broker, request, rejected, now)


def _forward_rest(broker: Broker, request: Request, rejected: dict[int, ControllerError], now: Now) -> Any:
    resources = request.body.resources
    rest = tuple(resource for position, resource in enumerate(resources) if position not in rejected)
    body = replace(request.body, resources=rest)
    request_type: type = type(body)
    codec = client_codec(request_type)
    frame = codec.write(request.correlation_id, request.client_id or "", body)[4:]  # without the length prefix

    def on_result(response: Any) -> None:
        by_resource = {(result.resource_type, result.resource_name): result for result in response.responses}
        results = [
            _error_result(request, resource, rejected[position])
            if position in rejected
            else by_resource[resource.resource_type, resource.resource_name]
            for position, resource in enumerate(resources)
        ]
        broker.runtime.respond(request, _response(request, results))

    def on_response(data: bytes) -> None:
        on_result(codec.read(data)[1])

    return forwarding.forward(broker, replace(request, body=body, frame=frame), on_response, on_result, now)


def _response(request: Request, results: list[Any]) -> Any:
    new = request.replies
    make = new.IncrementalAlterConfigsResponse if request.api_key == _INCREMENTAL else new.AlterConfigsResponse
    return make(responses=tuple(results))


def _error_result(request: Request, resource: Any, error: ControllerError) -> Any:
    return request.replies.AlterConfigsResourceResponse(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _check(broker: Broker, request: Request, resource: Any, *, repeated: bool) -> None:
    if repeated:
        raise _invalid("Each resource must appear at most once.")
    if len({config.name for config in resource.configs}) < len(resource.configs):
        raise _invalid("Error due to duplicate config keys")
    without_value = [config.name for config in resource.configs if config.value is None and not _is_delete(config)]
    if without_value:
        raise _invalid(f"Null value not supported for : {', '.join(without_value)}")
    if resource.resource_type == ResourceType.BROKER:
        _check_broker(broker, request, resource)
    elif resource.resource_type != ResourceType.TOPIC:
        raise _invalid(f"Unknown resource type {resource.resource_type}")


def _is_delete(config: Any) -> bool:
    return getattr(config, "config_operation", Operation.SET) == Operation.DELETE


def _check_broker(broker: Broker, request: Request, resource: Any) -> None:
    name, node_id = resource.resource_name, broker.identity.node_id
    if name:
        requested_id = parse_node_id(name)
        if requested_id is None:
            raise _invalid(f"Node id must be an integer, but it is: {name}")
        if requested_id != node_id:
            raise _invalid(f"Unexpected broker id, expected {node_id}, but received {name}")
    if request.api_key == _INCREMENTAL:
        values = _altered_properties(broker, resource)
    else:
        values = {config.name: config.value for config in resource.configs}
    try:
        validate_dynamic({name: value for name, value in values.items() if value is not None})
    except InvalidConfigError as error:
        raise _invalid(str(error)) from error


def _altered_properties(broker: Broker, resource: Any) -> dict[str, str | None]:
    """Return the dynamic properties of a broker resource after the change; null for a deleted property.

    Raises `ControllerError`.
    """
    for config in resource.configs:
        if config.config_operation not in set(Operation):
            raise _invalid(f"Unknown operations type {config.config_operation}")
        operation = Operation(config.config_operation)
        key = BROKER_CONFIG_KEYS.get(config.name)
        if operation in {Operation.APPEND, Operation.SUBTRACT} and (key is None or key.type is not ConfigType.LIST):
            message = f"Config value {operation.name.lower()} is not allowed for config key: {config.name}"
            raise ControllerError(ErrorCode.invalid_config, message)
    own = Resource(ResourceType.BROKER, resource.resource_name)
    present = broker.image.overrides(own.type, own.name)
    changes = [Change(config.name, Operation(config.config_operation), config.value) for config in resource.configs]
    return {**present, **apply_changes(own, changes, present)}


def _invalid(message: str) -> ControllerError:
    return ControllerError(ErrorCode.invalid_request, message)
