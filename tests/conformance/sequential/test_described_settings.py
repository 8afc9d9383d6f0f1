"""Comparison of described settings with the broker: address, log directories, id, creation and deletion of topics.

The same address, directory or id may be written in several ways.
"""

import pytest

from conformance.sequential.described_settings import not_applied, other_addresses, other_directories, other_ids
from conformance.sequential.steps import CreateTopic, DeleteTopic
from fixtures.targets.target import Node

NODE = Node(3, "kafka.test", 9092)


@pytest.mark.parametrize(
    ("listeners", "same"),
    [
        (None, True),
        ("", True),
        ("INTERNAL://b3:9094,CLIENT://kafka.test:9092", True),
        ("CLIENT://kafka.test:0", True),
        ("CLIENT://:9092", True),
        ("CLIENT://kafka.test:9093", False),
        ("CLIENT://other.test:9092,INTERNAL://kafka.test:9094", False),
    ],
)
def test_one_advertised_listener_has_the_address(listeners, same):
    assert same == (not [*other_addresses({"advertised.listeners": listeners}, NODE)])


def test_the_address_may_be_one_of_ipv6():
    assert not [*other_addresses({"advertised.listeners": "CLIENT://[::1]:9092"}, Node(3, "::1", 9092))]


@pytest.mark.parametrize(
    ("described", "found", "same"),
    [
        ({}, "/data", True),
        ({"log.dirs": None, "log.dir": "/data"}, "/data", True),
        ({"log.dirs": "/a, /data/", "log.dir": "/tmp"}, "/data", True),
        ({"log.dirs": "data"}, "/home/kafka/data", True),
        ({"log.dirs": "/a,/b", "log.dir": "/data"}, "/data", False),
        ({"log.dirs": "/data"}, "", False),
    ],
)
def test_log_directories_are_described(described, found, same):
    assert same == (not [*other_directories(described, NODE, [found])])


@pytest.mark.parametrize(("value", "same"), [("3", True), ("-1", True), (None, True), ("4", False)])
def test_ids_are_those_of_the_broker(value, same):
    assert same == (not [*other_ids({"node.id": value}, NODE)])


def respond(creation="NONE", deletion="NONE"):
    return lambda step: {"error": {CreateTopic: creation, DeleteTopic: deletion}[type(step)]}


@pytest.mark.parametrize(
    ("described", "creation", "created", "deletion", "found"),
    [
        ([{}], "NONE", True, "TOPIC_DELETION_DISABLED", 0),
        ([{"auto.create.topics.enable": "true"}], "NONE", True, "NONE", 0),
        ([{"auto.create.topics.enable": "true"}], "NONE", False, "NONE", 1),
        ([{"auto.create.topics.enable": "true"}], "INVALID_REPLICATION_FACTOR", False, "NONE", 0),
        ([{"auto.create.topics.enable": "false"}], "NONE", True, "NONE", 1),
        ([{"auto.create.topics.enable": "false"}, {"auto.create.topics.enable": "true"}], "NONE", False, "NONE", 0),
        ([{"delete.topic.enable": "true"}], "NONE", False, "TOPIC_DELETION_DISABLED", 1),
        ([{"delete.topic.enable": "true"}], "NONE", False, "TOPIC_AUTHORIZATION_FAILED", 0),
        ([{"delete.topic.enable": "false"}], "NONE", False, "NONE", 1),
        ([{"delete.topic.enable": "false", "process.roles": "broker"}], "NONE", False, "NONE", 0),
        ([{"delete.topic.enable": "false"}, {"delete.topic.enable": "true"}], "NONE", False, "NONE", 0),
    ],
)
def test_switches_are_applied(described, creation, created, deletion, found):
    """The responses to CreateTopics and DeleteTopics have the errors `creation` and `deletion`.

    `created` is whether Metadata creates a topic, and `found` the number of switches that are not applied.
    """
    texts = [*not_applied(described, "trial", respond(creation, deletion), lambda *_: created, 1.0)]
    assert len(texts) == found, texts
