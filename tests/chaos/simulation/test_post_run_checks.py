"""Post-run checks: a correct cluster passes all of them, and each defect makes one of them fail."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from chaos.simulation import post_run_checks
from chaos.simulation import run as run_module
from chaos.simulation.post_run_checks import CHECKS_PER_RUN, POST_RUN_CHECKS, checks_of_seed
from chaos.simulation.post_run_checks.post_run_check import PostRunCheck, Receiver, always
from chaos.simulation.run import run
from conformance.trial.trial import ClusterSettings, Timed, Topic, Trial
from fixtures.clients.core.response_pairs import InvalidResponseError
from fixtures.faults import Pause, Role
from reference_broker.core import broker_lifecycle_manager, dispatch, forwarding, group_coordinator
from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.controller import (
    configs,
    controller,
    error_responses,
    isr,
    placement,
    reassignments,
    registrations,
    topics,
)
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.handlers import (
    allocate_producer_ids,
    assign_replicas_to_dirs,
    broker_heartbeat,
)
from reference_broker.core.handlers import (
    delete_records,
    describe_controllers,
    fetch,
    list_offsets,
    metadata,
    produce,
)
from reference_broker.core.handlers.describe_cluster import EndpointType
from reference_broker.core.producer_id_manager import ProducerIdManager
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.replication.replica_manager import ReplicaManager
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.record_batch import HEADER_SIZE_BYTES, BatchHeader, Codec
from reference_broker.simulation.trace import Trace


def nothing(*_args, **_named):
    return None


def everything(*_args, **_named):
    return True


def no_error(*_args, **_named):
    return ErrorCode.none


def only_for_one_broker(configuration, own, _cluster_wide, original=BrokerConfiguration.set_dynamic):
    original(configuration, own, {})


def is_any_transactional(request):
    """Raise an exception if a partition has null records."""
    batches = [data.records for topic in request.body.topic_data for data in topic.partition_data]
    return any(BatchHeader.parse(batch).is_transactional for batch in batches if len(batch) >= HEADER_SIZE_BYTES)


def is_zstd(_request, records):
    """Raise an exception for null records."""
    return len(records) >= HEADER_SIZE_BYTES and BatchHeader.parse(records).codec == Codec.ZSTD


def with_name(request, view, name, original=metadata._topic_by_name):
    """Raise an exception for a topic without a name."""
    return original(request, view, name.strip())


def lowest_ids(racks, count):
    """Return the brokers with the lowest ids, whatever their racks are."""
    brokers = sorted(broker for broker_list in racks._broker_lists() for broker in broker_list.brokers)
    return tuple(brokers[:count])


def one_replica_too_many(racks, count, original=placement._RackList.place):
    """Return an additional replica if there are enough racks."""
    return original(racks, min(count + 1, len(racks._racks)))


def as_if_all_were_here(image):
    return [replace(broker, fenced=False) for broker in placement.usable_brokers(image)]


def create_whatever_is_declined(broker, _request, names, now):
    broker.topic_creation.create([name for name in names if name not in broker.image.topics], now)


def delete_the_first_directories(replicas, _now):
    replicas._is_deleting = replicas._logs.delete_directories(32)


def count_partitions_of_groups(coordinator, _group):
    return len(coordinator._image().topics["__consumer_offsets"].partitions) - 1


def keep_what_cannot_be_loaded(coordinator, offsets, now, original=group_coordinator.GroupCoordinator._load):
    index = offsets.partition.index
    is_led = coordinator.led.get(index) is offsets
    original(coordinator, offsets, now)
    if is_led:
        coordinator._led[index] = offsets


def forget_the_replaced_reassignment(partition, target, original=reassignments._change_partition_reassignment):
    change = original(partition, target)
    return replace(change, removing=change.removing or ())


def count_replicas_that_are_removed(partition, target):
    if target != len(partition.replicas):
        raise ControllerError(ErrorCode.invalid_replication_factor)


def reject_every_cancellation(*_args, **_named):
    raise ControllerError(ErrorCode.invalid_replica_assignment)


def record_a_diverging_fetch(partition, requested, reader, now, original=fetch._check_partition):
    status = original(partition, requested, reader, now)
    if status.diverging is not None:
        reader.update_follower_fetch_state(partition, requested, now)
    return status


_DELETE_TOPICS = 20

DEFECTS = (
    (
        "metadata after a long idle time",
        broker_lifecycle_manager.BrokerLifecycleManager,
        "_cancel_registration_timeout",
        nothing,
    ),
    ("a forwarded request without a controller", forwarding, "_RETRY_BACKOFF_MS", 100_000),
    ("topics that Metadata creates", metadata, "_create_missing", nothing),
    ("a topic with too many partitions", controller, "check_record_count", nothing),
    ("more producers than a block of ids", ProducerIdManager, "_request_next_block", nothing),
    ("large requests", dispatch, "REQUEST_MAX_BYTES", dispatch.REQUEST_MAX_BYTES - 1),
    ("large requests", dispatch, "_PRODUCE", -1),
    ("a deletion of records with a timeout of 0 ms", delete_records._DelayedDeleteRecords, "is_settled", everything),
    ("unusual requests of clients", metadata, "_topic_by_name", with_name),
    ("unusual requests of clients", produce, "_is_unsupported", is_zstd),
    ("a topic with many partitions", ReplicaManager, "_delete_directories", delete_the_first_directories),
    ("topics that Metadata creates, at a leader", metadata, "_create_missing", create_whatever_is_declined),
    ("a property set and deleted, of one broker and of all", BrokerConfiguration, "set_dynamic", only_for_one_broker),
    ("a property set and deleted, of one broker and of all", ReplicaManager, "_reconfigure", nothing),
    ("unusual requests of clients", list_offsets, "Counter", lambda _: dict.fromkeys((("a", 0),), 1)),
    ("unusual requests of clients", produce, "_has_transactional_records", is_any_transactional),
    ("fetches of replicas", fetch, "_check_partition", record_a_diverging_fetch),
    ("votes", KafkaRaftClient, "_is_valid_voter_key", everything),
    ("begin and end of quorum epochs", KafkaRaftClient, "_validate_voter_only_request", no_error),
    ("fetches of the metadata log", KafkaRaftClient, "_validate_leader_only_request", no_error),
    ("a vote for a short log", QuorumLog, "is_behind_or_equal", everything),
    ("brokers that are not registered", allocate_producer_ids, "check_broker_epoch", nothing),
    ("brokers that are not registered", broker_heartbeat, "check_broker_epoch", nothing),
    ("registrations", registrations, "_check_level", nothing),
    ("invalid in-sync replicas", isr, "_check_eligible", nothing),
    ("placement of new replicas", placement._RackList, "place", lowest_ids),
    ("placement of new replicas", placement._RackList, "place", one_replica_too_many),
    ("placement of new replicas", topics, "usable_brokers", as_if_all_were_here),
    ("placement of new replicas", reassignments, "_change_partition_reassignment", forget_the_replaced_reassignment),
    ("placement of new replicas", reassignments, "_cancel_partition_reassignment", reject_every_cancellation),
    ("placement of new replicas", reassignments, "_check_replication_factor", count_replicas_that_are_removed),
    ("placement of new replicas", reassignments, "_check_replication_factor", nothing),
    ("offsets without a coordinator", group_coordinator.GroupCoordinator, "partition_of", count_partitions_of_groups),
    ("coordinators of groups", group_coordinator, "java_hash", len),
    ("coordinators of groups", group_coordinator.GroupCoordinator, "_load", keep_what_cannot_be_loaded),
    ("directories of replicas", assign_replicas_to_dirs, "partition_change", nothing),
    ("directories of replicas", assign_replicas_to_dirs, "_assign", lambda *_: (ErrorCode.none, None)),
    (
        "requests that a standby rejects",
        error_responses,
        "_ERROR_RESPONSES",
        {key: make for key, make in error_responses._ERROR_RESPONSES.items() if key != _DELETE_TOPICS},
    ),
    ("configurations, sent to a controller", configs, "_check_existence", nothing),
    (
        "descriptions of cluster and quorum",
        describe_controllers,
        "EndpointType",
        type("Both", (), {"CONTROLLER": EndpointType.BROKER}),
    ),
)
"""For each defect: the post-run check that fails, the owner and name of the attribute, and its replacement."""
VIOLATIONS = {
    "wrong-response",
    "controller-response",
    "metadata-response",
    "quorum-response",
    "not-converged",
    "quorum-votes",
    "configs-applied",
    "delete-response",
    "exception",
    "follower-progress",
    "group-offsets-loaded",
}


def check(*checks, cluster):
    """Return the violation of a run with these checks and no faults."""
    with patch.object(run_module, "checks_of_seed", lambda _: checks):
        return run(Trial(cluster=cluster, topics=(Topic("a", 2, min(cluster.nodes, 3)),))).violation


@pytest.mark.parametrize("nodes", [1, 3, 4])
def test_a_correct_cluster_passes(nodes):
    assert (
        check(*sorted(POST_RUN_CHECKS, key=lambda each: each.disturbs_cluster), cluster=ClusterSettings(nodes)) is None
    )


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect[0]}-{defect[2].strip('_')}")
def test_a_defect_fails_its_check(defect):
    name, owner, attribute, replacement = defect
    post_run_check = next(each for each in POST_RUN_CHECKS if each.name == name)
    with patch.object(owner, attribute, replacement):
        violation = check(post_run_check, cluster=ClusterSettings(3))
    assert violation is not None
    assert violation.name in VIOLATIONS


@pytest.mark.parametrize("epochs", [[1, 1], [1, 2, 2, 2]], ids=["at once", "in the second attempt"])
def test_a_wrong_response_between_equal_states_is_a_violation(epochs, monkeypatch):
    with pytest.raises(InvalidResponseError, match="'ANYTHING'"):
        perform_in_epochs(epochs, monkeypatch)


def test_responses_are_not_judged_if_the_controller_changes_in_each_attempt(monkeypatch):
    perform_in_epochs(range(99), monkeypatch)


def test_a_standby_that_has_not_fetched_yet_may_grant_pre_votes():
    """When the resumed standby receives the votes, it knows the leader, but has no response to a fetch yet."""
    trial = Trial(
        seed=1010958876,
        cluster=ClusterSettings(properties=(("replica.fetch.wait.max.ms", "50"),)),
        schedule=(Timed(0, Pause(Role.LAST_FOLLOWER), 2000),),
    )
    assert run(trial).violation is None


def perform_in_epochs(epochs, monkeypatch):
    """Perform a check with a wrong response; `epochs` are those of the controller before and after each attempt."""
    states = (SimpleNamespace(node=lambda _: 1, roles=epoch) for epoch in epochs)
    monkeypatch.setattr(post_run_checks, "_returned_errors", lambda *_: generator_returning(["ANYTHING"]))
    post_run_check = PostRunCheck("votes", Receiver.CONTROLLER, make=nothing, errors=always("NONE"))
    assert list(post_run_checks.perform(post_run_check, lambda: next(states))) == []


def generator_returning(value):
    return value
    yield


@pytest.mark.parametrize(
    ("found", "is_permitted"),
    [
        (["NONE", "NONE"], True),
        (["RETRY", "NONE"], True),
        (["NONE", "RETRY"], True),
        (["RETRY", "RETRY"], False),
        (["NONE", "OTHER"], False),
        (["RETRY"], False),
    ],
)
def test_one_response_may_have_the_retriable_error(found, is_permitted):
    check = PostRunCheck("producers", Receiver.BROKER, lambda _: [], always("NONE"), retriable_error="RETRY")
    assert check.permits(found, ["NONE", "NONE"]) is is_permitted
    assert not PostRunCheck("producers", Receiver.BROKER, lambda _: [], always("NONE")).permits(["RETRY"], ["NONE"])


def test_consecutive_seeds_cover_all_checks():
    seeds = range(-(-len(POST_RUN_CHECKS) // CHECKS_PER_RUN))
    assert {each.name for seed in seeds for each in checks_of_seed(seed)} == {each.name for each in POST_RUN_CHECKS}


def test_creation_by_metadata_is_tried_with_and_without_automatic_creation():
    tried = set()
    for seed in range(-(-len(POST_RUN_CHECKS) // CHECKS_PER_RUN)):
        if any(each.name.startswith("topics that Metadata creates") for each in checks_of_seed(seed)):
            live = run_module._Run(Trial(seed=seed), Trace())
            tried |= {
                node.runtime.configuration.value("auto.create.topics.enable") for node in live.cluster.nodes.values()
            }
    assert tried == {True, False}
