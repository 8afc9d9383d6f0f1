"""Comparison of the settings that brokers describe with their ids, addresses, log directories and responses.

A setting that a broker does not describe is not compared.
"""

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from conformance.sequential.response import Response
from conformance.sequential.steps import CreateTopic, DeleteTopic, Step
from fixtures.targets.target import Node

_CREATES: Final = "auto.create.topics.enable"
_DELETES: Final = "delete.topic.enable"
_ROLES: Final = "process.roles"
_IDS: Final = ("node.id", "broker.id")
_ADDRESSES: Final = "advertised.listeners"
_DIRECTORIES: Final = ("log.dirs", "log.dir")
"""The second one is used if the first one has no value."""
NAMES: Final = (_CREATES, _DELETES, _ROLES, *_IDS, _ADDRESSES, *_DIRECTORIES)
_ENABLED: Final = {"true": True, "false": False}
_DELETION_DISABLED: Final = "TOPIC_DELETION_DISABLED"
_CREATION_S: Final = 1.0
"""Time to wait for a topic that must not be created."""

Described = Mapping[str, str | None]


def not_applied(
    described: Sequence[Described],
    topic: str,
    send: Callable[[Step], Response],
    creates: Callable[[str, float], bool],
    timeout_s: float,
) -> Iterator[str]:
    """Yield the described switches that brokers do not apply: automatic creation, and deletion of topics.

    Automatic creation is not judged if the same topic could not be created by CreateTopics. Deletion is judged only if
    the described brokers are the controllers too, because controllers decide on it.

    :param described: the settings of each broker; the first one receives the requests of `creates`.
    :param topic: a topic that exists, and is deleted here. The name of the topic to create is derived from its name.
    :param creates: whether Metadata requests for a topic with this name create it before a timeout.
    """
    name = f"{topic}-unknown"
    enabled = _ENABLED.get(described[0].get(_CREATES) or "")
    creation = CreateTopic(name, partitions=-1, replication_factor=-1, configs=(), validate_only=True)
    if enabled is not None and send(creation).get("error") == "NONE":
        created = creates(name, timeout_s if enabled else _CREATION_S)
        if created is not enabled:
            effect = "created a topic" if created else "did not create a topic"
            yield f"{_CREATES} {described[0][_CREATES]}, but Metadata {effect}"
    deletes = {each.get(_DELETES) for each in described}
    if len(deletes) == 1 and all("controller" in (each.get(_ROLES) or "controller") for each in described):
        error = send(DeleteTopic(topic)).get("error")
        setting = str(deletes.pop())
        if error == {"true": _DELETION_DISABLED, "false": "NONE"}.get(setting):
            yield f"{_DELETES} {setting}, but DeleteTopics returned {error}"


def other_ids(described: Described, node: Node) -> Iterator[str]:
    """Yield the described ids that are not the id of the broker."""
    for name in _IDS:
        text = described.get(name) or ""
        if text.isdecimal() and int(text) != node.id:  # a negative number stands for an assigned id
            yield f"{name} {text} of broker {node.id}"


def other_addresses(described: Described, node: Node) -> Iterator[str]:
    """Yield the advertised listeners if none of them has the address that Metadata returns for the broker.

    A listener without a host or port has that of its network interface.
    """
    listed = [each.rpartition("://")[2].rpartition(":") for each in (described.get(_ADDRESSES) or "").split(",")]
    addresses = [(host.strip("[]"), port) for host, _, port in listed if port.isdecimal()]
    if addresses and not any(host in {"", node.host} and port in {"0", str(node.port)} for host, port in addresses):
        returned = f"Metadata returned {node.host}:{node.port} for broker {node.id}"
        yield f"{_ADDRESSES} {described[_ADDRESSES]}, but {returned}"


def other_directories(described: Described, node: Node, found: Sequence[str]) -> Iterator[str]:
    """Yield the log directories in a DescribeLogDirs response of the broker that are not among its described ones.

    Relative paths are not compared.
    """
    value = next((value for name in _DIRECTORIES if (value := described.get(name))), "")
    paths = {posixpath.normpath(path.strip()) for path in value.split(",")}
    if all(map(posixpath.isabs, paths)):
        for path in found:
            if posixpath.normpath(path) not in paths:
                yield f"log directory {path!r} of broker {node.id}, but its directories are {value}"
