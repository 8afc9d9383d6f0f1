"""Roles, listeners and voters of a node, read from Kafka's properties."""

import pytest

from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.identity import Endpoint
from reference_broker.core.layout import Layout, controller_listener_in
from reference_broker.core.quorum.voters import ReplicaKey, Voter

PROPERTIES = {
    "process.roles": "broker,controller",
    "listeners": "CLIENT://127.0.0.1:9092,REPLICATION://127.0.0.1:9094,CONTROLLER://[::1]:9093",
    "advertised.listeners": "CLIENT://b1.test:1,REPLICATION://b1.test:2,CONTROLLER://b1.test:3",
    "inter.broker.listener.name": "REPLICATION",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "2@b2.test:9093, 1@b1.test:9093",
}


def test_node_with_both_roles():
    layout = Layout.of(PROPERTIES, 1)
    assert (layout.is_broker, layout.is_controller) == (True, True)
    assert layout.listeners[2] == Endpoint("CONTROLLER", "::1", 9093)
    assert layout.advertised == (Endpoint("CLIENT", "b1.test", 1), Endpoint("REPLICATION", "b1.test", 2))
    assert layout.voters.ids == (1, 2)
    second = layout.voters.get(2)
    assert second == Voter(ReplicaKey(2), "b2.test", 9093, "CONTROLLER")


def test_first_of_several_controller_listeners_is_used():
    layout = Layout.of({**PROPERTIES, "controller.listener.names": "CONTROLLER,OTHER"}, 1)
    assert layout.controller_listener == controller_listener_in({"controller.listener.names": " CONTROLLER , OTHER"})
    assert layout.controller_listener == "CONTROLLER"


def test_voters_have_the_configured_controller_listener():
    listeners = "CLIENT://h:1,REPLICATION://h:2,QUORUM://h:3"
    layout = Layout.of({**PROPERTIES, "listeners": listeners, "controller.listener.names": "QUORUM"}, 1)
    assert [layout.voters.get(voter).listener for voter in layout.voters.ids] == ["QUORUM", "QUORUM"]


def test_broker_that_is_not_a_voter():
    layout = Layout.of({**PROPERTIES, "process.roles": "broker", "listeners": "REPLICATION://h:1"}, 7)
    assert (layout.is_broker, layout.is_controller) == (True, False)


def test_controller_without_broker_role_advertises_no_listener():
    layout = Layout.of({**PROPERTIES, "process.roles": "controller", "listeners": "CONTROLLER://h:1"}, 1)
    assert (layout.is_broker, layout.advertised) == (False, ())


def test_listeners_are_advertised_by_default():
    properties = {name: value for name, value in PROPERTIES.items() if name != "advertised.listeners"}
    assert Layout.of(properties, 1).advertised[0] == Endpoint("CLIENT", "127.0.0.1", 9092)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("process.roles", "zookeeper", "process.roles: 'zookeeper' is not broker, controller or both"),
        ("process.roles", "", "process.roles: '' is not broker, controller or both"),
        ("process.roles", "broker", "controller.quorum.voters: node 1 is a voter but not a controller"),
        ("listeners", "CLIENT:9092", "listeners: 'CLIENT:9092' is not NAME://HOST:PORT"),
        ("listeners", "CLIENT://h:99999", "listeners: 'CLIENT://h:99999' is not NAME://HOST:PORT"),
        ("listeners", "REPLICATION://h:1", "listeners: the controller listener CONTROLLER is missing"),
        ("listeners", "CONTROLLER://h:1", "listeners: the inter-broker listener REPLICATION is missing"),
        ("controller.quorum.voters", "", "controller.quorum.voters: there is no voter"),
        ("controller.quorum.voters", "1@h", "controller.quorum.voters: '1@h' is not ID@HOST:PORT"),
        ("controller.quorum.voters", "2@h:1", "controller.quorum.voters: node 1 is a controller but not a voter"),
    ],
)
def test_invalid_properties_are_rejected_with_a_message(name, value, message):
    with pytest.raises(InvalidConfigError, match=r".+") as raised:
        Layout.of({**PROPERTIES, name: value}, 1)
    assert str(raised.value) == message
