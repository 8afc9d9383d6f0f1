"""Registration of brokers and controllers.

Follows: org.apache.kafka.controller.ClusterControlManager (KIP-631, KIP-584, KIP-858, KIP-919).

Checks of `registerBroker`, in Kafka's order:

| problem                                                                    | error                                |
|----------------------------------------------------------------------------|--------------------------------------|
| the cluster id is wrong                                                    | INCONSISTENT_CLUSTER_ID(104)         |
| another incarnation with this id has a valid session                       | DUPLICATE_BROKER_REGISTRATION(101)   |
| the broker still uses ZooKeeper                                            | BROKER_ID_NOT_REGISTERED(102)        |
| directory ids are missing, reserved, repeated or used by another broker    | INVALID_REGISTRATION(119)            |
| the broker's range for a feature does not have the finalized level         | UNSUPPORTED_VERSION(35)              |
| the request has no range for `metadata.version`                            | INVALID_REGISTRATION(119)            |

A new incarnation starts fenced. Its broker epoch is the offset of the first record that the registration appends. A new
incarnation may have lost data. Therefore the broker is removed from every ISR that has other members. If the same
incarnation registers again, its epoch and state do not change.
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
"""Directory ids below this number are reserved; some have a special meaning."""


def register_broker(
    registration: Any, elections: Elections, *, cluster_id: str, has_session: bool, next_offset: int
) -> tuple[list[MetadataRecord], RegisterBrokerRecord]:
    """Return the records to append for a registration, and its `RegisterBrokerRecord`. Raises `ControllerError`.

    :param registration: kio's BrokerRegistrationRequest.
    :param has_session: whether the broker with this id has a valid session.
    :param next_offset: offset of the first of the returned records; the epoch of a new incarnation.
    """
    existing = elections.image.brokers.get(registration.broker_id)
    is_same_incarnation = existing is not None and existing.incarnation_id == registration.incarnation_id
    if registration.cluster_id != cluster_id:
        message = f"Expected cluster ID {cluster_id}, but got cluster ID {registration.cluster_id}"
        raise ControllerError(ErrorCode.inconsistent_cluster_id, message)
    if has_session and not is_same_incarnation:
        message = "Another broker is registered with that broker id."
        raise ControllerError(ErrorCode.duplicate_broker_registration, message)
    if getattr(registration, "is_migrating_zk_broker", False):
        message = "Controller does not support registering ZK brokers."
        raise ControllerError(ErrorCode.broker_id_not_registered, message)
    log_dirs = getattr(registration, "log_dirs", ())
    _check_directories(registration.broker_id, log_dirs, elections.image)
    _check_features(registration.features, elections.image)
    record = RegisterBrokerRecord(
        broker_id=registration.broker_id,
        incarnation_id=registration.incarnation_id,
        broker_epoch=existing.broker_epoch if existing and is_same_incarnation else next_offset,
        end_points=_endpoints(registration.listeners),
        features=_features(registration.features),
        rack=registration.rack,
        fenced=existing.fenced if existing and is_same_incarnation else True,
        in_controlled_shutdown=existing.in_controlled_shutdown if existing and is_same_incarnation else False,
        log_dirs=tuple(log_dirs),
    )
    removals = [] if is_same_incarnation else elections.remove_from_isrs(registration.broker_id)
    return [*removals, record], record


def check_broker_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> None:
    """Raise `ControllerError` with STALE_BROKER_EPOCH unless the broker is registered with this epoch."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        message = f"No broker registration found for broker id {broker_id}"
        raise ControllerError(ErrorCode.stale_broker_epoch, message)
    if broker.broker_epoch != broker_epoch:
        message = f"Expected broker epoch {broker.broker_epoch}, but got broker epoch {broker_epoch}"
        raise ControllerError(ErrorCode.stale_broker_epoch, message)


def register_controller(registration: Any) -> RegisterControllerRecord:
    """Return the record that registers a controller (KIP-919).

    :param registration: kio's ControllerRegistrationRequest.
    """
    return RegisterControllerRecord(
        controller_id=registration.controller_id,
        incarnation_id=registration.incarnation_id,
        end_points=_endpoints(registration.listeners),
        features=_features(registration.features),
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


def _check_features(features: Any, image: MetadataImage) -> None:
    ranges = {feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in features}
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
