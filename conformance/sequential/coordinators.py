"""Coordinators of groups, as FindCoordinator returns them, and whether they serve their groups.

Since version 4 a request has several groups (KIP-699). In older versions, one request is sent for each group.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from conformance.sequential.layout import build
from conformance.sequential.response import Response, Symbols, error_of
from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import RawClient

_KEY_TYPE_OF_GROUPS: Final = 0
_SEVERAL_SINCE: Final = 4


def find_coordinators(client: RawClient, keys: Sequence[str], key_type: int = _KEY_TYPE_OF_GROUPS) -> tuple[Any, ...]:
    """Return what the response has for each key. The keys are the real names of groups or transactional ids."""
    schema = client.schema_for(ApiKey.FIND_COORDINATOR)
    if client.version_for(ApiKey.FIND_COORDINATOR) >= _SEVERAL_SINCE:
        return tuple(client.request(_request(schema, keys, key_type)).coordinators)
    return tuple(client.request(_request(schema, (key,), key_type)) for key in keys)


def _request(schema: ModuleType, keys: Sequence[str], key_type: int) -> Any:
    values = {"key": keys[0], "key_type": key_type, "coordinator_keys": tuple(keys)}
    return build(schema.FindCoordinatorRequest, values)


def coordinators_of_groups(
    found: Sequence[Any], groups: Sequence[str], symbols: Symbols, error_at: Callable[[int, str], object]
) -> Response:
    """Return the errors of the response, and each coordinator that does not serve its group at its address.

    A coordinator may change after the response, so a script repeats the step (`Eventually`).

    :param found: what the response has for each group.
    :param groups: the script's names of the requested groups.
    :param error_at: returns the error with which a broker responds to a request for a group.
    """
    keys = [getattr(each, "key", symbols.real(group)) for each, group in zip(found, groups, strict=False)]
    if len(found) != len(groups) or {*keys} != {*map(symbols.real, groups)}:
        return {
            "malformed": f"the response has {len(found)} coordinators, and not one for each of {len(groups)} groups"
        }
    by_group = {str(symbols.script_name(key)): each for key, each in zip(keys, found, strict=True)}
    errors = {error_of(each.error_code) for each in found} - {"NONE"}
    differences = []
    for group, each in by_group.items():
        if error_of(each.error_code) != "NONE":
            continue
        if not symbols.is_address(each.node_id, each.host, each.port):
            differences.append(f"{each.host}:{each.port} is not the address of broker {symbols.place(each.node_id)}")
        elif error_at(each.node_id, group) == "NOT_COORDINATOR":
            differences.append(f"broker {symbols.place(each.node_id)} is not the coordinator of {group}")
    return {"errors": tuple(sorted(errors)), "differences": tuple(differences)}
