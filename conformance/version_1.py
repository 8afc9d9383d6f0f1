"""Conversion of saved trials of version 1, in which those of requirements had their own names of faults and roles.

Any JSON is converted to some JSON; what is not a trial is rejected when its values are read.
"""

from typing import Any, Final

from conformance.value_json import TYPE, Json

_FAULTS: Final = {
    "Cut": "CutConnections",
    "DamageDisk": "DamageDisk",
    "Kill": "Kill",
    "PauseNode": "Pause",
    "ShutDown": "ShutDown",
}
_TYPES: Final = {
    "AddBroker": "StartBroker",
    "RemoveBroker": "StopBroker",
    "Restart": "Heal",
    "Resume": "Heal",
    "Wait": "Idle",
}
_ROLES: Final = {
    "CLIENT": "CLIENTS",
    "FOLLOWER": "SECOND_REPLICA",
    "LAST_FOLLOWER": "THIRD_REPLICA",
    "LEADER": "FIRST_REPLICA",
}
_NODES: Final = frozenset({"source", "destination", "node", "to", "other_than", "replicas"})
"""Fields with roles."""


def upgraded(trial: Json) -> Json:
    """Return the trial of a document of version 1 as one of this version."""
    is_of_requirement = isinstance(trial, dict) and trial.get(TYPE) == "RequirementTrial"
    return _upgraded(trial) if is_of_requirement else trial


def _upgraded(value: Any, field: str = "") -> Any:
    if isinstance(value, list):
        return [_upgraded(part, field) for part in value]
    if isinstance(value, str):
        renamed = _ROLES if field in _NODES else _TYPES | _FAULTS if field == TYPE else {}
        return renamed.get(value, value)
    if not isinstance(value, dict):
        return value
    fields = {name: _upgraded(part, name) for name, part in value.items()}
    is_fault = isinstance(value.get(TYPE), str) and value[TYPE] in _FAULTS
    return {TYPE: "Begin", "fault": fields} if is_fault else fields
