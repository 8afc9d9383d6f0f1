"""Filter of requests that damage a cluster although it carries them out correctly, such as UnregisterBroker.

Kafka trusts a peer on a replication or controller listener. If such a peer uses the id and epoch of a broker, Kafka
carries out its requests, so their damage shows no defect. Therefore, after all mutations, every frame is decoded as a
broker decodes it, and is not sent if it

- changes the witness topic, its records or its configuration;
- acts for a node of the cluster: registers or unregisters it, sends its heartbeats, alters partitions, assigns replicas
  to directories or allocates producer ids in its name, or changes it as a voter of the quorum;
- fetches as a follower with the id of a broker: this advances the high watermark past records that the broker lacks;
- alters the configuration of brokers, or requests an unclean election of all partitions or of the witness topic;
- exhausts the epochs of the quorum: it names a voter as candidate or leader in an epoch near the maximum;
- creates more than `PARTITIONS_MAX` partitions, unless Kafka rejects the request because it creates too many;
- creates a topic with a valid name that is not one of `NEW_TOPICS`, so that the number of topics stays limited;
- deletes the topics that the other requests name.

Requests that are known to end a node of Apache Kafka or to exhaust it are not sent to Apache Kafka either
(`_KNOWN`, `_KNOWN_OF_ALL_APIS`, `_SLOW_COLLECTIONS`, docs/findings.md). Otherwise the first of them would end the
session, which would find nothing else.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from conformance.fuzz.wire import UndecodableError, decode
from conformance.fuzz.world import NEW_TOPICS, TOPICS, WITNESS, World
from fixtures.clients.topic_names import is_legal_name

Rule = Callable[[Mapping[str, Any], World], bool]
"""Whether a decoded request may be sent."""

PARTITIONS_MAX: Final = 32
"""Maximum number of partitions that CreateTopics creates, or that a topic has after CreatePartitions."""
PARTITIONS_REJECTED: Final = 10_000
"""Number of partitions above which Kafka rejects a request (`ReplicationControlManager.MAX_PARTITIONS_PER_BATCH`)."""
EQUAL_KEYS_MAX: Final = 100
"""Maximum number of elements with the same key in one array of a request to Apache Kafka."""
EPOCHS_LEFT_MIN: Final = 1_000_000
"""Number of epochs that a request in the name of a voter must leave below the maximum."""
_STRING_BYTES_MAX: Final = 2**15 - 1
_INT32_MAX: Final = 2**31 - 1
_JAVA_TRIMMED: Final = "".join(map(chr, range(33)))
"""The characters that Java's `String.trim` removes."""
_ENVELOPE: Final = 58
_UNCLEAN: Final = 1
_BROKER, _BROKER_LOGGER = 4, 8
_NODE_NAMES: Final = ("broker_id", "voter_id", "controller_id")


def is_permitted(frame: bytes, world: World) -> bool:
    """Whether a frame (without its size) may be sent.

    A frame that cannot be decoded changes nothing. It is sent, unless an array in it makes Apache Kafka slow.
    """
    api_key = int.from_bytes(frame[:2], "big", signed=True)
    known = (*_KNOWN.get(world.kind, {}).get(api_key, ()), *_KNOWN_OF_ALL_APIS.get(world.kind, ()))
    rules = (*_RULES.get(api_key, ()), *known)
    if not rules and api_key != _ENVELOPE:
        return True
    arrays: list[list[Any]] = []
    try:
        request = decode(frame, arrays)
    except UndecodableError:
        request = None
    if world.kind in _SLOW_COLLECTIONS and not _repeats_few_keys(arrays):
        return False
    if request is None:
        return True
    if api_key == _ENVELOPE:
        return is_permitted(request["request_data"], world)
    return all(rule(request, world) for rule in rules)


def _spares_witness(request: Mapping[str, Any], world: World) -> bool:
    return not any(leaf in (WITNESS, world.topic_ids[WITNESS]) for _, leaf in _leaves(request))


def _deletes_only_new_topics(request: Mapping[str, Any], world: World) -> bool:
    """Whether a request deletes none of the topics that other requests name.

    Without these topics, most requests would be rejected early.
    """
    kept = {*TOPICS, *world.topic_ids.values()}
    return not any(leaf in kept for _, leaf in _leaves(request) if isinstance(leaf, str | UUID))


def _spares_nodes(request: Mapping[str, Any], world: World) -> bool:
    return not any(name in _NODE_NAMES and leaf in world.nodes for name, leaf in _leaves(request))


def _is_no_follower(request: Mapping[str, Any], world: World) -> bool:
    return not any(name == "replica_id" and leaf in world.nodes for name, leaf in _leaves(request))


def _alters_no_broker(request: Mapping[str, Any], world: World) -> bool:
    brokers = {"", *map(str, world.nodes)}
    return not any(
        resource["resource_type"] in {_BROKER, _BROKER_LOGGER} and resource["resource_name"].strip() in brokers
        for resource in request["resources"]
    )


def _elects_cleanly(request: Mapping[str, Any], world: World) -> bool:
    return request.get("election_type", 0) != _UNCLEAN or (
        request["topic_partitions"] is not None and _spares_witness(request, world)
    )


def _leaves_epochs(request: Mapping[str, Any], world: World) -> bool:
    """Whether a request that names a voter as candidate or leader leaves enough epochs for later elections."""
    leaves = list(_leaves(request))
    names_voter = any(
        name in {"leader_id", "replica_id", "candidate_id"} and leaf in world.nodes for name, leaf in leaves
    )
    epochs = (leaf for name, leaf in leaves if name in {"leader_epoch", "replica_epoch", "candidate_epoch"})
    return not names_voter or all(epoch < _INT32_MAX - EPOCHS_LEFT_MIN for epoch in epochs)


def _creates_few_topics(request: Mapping[str, Any], world: World) -> bool:
    if any(is_legal_name(topic["name"]) and topic["name"] not in NEW_TOPICS for topic in request["topics"]):
        return False
    partitions = sum(max(topic["num_partitions"], len(topic["assignments"]), 1) for topic in request["topics"])
    return _is_few_or_rejected(partitions)


def _creates_few_partitions(request: Mapping[str, Any], world: World) -> bool:
    return all(_is_few_or_rejected(topic["count"]) for topic in request["topics"])


def _is_few_or_rejected(partitions: int) -> bool:
    return partitions <= PARTITIONS_MAX or partitions > PARTITIONS_REJECTED


def _adds_no_thousands(request: Mapping[str, Any], world: World) -> bool:
    """Whether each count is at most `PARTITIONS_MAX`.

    Before Kafka rejects a request for more than 10,000 partitions, it adds 10,000 of them or runs out of memory.
    """
    return all(topic["count"] <= PARTITIONS_MAX for topic in request["topics"])


def _names_a_partition(request: Mapping[str, Any], world: World) -> bool:
    """Whether a request has a first partition, which `KafkaRaftClient.handleFetchSnapshotRequest` reads unchecked."""
    return bool(request["topics"]) and bool(request["topics"][0]["partitions"])


def _names_listeners(request: Mapping[str, Any], world: World) -> bool:
    """Whether each listener has a name, without which `raft.Endpoints` throws in the raft IO thread."""
    endpoints = request.get("listeners", ()) or request.get("leader_endpoints", ())
    return all(endpoint["name"].strip(_JAVA_TRIMMED) for endpoint in endpoints)


def _names_no_leader(request: Mapping[str, Any], world: World) -> bool:
    """Whether a request names no voter as leader: a voter that follows a wrong leader may end."""
    return not any(name == "leader_id" and leaf in world.nodes for name, leaf in _leaves(request))


def _is_serializable(request: Mapping[str, Any], world: World) -> bool:
    """Whether a response can repeat every string, after invalid UTF-8 has been replaced by U+FFFD (three bytes)."""
    texts = (leaf for _, leaf in _leaves(request) if isinstance(leaf, str))
    return all(len(text.encode("utf-8", "surrogatepass")) <= _STRING_BYTES_MAX for text in texts)


def _repeats_few_keys(arrays: Sequence[Sequence[Any]]) -> bool:
    """Whether no key occurs too often in an array.

    With n elements of the same key, `ImplicitLinkedHashCollection` needs time in proportion to the cube of n. The key
    of an element is, or begins with, its first field. Kafka reads an array before the rest of the request, so the rule
    applies also to requests that cannot be decoded.
    """
    return all(
        len(array) <= EQUAL_KEYS_MAX or max(Counter(map(_key, array)).values()) <= EQUAL_KEYS_MAX for array in arrays
    )


def _key(element: Any) -> str:
    return repr(next(iter(element.values()), None) if isinstance(element, Mapping) else element)


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every primitive value with the name of its field."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, value


_RULES: Final[Mapping[int, tuple[Rule, ...]]] = {
    0: (_spares_witness,),  # Produce
    1: (_is_no_follower,),  # Fetch
    19: (_creates_few_topics,),  # CreateTopics
    20: (_spares_witness, _deletes_only_new_topics),  # DeleteTopics
    21: (_spares_witness,),  # DeleteRecords
    24: (_spares_witness,),  # AddPartitionsToTxn
    27: (_spares_witness,),  # WriteTxnMarkers
    33: (_spares_witness, _alters_no_broker),  # AlterConfigs
    37: (_spares_witness, _creates_few_partitions),  # CreatePartitions
    43: (_elects_cleanly,),  # ElectLeaders
    44: (_spares_witness, _alters_no_broker),  # IncrementalAlterConfigs
    45: (_spares_witness,),  # AlterPartitionReassignments
    52: (_leaves_epochs,),  # Vote
    53: (_leaves_epochs,),  # BeginQuorumEpoch
    54: (_leaves_epochs,),  # EndQuorumEpoch
    56: (_spares_witness, _spares_nodes),  # AlterPartition
    62: (_spares_nodes,),  # BrokerRegistration
    63: (_spares_nodes,),  # BrokerHeartbeat
    64: (_spares_nodes,),  # UnregisterBroker
    67: (_spares_nodes,),  # AllocateProducerIds
    70: (_spares_nodes,),  # ControllerRegistration
    73: (_spares_nodes,),  # AssignReplicasToDirs
    80: (_spares_nodes,),  # AddRaftVoter
    81: (_spares_nodes,),  # RemoveRaftVoter
    82: (_spares_nodes,),  # UpdateRaftVoter
}

_KNOWN: Final[Mapping[str, Mapping[int, tuple[Rule, ...]]]] = {
    "apache-kafka": {
        37: (_adds_no_thousands,),  # CreatePartitions
        53: (_names_listeners, _names_no_leader),  # BeginQuorumEpoch
        54: (_names_no_leader,),  # EndQuorumEpoch
        59: (_names_a_partition,),  # FetchSnapshot
        80: (_names_listeners,),  # AddRaftVoter
        82: (_names_listeners,),  # UpdateRaftVoter
    }
}

_KNOWN_OF_ALL_APIS: Final[Mapping[str, tuple[Rule, ...]]] = {
    "apache-kafka": (_is_serializable,),
}
_SLOW_COLLECTIONS: Final = frozenset({"apache-kafka"})
"""Kinds of targets that need a long time for arrays with equal keys."""
