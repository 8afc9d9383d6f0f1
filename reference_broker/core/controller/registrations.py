"""Whether a broker may join, and as what (KIP-631; KIP-584 for features, KIP-858 for directories).

Checks, in Kafka's order (`ClusterControlManager.registerBroker`):

| what is wrong                                                              | error                                |
|----------------------------------------------------------------------------|--------------------------------------|
| another cluster's id                                                       | INCONSISTENT_CLUSTER_ID(104)         |
| the id is another incarnation's whose session lasts                        | DUPLICATE_BROKER_REGISTRATION(101)   |
| a broker that still uses ZooKeeper                                         | BROKER_ID_NOT_REGISTERED(102)        |
| no directory, a reserved or repeated id of one, or one of another broker   | INVALID_REGISTRATION(119)            |
| a feature's level in force is not in its range                             | UNSUPPORTED_VERSION(35)              |
| no range for `metadata.version`                                            | INVALID_REGISTRATION(119)            |

A new incarnation starts fenced, with the offset of its registration as its epoch; it may have lost what it had, so the
one before leaves every ISR. The same incarnation again changes its registration, and keeps epoch and state.
"""

from typing import Any
from uuid import UUID

from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.metadata.bootstrap import METADATA_VERSION
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)

_RESERVED_DIRECTORIES = 100
"""Directory ids below this are no random ones, and some have a meaning of their own."""


def broker_registration(
    asked: Any, elections: Elections, *, cluster_id: str, has_session: bool, next_offset: int
) -> tuple[list[MetadataRecord], RegisterBrokerRecord]:
    """The records by which a broker joins; its registration is the last of them. Raises `ControllerError`.

    :param asked: kio's BrokerRegistrationRequest.
    :param has_session: whether the broker with this id is alive.
    :param next_offset: of the first of the records.
    """
    existing = elections.image.brokers.get(asked.broker_id)
    is_same = existing is not None and existing.incarnation_id == asked.incarnation_id
    if asked.cluster_id != cluster_id:
        message = f"Expected cluster ID {cluster_id}, but got cluster ID {asked.cluster_id}"
        raise ControllerError(ErrorCode.inconsistent_cluster_id, message)
    if has_session and not is_same:
        message = "Another broker is registered with that broker id."
        raise ControllerError(ErrorCode.duplicate_broker_registration, message)
    if getattr(asked, "is_migrating_zk_broker", False):
        message = "Controller does not support registering ZK brokers."
        raise ControllerError(ErrorCode.broker_id_not_registered, message)
    log_dirs = getattr(asked, "log_dirs", ())
    _check_directories(asked.broker_id, log_dirs, elections.image)
    _check_features(asked.features, elections.image)
    record = RegisterBrokerRecord(
        broker_id=asked.broker_id,
        incarnation_id=asked.incarnation_id,
        broker_epoch=existing.broker_epoch if existing and is_same else next_offset,
        end_points=_endpoints(asked.listeners),
        features=_features(asked.features),
        rack=asked.rack,
        fenced=existing.fenced if existing and is_same else True,
        in_controlled_shutdown=existing.in_controlled_shutdown if existing and is_same else False,
        log_dirs=tuple(log_dirs),
    )
    departures = [] if is_same else elections.without(asked.broker_id)
    return [*departures, record], record


def check_broker_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> None:
    """Refuse a broker that is not, or not any more, registered so. Raises `ControllerError`, STALE_BROKER_EPOCH."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        message = f"No broker registration found for broker id {broker_id}"
        raise ControllerError(ErrorCode.stale_broker_epoch, message)
    if broker.broker_epoch != broker_epoch:
        message = f"Expected broker epoch {broker.broker_epoch}, but got broker epoch {broker_epoch}"
        raise ControllerError(ErrorCode.stale_broker_epoch, message)


def controller_registration(asked: Any) -> RegisterControllerRecord:
    """The record by which a controller tells of itself (KIP-919)."""
    return RegisterControllerRecord(
        controller_id=asked.controller_id,
        incarnation_id=asked.incarnation_id,
        end_points=_endpoints(asked.listeners),
        features=_features(asked.features),
    )


def _check_directories(broker_id: int, log_dirs: tuple[UUID | None, ...], image: MetadataImage) -> None:
    if not log_dirs:
        raise _invalid("No directories specified in request")
    if any(directory is None or directory.int < _RESERVED_DIRECTORIES for directory in log_dirs):
        raise _invalid("Reserved directory ID in request")
    if len(set(log_dirs)) < len(log_dirs):
        raise _invalid("Duplicate directory ID in request")
    for other in image.brokers.values():
        for directory in set(log_dirs) & set(other.log_dirs):
            if other.broker_id != broker_id:
                raise _invalid(f"Broker {other.broker_id} is already registered with directory {directory}")


def _check_features(asked: Any, image: MetadataImage) -> None:
    ranges = {feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in asked}
    for name, (lowest, highest) in ranges.items():
        _check_level(name, image.features.get(name, 0), lowest, highest)
    if METADATA_VERSION not in ranges:
        raise _invalid(f"Request features do not contain '{METADATA_VERSION}'")
    for name in image.features.keys() - ranges.keys():
        _check_level(name, image.features[name], 0, 0)


def _check_level(name: str, level: int, lowest: int, highest: int) -> None:
    if not lowest <= level <= highest:
        message = (
            f"Unable to register because the broker does not support finalized version {level} of {name}."
            f" The broker wants a version between {lowest} and {highest}, inclusive."
        )
        raise ControllerError(ErrorCode.unsupported_version, message)


def _invalid(message: str) -> ControllerError:
    return ControllerError(ErrorCode.invalid_registration, message)


def _endpoints(listeners: Any) -> tuple[BrokerEndpoint, ...]:
    return tuple(
        BrokerEndpoint(
            name=listener.name, host=listener.host, port=listener.port, security_protocol=listener.security_protocol
        )
        for listener in listeners
    )


def _features(features: Any) -> tuple[BrokerFeature, ...]:
    return tuple(
        BrokerFeature(
            name=feature.name,
            min_supported_version=feature.min_supported_version,
            max_supported_version=feature.max_supported_version,
        )
        for feature in features
    )
