"""A cluster that is right passes every exam, and a broker that is not right fails one."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from chaos.simulation import run as run_module
from chaos.simulation.examination import AT_ONCE, EXAMS, exams_of
from chaos.simulation.run import run
from chaos.trial import ClusterSettings, Topic, Trial
from reference_broker.core import group_coordinator, lifecycle
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.controller import configs, isr, placement, registrations, topics
from reference_broker.core.controller.handlers import (
    allocate_producer_ids,
    assign_replicas_to_dirs,
    broker_heartbeat,
)
from reference_broker.core.handlers import (
    describe_controllers,
    list_offsets,
    metadata,
)
from reference_broker.core.handlers.describe_cluster import EndpointType
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.protocol.errors import ErrorCode
from reference_broker.simulation.trace import Trace


def nothing(*_args, **_named):
    return None


def everything(*_args, **_named):
    return True


def no_error(*_args, **_named):
    return ErrorCode.none


def only_for_one_broker(configuration, own, _cluster_wide, original=BrokerConfiguration.set_dynamic):
    original(configuration, own, {})


def first_of_the_ring(racks, count):
    """As many brokers as are wanted, of whatever rack."""
    brokers = sorted(broker for ring in racks._rings() for broker in ring.brokers)
    return tuple(brokers[:count])


def as_if_all_were_here(image):
    return [replace(broker, fenced=False) for broker in placement.usable_brokers(image)]


def create_whatever_is_declined(broker, _request, names, now):
    broker.topic_creation.create([name for name in names if name not in broker.image.topics], now)


def count_partitions_of_groups(coordinator, _group):
    return len(coordinator._image().topics["__consumer_offsets"].partitions) - 1


MISTAKES = (
    ("metadata after a long while", lifecycle.Lifecycle, "_lift_registration_limit", nothing),
    ("topics that Metadata creates", metadata, "_create_missing", nothing),
    ("topics that Metadata creates, at a leader", metadata, "_create_missing", create_whatever_is_declined),
    ("a setting of a broker, of all, and back", BrokerConfiguration, "set_dynamic", only_for_one_broker),
    ("ends of one partition, twice", list_offsets, "Counter", lambda _: dict.fromkeys((("a", 0),), 1)),
    ("votes", KafkaRaftClient, "_is_valid_voter_key", everything),
    ("epochs that begin and end", KafkaRaftClient, "_validate_voter_only_request", no_error),
    ("fetches of the metadata log", KafkaRaftClient, "_validate_leader_only_request", no_error),
    ("a vote for a short log", QuorumLog, "is_behind_or_equal", everything),
    ("brokers that are not registered", allocate_producer_ids, "check_broker_epoch", nothing),
    ("brokers that are not registered", broker_heartbeat, "check_broker_epoch", nothing),
    ("registrations", registrations, "_check_level", nothing),
    ("in-sync replicas that cannot be", isr, "_check_eligible", nothing),
    ("places of new replicas", placement._RackList, "place", first_of_the_ring),
    ("places of new replicas", topics, "usable_brokers", as_if_all_were_here),
    ("offsets without a coordinator", group_coordinator.GroupCoordinator, "partition_of", count_partitions_of_groups),
    ("coordinators of groups", group_coordinator, "java_hash", len),
    ("places of replicas", assign_replicas_to_dirs, "partition_change", nothing),
    ("places of replicas", assign_replicas_to_dirs, "_assign", lambda *_: (ErrorCode.none, None)),
    ("settings, of a controller itself", configs, "_check_existence", nothing),
    ("controllers", describe_controllers, "EndpointType", type("Both", (), {"CONTROLLER": EndpointType.BROKER})),
)
"""An exam, and in place of which function which other one fails it."""
SEEN_BY = {
    "wrong-response",
    "controller-response",
    "metadata-response",
    "quorum-response",
    "not-converged",
    "quorum-votes",
    "configs-applied",
    "exception",
}


def sit(*exams, cluster):
    """A run of these exams, with no faults before."""
    with patch.object(run_module, "exams_of", lambda _: exams):
        return run(Trial(cluster=cluster, topics=(Topic("a", 2, min(cluster.nodes, 3)),))).violation


@pytest.mark.parametrize("nodes", [1, 3, 4])
def test_a_cluster_that_is_right_passes(nodes):
    assert sit(*sorted(EXAMS, key=lambda exam: exam.unsettles), cluster=ClusterSettings(nodes)) is None


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake[0]}-{mistake[2].strip('_')}")
def test_a_broker_that_is_not_right_fails(mistake):
    name, owner, attribute, replacement = mistake
    exam = next(exam for exam in EXAMS if exam.name == name)
    with patch.object(owner, attribute, replacement):
        violation = sit(exam, cluster=ClusterSettings(3))
    assert violation is not None
    assert violation.name in SEEN_BY


def test_consecutive_seeds_have_all_exams_in_turn():
    seeds = range(-(-len(EXAMS) // AT_ONCE))
    assert {exam.name for seed in seeds for exam in exams_of(seed)} == {exam.name for exam in EXAMS}


def test_creation_by_metadata_is_tried_with_and_without_automatic_creation():
    tried = set()
    for seed in range(-(-len(EXAMS) // AT_ONCE)):
        if any(exam.name.startswith("topics that Metadata creates") for exam in exams_of(seed)):
            live = run_module._Run(Trial(seed=seed), Trace())
            tried |= {
                node.runtime.configuration.value("auto.create.topics.enable") for node in live.cluster.nodes.values()
            }
    assert tried == {True, False}
