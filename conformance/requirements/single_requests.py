"""Requirements of group and transaction APIs that a single request can test.

A broker that does not advertise the API is not judged. The requirements of transactions do not apply to a broker
without EndTxn, whatever its InitProducerId returns.
"""

from typing import Any, Final

from conformance.requirements import sources
from conformance.requirements.requirement import Level, Requirement, Source
from conformance.requirements.topic_fields import partition_indexes
from conformance.sequential.check import judges, sequential
from conformance.sequential.model.members import MEMBER_ID_REQUIRED_SINCE
from conformance.sequential.steps import (
    ApiKey,
    BrokerSetting,
    CreateTopic,
    InitProducerId,
    ListTransactions,
    Producer,
    RawRequest,
    Step,
)
from conformance.sequential.strategies import every_version, script
from fixtures.targets.target import Capability

_JOIN: Final = {
    "group_id": "trial",
    "member_id": "",
    "group_instance_id": None,
    "protocol_type": "consumer",
    "protocols": ({"name": "range", "metadata": b""},),
}
_SESSION_MIN: Final = "group.min.session.timeout.ms"
_SESSION_MAX: Final = "group.max.session.timeout.ms"
_TRANSACTION_MAX: Final = "transaction.max.timeout.ms"
_INT_MAX: Final = 2**31 - 1
_NO_TRANSACTION: Final = {"transactional_id": "trial", "producer_id": 7, "producer_epoch": 0, "committed": True}
_END_TXN: Final = RawRequest(ApiKey.END_TXN, _NO_TRANSACTION, ("INVALID_PRODUCER_ID_MAPPING",))


def _join(error: str, version: int | None = None, **fields: Any) -> RawRequest:
    return RawRequest(ApiKey.JOIN_GROUP, {**_JOIN, **fields}, (error,), version)


def _begin(error: str, **fields: Any) -> RawRequest:
    return RawRequest(ApiKey.INIT_PRODUCER_ID, {"transactional_id": "trial", **fields}, (error,))


def _requirement(id_: str, text: str, promised_by: tuple[Source, ...], *steps: Step) -> Requirement:
    check = sequential(script(*steps), judges("errors", of=RawRequest))
    return Requirement(id=id_, level=Level.MUST, text=text, sources=promised_by, check=check)


_ID: Final = "trial"
_BEFORE_EPOCH_BUMPS: Final = 4
"""The newest version of EndTxn in which it never begins an epoch (KIP-890)."""
_TRANSACTION_REQUESTS: Final = (
    (ApiKey.ADD_PARTITIONS_TO_TXN, 3),
    (ApiKey.ADD_OFFSETS_TO_TXN, None),
    (ApiKey.END_TXN, _BEFORE_EPOCH_BUMPS),
)
"""APIs of a transactional producer, each with the newest version that a client sends."""


def _producer_request(
    api: ApiKey, version: int | None, producer_id: int | Producer, epoch: int, error: str
) -> RawRequest:
    """Return a request of a transactional producer; `build` drops the fields that the API does not have."""
    producer = {"transactional_id": _ID, "producer_id": producer_id, "producer_epoch": epoch}
    fields = {
        **producer,
        **{f"v3_and_below_{name}": value for name, value in producer.items()},
        "v3_and_below_topics": partition_indexes(),
        "group_id": "trial",
        "committed": True,
    }
    return RawRequest(api, fields, (error,), version)


_CURRENT_EPOCH: Final = 2
_FENCED_REQUESTS: Final = tuple(
    _producer_request(api, version, producer_id, epoch, error)
    for api, version in _TRANSACTION_REQUESTS
    for producer_id, epoch, error in (
        *((Producer(0), epoch, "PRODUCER_FENCED") for epoch in (0, _CURRENT_EPOCH - 1, _CURRENT_EPOCH + 1)),
        *((Producer(1), epoch, "INVALID_PRODUCER_ID_MAPPING") for epoch in (0, _CURRENT_EPOCH)),
    )
)
"""Requests that the coordinator rejects if the first producer is the transactional one, at the current epoch."""
_OTHER_STATES: Final = ("Ongoing", "PrepareCommit", "CompleteAbort")
_LISTED: Final = (
    ListTransactions(),
    *(ListTransactions(states=states) for states in (("Empty",), _OTHER_STATES)),
    *(ListTransactions(producers=producers) for producers in ((0,), (1,))),
)

REQUIREMENTS: Final = (
    Requirement(
        id="transactions/initial-state-is-listed",
        level=Level.MUST,
        text="InitProducerId with a new transactional id returns a producer id at epoch 0. Each later InitProducerId "
        "with this transactional id returns the same producer id at the next epoch. ListTransactions of the "
        "coordinator returns the transactional id with this producer id and the state Empty. If the request has a "
        "filter by state or by producer id, it returns the transactional id only if the filter includes its state or "
        "its producer id.",
        sources=(sources.KIP_664, sources.KIP_98, sources.KIP_360),
        check=sequential(
            script(
                ListTransactions(),
                InitProducerId(transactional_id=_ID),
                InitProducerId(),
                *_LISTED,
                InitProducerId(transactional_id=_ID),
                *_LISTED,
                *every_version(InitProducerId(transactional_id=_ID)),
                *every_version(ListTransactions()),
                *every_version(ListTransactions(states=("Ongoing", "Empty"))),
                *every_version(ListTransactions(states=("Ongoing",))),
            ),
            judges("error", "producer", "producer_epoch", of=InitProducerId)
            | judges("error", "listed", "state", "producer", of=ListTransactions),
        ),
    ),
    Requirement(
        id="transactions/fenced-producer-is-rejected",
        level=Level.MUST,
        text="After InitProducerId has returned a new epoch for a transactional id, AddPartitionsToTxn, "
        "AddOffsetsToTxn and EndTxn with any other epoch return PRODUCER_FENCED, and with another producer id "
        "INVALID_PRODUCER_ID_MAPPING. EndTxn of the current epoch without a transaction returns INVALID_TXN_STATE. "
        "These requests change nothing: the transactional id keeps its producer id and its epoch.",
        sources=(sources.KIP_98, sources.KIP_588, sources.KIP_360, sources.PROTOCOL_ERRORS),
        check=sequential(
            script(
                CreateTopic(),
                InitProducerId(transactional_id=_ID),
                InitProducerId(),
                *(InitProducerId(transactional_id=_ID) for _ in range(_CURRENT_EPOCH)),
                *_FENCED_REQUESTS,
                _producer_request(
                    ApiKey.END_TXN, _BEFORE_EPOCH_BUMPS, Producer(0), _CURRENT_EPOCH, "INVALID_TXN_STATE"
                ),
                InitProducerId(transactional_id=_ID),
            ),
            judges("error", "producer", "producer_epoch", of=InitProducerId) | judges("errors", of=RawRequest),
        ),
        needs=frozenset({Capability.TOPIC_ADMIN}),
        since="2.7.0",
    ),
    _requirement(
        "groups/session-timeout-out-of-bounds-is-rejected",
        "JoinGroup with a session timeout below group.min.session.timeout.ms or above group.max.session.timeout.ms "
        "returns INVALID_SESSION_TIMEOUT. It does not return this error for a session timeout that equals one of "
        "these limits or is between them. The limits are those that DescribeConfigs returns.",
        (
            sources.SESSION_TIMEOUT_MIN,
            sources.SESSION_TIMEOUT_MAX,
            sources.KIP_133,
            sources.PROTOCOL_ERRORS,
        ),
        _join("UNKNOWN_MEMBER_ID", member_id="unknown", session_timeout=BrokerSetting(_SESSION_MIN, 30_000)),
        _join("UNKNOWN_MEMBER_ID", member_id="unknown", session_timeout=BrokerSetting(_SESSION_MAX, 30_000)),
        _join("INVALID_SESSION_TIMEOUT", session_timeout=BrokerSetting(_SESSION_MIN, 1, plus=-1)),
        _join("INVALID_SESSION_TIMEOUT", session_timeout=BrokerSetting(_SESSION_MAX, _INT_MAX, plus=1)),
    ),
    _requirement(
        "groups/new-member-receives-its-id-first",
        "Since JoinGroup v4 a member without an id receives one with MEMBER_ID_REQUIRED, and joins with it.",
        (sources.KIP_394,),
        _join("MEMBER_ID_REQUIRED", MEMBER_ID_REQUIRED_SINCE),
        _join("MEMBER_ID_REQUIRED"),
    ),
    _requirement(
        "transactions/too-long-timeout-is-rejected",
        "InitProducerId with a transaction timeout above transaction.max.timeout.ms, or not above 0, returns "
        "INVALID_TRANSACTION_TIMEOUT. With a timeout above 0 up to this maximum it returns NONE. The maximum is "
        "the one that DescribeConfigs returns.",
        (sources.TRANSACTION_TIMEOUT_MAX, sources.KIP_98, sources.KIP_133, sources.PROTOCOL_ERRORS),
        _END_TXN,
        _begin("INVALID_TRANSACTION_TIMEOUT", transaction_timeout=BrokerSetting(_TRANSACTION_MAX, _INT_MAX, plus=1)),
        _begin("INVALID_TRANSACTION_TIMEOUT", transaction_timeout=0),
        _begin("NONE", transaction_timeout=BrokerSetting(_TRANSACTION_MAX, 1_000)),
    ),
    _requirement(
        "transactions/empty-id-is-rejected",
        "InitProducerId with an empty transactional id returns INVALID_REQUEST; with any other transactional id it "
        "returns NONE.",
        (sources.KIP_98, sources.PROTOCOL_ERRORS),
        _END_TXN,
        _begin("INVALID_REQUEST", transactional_id=""),
        _begin("NONE"),
    ),
)
