"""Layout of the cluster in a node's properties: roles, listeners, and voters of the quorum.

Follows: kafka.server.KafkaConfig (KIP-500, KIP-595).

| property                     | example                                         |
|------------------------------|-------------------------------------------------|
| `process.roles`              | `broker,controller`                             |
| `listeners`                  | `CLIENT://127.0.0.1:9092,CONTROLLER://…`        |
| `advertised.listeners`       | `CLIENT://b1.kafka.test:9092,…`                 |
| `inter.broker.listener.name` | `REPLICATION`                                   |
| `controller.listener.names`  | `CONTROLLER`                                    |
| `controller.quorum.voters`   | `1@b1.kafka.test:9093,2@b2.kafka.test:9093`     |

The default of `advertised.listeners` is `listeners`. The voters are static, as in a quorum of kraft.version 0: their
directory ids are unknown (KIP-853).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.connection import CONTROLLER_LISTENER, DEFAULT_LISTENER
from reference_broker.core.identity import Endpoint
from reference_broker.core.quorum.voters import ReplicaKey, Voter, VoterSet


@dataclass(frozen=True, slots=True)
class Layout:
    """Roles, listeners and voters of a node.

    :param listeners: the endpoints that the node binds.
    :param advertised: the endpoints in metadata responses, without the controller listener; empty if the node is not a
        broker.
    """

    is_broker: bool
    is_controller: bool
    listeners: tuple[Endpoint, ...]
    advertised: tuple[Endpoint, ...]
    inter_broker_listener: str
    controller_listener: str
    voters: VoterSet

    @classmethod
    def of(cls, properties: Mapping[str, str], node_id: int) -> "Layout":
        """Return the layout that a node's properties describe. Raises `InvalidConfigError`."""
        roles = _names(properties.get("process.roles", "broker,controller"))
        if not roles or not set(roles) <= {"broker", "controller"}:
            raise InvalidConfigError(f"process.roles: {','.join(roles)!r} is not broker, controller or both")
        controller_listener = controller_listener_in(properties)
        listeners = endpoints_in(properties, "listeners")
        advertised = tuple(
            endpoint
            for endpoint in endpoints_in(properties, "advertised.listeners") or listeners
            if endpoint.listener != controller_listener
        )
        layout = cls(
            is_broker="broker" in roles,
            is_controller="controller" in roles,
            listeners=listeners,
            advertised=advertised if "broker" in roles else (),
            inter_broker_listener=properties.get("inter.broker.listener.name", DEFAULT_LISTENER),
            controller_listener=controller_listener,
            voters=VoterSet(
                _voter(text, controller_listener) for text in _names(properties.get("controller.quorum.voters", ""))
            ),
        )
        layout._check(node_id)
        return layout

    def _check(self, node_id: int) -> None:
        names = {endpoint.listener for endpoint in self.listeners}
        if self.is_controller and self.controller_listener not in names:
            raise InvalidConfigError(f"listeners: the controller listener {self.controller_listener} is missing")
        if self.is_broker and self.inter_broker_listener not in names:
            raise InvalidConfigError(f"listeners: the inter-broker listener {self.inter_broker_listener} is missing")
        if not self.voters.ids:
            raise InvalidConfigError("controller.quorum.voters: there is no voter")
        if (node_id in self.voters.ids) != self.is_controller:
            wrong = "is a controller but not a voter" if self.is_controller else "is a voter but not a controller"
            raise InvalidConfigError(f"controller.quorum.voters: node {node_id} {wrong}")


def _names(text: str) -> list[str]:
    return [part for part in map(str.strip, text.split(",")) if part]


def controller_listener_in(properties: Mapping[str, str]) -> str:
    """Return the name of the controller listener: the first in the property, as in Kafka's brokers."""
    return properties.get("controller.listener.names", CONTROLLER_LISTENER).partition(",")[0].strip()


def endpoints_in(properties: Mapping[str, str], name: str) -> tuple[Endpoint, ...]:
    """Return the endpoints in a property; none if it is not set. Raises `InvalidConfigError`."""
    return tuple(_endpoint(name, text) for text in _names(properties.get(name, "")))


def _endpoint(name: str, text: str) -> Endpoint:
    listener, separator, address = text.partition("://")
    host, _, port = address.rpartition(":")
    if not (listener and separator and host and port.isdecimal() and int(port) < 2**16):
        raise InvalidConfigError(f"{name}: {text!r} is not NAME://HOST:PORT")
    return Endpoint(listener, host.strip("[]"), int(port))


def _voter(text: str, listener: str) -> Voter:
    node_id, at, address = text.partition("@")
    host, colon, port = address.rpartition(":")
    if not (node_id.isdecimal() and at and host and colon and port.isdecimal() and int(port) < 2**16):
        raise InvalidConfigError(f"controller.quorum.voters: {text!r} is not ID@HOST:PORT")
    return Voter(ReplicaKey(int(node_id)), host.strip("[]"), int(port), listener)
