"""Conversion of saved trials of version 1, in which trials of requirements had their own form and names.

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
    "Consumer": "Tail",
    "Produce": "ProduceBatch",
    "Reassign": "MoveReplicas",
    "RemoveBroker": "StopBroker",
    "Restart": "Heal",
    "Resume": "Heal",
    "TopicSettings": "Topic",
    "Unregister": "UnregisterNewcomer",
    "Wait": "Idle",
}
_ROLES: Final = {
    "CLIENT": "CLIENTS",
    "FOLLOWER": "SECOND_REPLICA",
    "LAST_FOLLOWER": "THIRD_REPLICA",
    "LEADER": "FIRST_REPLICA",
}
_NODES: Final = frozenset({"source", "destination", "node", "to", "other_than", "replicas"})
"""Fields whose values are roles of nodes."""


def upgraded(trial: Json) -> Json:
    """Return the trial in a document of version 1, in the form of the current version."""
    if (
        not isinstance(trial, dict)
        or trial.get(TYPE) != "RequirementTrial"
        or not isinstance(trial.get("script"), dict)
    ):
        return trial
    script = _upgraded(trial["script"])
    topic = script.get("topic")
    return {
        TYPE: "Trial",
        "requirement": trial.get("requirement"),
        "cluster": {TYPE: "ClusterSettings", "nodes": trial.get("nodes")},
        "topics": [{"replication_factor": 1, **topic} if isinstance(topic, dict) else topic],
        "clients": script.get("clients"),
        "moves": script.get("nemesis", []),
    }


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
