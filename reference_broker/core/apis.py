"""API tables of the broker's and the controller's listeners: versions and handler of every API.

Follows: kafka.server.KafkaApis, kafka.server.ControllerApis (KIP-896).

The version ranges are those of Apache Kafka 4.3. As in Kafka, Produce is advertised from version 0, although 3 is the
lowest version served, because some clients look for version 0 in the list (KAFKA-18659: librdkafka). InitProducerId 6
is unstable in Kafka 4.3, so neither Kafka nor this broker offers it. Requests between quorum nodes are served in the
newest version only, because only reference brokers send them.
"""

from collections.abc import Iterable

from reference_broker.core import forwarding
from reference_broker.core.api import Api, Handler, Part
from reference_broker.core.controller.handlers import (
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
    unregister_broker,
)
from reference_broker.core.handlers import (
    api_versions,
    delete_records,
    describe_cluster,
    describe_configs,
    describe_controllers,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    envelope,
    fetch,
    find_coordinator,
    forward_alter_configs,
    init_producer_id,
    list_config_resources,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    quorum,
)
from reference_broker.core.handlers.api_versions import API_VERSIONS


def _forwarded(key: int, min_version: int, max_version: int) -> Api:
    """Return an API whose requests are forwarded to the active controller."""
    return Api(key, min_version, max_version, forwarding.handle)


def _node_api(key: int, min_version: int, max_version: int, handle: Handler) -> Api:
    return Api(key, min_version, max_version, handle, Part.NODE)


def _controller_api(key: int, min_version: int, max_version: int, handle: Handler) -> Api:
    return Api(key, min_version, max_version, handle, Part.CONTROLLER)


def _table(apis: Iterable[Api]) -> dict[int, Api]:
    """Return the entries by API key, including ApiVersions. Its response lists all entries in ascending order."""
    by_key = {api.key: api for api in apis}
    by_key[API_VERSIONS] = _node_api(API_VERSIONS, 0, 4, lambda *_: None)
    ranges = {key: api.advertised for key, api in sorted(by_key.items())}
    by_key[API_VERSIONS] = _node_api(API_VERSIONS, 0, 4, api_versions.handler(ranges))
    return by_key


BROKER_APIS = _table(
    (
        Api(0, 3, 13, produce.handle, advertised_min_version=0),
        Api(1, 4, 18, fetch.handle),
        Api(2, 1, 11, list_offsets.handle),
        Api(3, 0, 13, metadata.handle),
        Api(8, 2, 10, offset_commit.handle),
        Api(9, 1, 10, offset_fetch.handle),
        Api(10, 0, 6, find_coordinator.handle),
        _forwarded(19, 2, 7),
        _forwarded(20, 1, 6),
        Api(21, 0, 2, delete_records.handle),
        Api(22, 0, 5, init_producer_id.handle),
        Api(23, 2, 4, offset_for_leader_epoch.handle),
        Api(32, 1, 4, describe_configs.handle),
        Api(33, 0, 2, forward_alter_configs.handle),
        Api(35, 1, 5, describe_log_dirs.handle),
        _forwarded(37, 0, 3),
        _forwarded(43, 0, 2),
        Api(44, 0, 1, forward_alter_configs.handle),
        _forwarded(45, 0, 1),
        _forwarded(46, 0, 0),
        _forwarded(55, 0, 2),
        Api(60, 0, 2, describe_cluster.handle),
        _forwarded(64, 0, 0),
        Api(74, 0, 1, list_config_resources.handle),
        Api(75, 0, 0, describe_topic_partitions.handle),
    )
)
"""The APIs that a broker serves to clients and to other brokers."""

CONTROLLER_APIS = _table(
    (
        _node_api(1, 18, 18, quorum.fetch),
        _controller_api(19, 2, 7, create_topics.handle),
        _controller_api(20, 1, 6, delete_topics.handle),
        _controller_api(33, 0, 2, alter_configs.handle),
        _controller_api(37, 0, 3, create_partitions.handle),
        _controller_api(43, 0, 2, elect_leaders.handle),
        _controller_api(44, 0, 1, incremental_alter_configs.handle),
        _controller_api(45, 0, 1, alter_partition_reassignments.handle),
        _controller_api(46, 0, 0, list_partition_reassignments.handle),
        _node_api(52, 2, 2, quorum.vote),
        _node_api(53, 1, 1, quorum.begin_quorum_epoch),
        _node_api(54, 1, 1, quorum.end_quorum_epoch),
        _node_api(55, 0, 2, describe_quorum.handle),
        _controller_api(56, 2, 3, alter_partition.handle),
        _node_api(58, 0, 0, envelope.handle),
        _node_api(59, 1, 1, quorum.fetch_snapshot),
        _node_api(60, 1, 2, describe_controllers.handle),
        _controller_api(62, 0, 4, broker_registration.handle),
        _controller_api(63, 0, 2, broker_heartbeat.handle),
        _controller_api(64, 0, 0, unregister_broker.handle),
        _controller_api(67, 0, 0, allocate_producer_ids.handle),
        _controller_api(70, 0, 0, controller_registration.handle),
        _controller_api(73, 0, 0, assign_replicas_to_dirs.handle),
    )
)
"""The APIs that a controller serves to brokers and to other controllers."""
