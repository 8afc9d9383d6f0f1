"""Requirements on the target `simulation`: the requirement of each row of `DEFECTS` detects the defect of the row."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from chaos.simulation.target import Simulation
from conformance.engine import run_requirements
from conformance.events import RequirementJudged
from conformance.profiles import Profile
from conformance.registry import select
from conformance.requirements.requirement import Level
from linearizability.judgement import Verdict
from reference_broker.core.configuration.configuration import TopicConfiguration
from reference_broker.core.controller import configs, reassignments, topics
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.handlers import alter_configs, create_partitions, create_topics
from reference_broker.core.handlers import (
    delete_records,
    describe_cluster,
    describe_topic_partitions,
    forward_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from reference_broker.core.handlers.cluster_view import ClusterView
from reference_broker.core.handlers.current_leaders import CurrentLeaders
from reference_broker.core.log import append_validation
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.record_batch import RecordTotals

pytestmark = pytest.mark.sampled(2)

PROFILE = Profile("defects", scripts_max=1, shrink_seconds=0.0)


def nothing(*_args, **_named):
    return None


def producer_seven(request, _):
    return request.replies.InitProducerIdResponse(error_code=ErrorCode.none, producer_id=7, producer_epoch=0)


def append_to_an_empty_list(resource, change, now, original=configs._new_value):
    is_append = now == "" and change.operation is configs.Operation.APPEND
    return f",{change.value}" if is_append else original(resource, change, now)


def check_the_epoch_alone(partition, requested):
    if isinstance(partition, ErrorCode):
        return partition
    return partition.check_leader_epoch(requested.current_leader_epoch)


def invalid_endpoint(request, _):
    return request.replies.DescribeClusterResponse(
        error_code=ErrorCode.invalid_request, cluster_id="", controller_id=-1, brokers=()
    )


def with_one_more(*args, original=create_topics.create_topic):
    planned = original(*args)
    return replace(planned, num_partitions=planned.num_partitions + 1)


def no_leader(leaders, *_args):
    return leaders._request.replies.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)


def totals_of_the_header(header, _):
    """Return the totals of the batch header without a check of the records."""
    yield from ()
    return RecordTotals(header.records_count, header.base_timestamp_ms, header.max_timestamp_ms)


def topic_limit(config):
    return config.max_message_bytes


def not_available(*_args):
    raise ControllerError(ErrorCode.preferred_leader_not_available)


DEFECTS = (
    ("admin/bad-topic-is-not-created", topics, "illegal_topic_name", nothing),
    ("admin/bad-topic-is-not-created", topics, "check_assignment", nothing),
    ("admin/bad-topic-is-not-created", topics, "validate_topic_overrides", lambda *_: {}),
    ("admin/too-many-partitions-are-rejected", create_topics, "_count_partitions", lambda *_: 0),
    ("admin/too-many-partitions-are-rejected", create_partitions, "_count_new", lambda *_: 0),
    ("admin/added-partitions-use-the-assignment", create_partitions, "add_partitions", lambda *_: []),
    ("reassignment/replication-factor-change-can-be-disallowed", reassignments, "_check_replication_factor", nothing),
    ("leadership/only-the-leader-serves", offset_for_leader_epoch, "_check", check_the_epoch_alone),
    (
        "offsets/delete-records-stops-at-high-watermark",
        delete_records,
        "_validate",
        lambda *_: ErrorCode.policy_violation,
    ),
    ("offsets/unknown-timestamp-is-rejected", list_offsets, "_FIRST_VERSION", {}),
    ("produce/malformed-batch-is-rejected", append_validation, "_check_header", nothing),
    ("produce/malformed-batch-is-rejected", append_validation, "total_records", totals_of_the_header),
    ("fetch/max-timestamp-is-that-of-newest-record", append_validation, "total_records", totals_of_the_header),
    ("produce/malformed-batch-is-rejected", produce, "_has_transactional_records", lambda _: False),
    ("produce/oversize-batch-is-rejected", append_validation, "decompressed_max_bytes", topic_limit),
    ("produce/early-timestamp-is-rejected", append_validation, "_has_invalid_timestamp", lambda *_: False),
    ("idempotence/incomplete-producer-id-is-rejected", init_producer_id, "_error_response", producer_seven),
    ("configs/bad-broker-change-is-rejected", forward_alter_configs, "_check_broker", nothing),
    ("configs/bad-broker-change-is-rejected", forward_alter_configs, "validate_dynamic", nothing),
    ("configs/bad-change-changes-nothing", configs, "_check_resource", nothing),
    ("configs/lists-are-appended-to", configs, "_new_value", append_to_an_empty_list),
    ("metadata/cluster-is-described", describe_cluster, "wrong_endpoint", invalid_endpoint),
    ("metadata/cluster-is-described", ClusterView, "controller", lambda *_: -1),
    ("metadata/topics-are-described", metadata, "_OPERATIONS_NOT_REQUESTED", 0),
    ("metadata/null-lists-all-topics-and-empty-none", metadata, "INTERNAL_TOPICS", frozenset()),
    ("metadata/partitions-are-paged", describe_topic_partitions, "_PARTITIONS_MAX", 1),
    ("configs/description-includes-sources", TopicConfiguration, "synonyms", lambda *_: []),
    ("configs/changes-leave-the-rest", alter_configs, "config_records", lambda *_: []),
    ("admin/creation-is-described", create_topics, "create_topic", with_one_more),
    ("admin/partitions-are-added", create_partitions, "_plan", lambda *_: []),
    ("leadership/preferred-leader-is-elected", Elections, "elect_leader", not_available),
    ("leadership/current-leader-is-returned", CurrentLeaders, "current_leader", no_leader),
    ("leadership/current-leader-is-returned", produce, "_CURRENT_LEADER_MIN_VERSION", 11),
)
"""For each defect: the violated requirement, the owner and name of the attribute, and its replacement."""


@pytest.mark.parametrize(
    ("requirement", "owner", "attribute", "replacement"),
    DEFECTS,
    ids=[f"{requirement}-{attribute.strip('_')}" for requirement, _, attribute, _ in DEFECTS],
)
def test_a_defect_is_detected(tmp_path, requirement, owner, attribute, replacement):
    with patch.object(owner, attribute, replacement):
        events = run_requirements(
            [Simulation()], select([requirement], Level.MAY), seed=1, profile=PROFILE, run_dir=tmp_path
        )
        (judged,) = [event.finding for event in events if isinstance(event, RequirementJudged)]
    assert judged.verdict == Verdict.VIOLATION, judged.reason
