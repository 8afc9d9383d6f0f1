"""The API table: every request that this broker answers, its versions, its handler.

The ranges are those of Apache Kafka 4.3, whose lowest ones are KIP-896's. Produce is told from 0 up though 3 is the
lowest that is served, as Kafka does for clients that look for version 0 in the list (KAFKA-18659: librdkafka).
InitProducerId 6 is unstable in 4.3 and is not offered there either.
"""

from reference_broker.core.api import Api
from reference_broker.core.handlers import (
    api_versions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    fetch,
    find_coordinator,
    init_producer_id,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
)

_SERVED = (
    Api(0, 3, 13, produce.handle, advertised_min_version=0),
    Api(1, 4, 18, fetch.handle),
    Api(2, 1, 11, list_offsets.handle),
    Api(3, 0, 13, metadata.handle),
    Api(8, 2, 10, offset_commit.handle),
    Api(9, 1, 10, offset_fetch.handle),
    Api(10, 0, 6, find_coordinator.handle),
    Api(19, 2, 7, create_topics.handle),
    Api(20, 1, 6, delete_topics.handle),
    Api(21, 0, 2, delete_records.handle),
    Api(22, 0, 5, init_producer_id.handle),
    Api(23, 2, 4, offset_for_leader_epoch.handle),
    Api(32, 1, 4, describe_configs.handle),
    Api(60, 0, 2, describe_cluster.handle),
)

API_VERSIONS = 18
_API_VERSIONS_RANGE = (0, 4)
_ADVERTISED = {API_VERSIONS: _API_VERSIONS_RANGE, **{api.key: api.advertised for api in _SERVED}}

APIS = {
    api.key: api
    for api in (
        *_SERVED,
        Api(API_VERSIONS, *_API_VERSIONS_RANGE, api_versions.handler(dict(sorted(_ADVERTISED.items())))),
    )
}
"""The entries by API key."""
