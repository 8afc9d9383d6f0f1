"""Routing of a script's requests to the brokers of one target, as Kafka's clients route them.

Rules:
- A request for a partition is sent to its leader, and a request for a group or a transactional id to its coordinator.
  Any other request is sent to the first broker, or to the controller after a broker has returned NOT_CONTROLLER (before
  KRaft). If the script names a broker, the request is sent to that broker.
- `request` sends a request once. `request_when_ready` repeats it while the coordinator or controller is not ready.
- Like a client, the routing waits for the leaders of a new topic, and for a coordinator that is loading.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from conformance.sequential import requests, timeouts
from conformance.sequential.connections import Connections, version_for
from conformance.sequential.coordinators import coordinators_of_groups, find_coordinators
from conformance.sequential.layout import build
from conformance.sequential.merged_requests import MergedRequests, responses_to_each
from conformance.sequential.response import Response, error_of
from conformance.sequential.responses import normalise
from conformance.sequential.setting_values import names_of_settings, with_settings
from conformance.sequential.steps import (
    TOPIC,
    CreateTopic,
    DeleteTopic,
    ListOffsets,
    Metadata,
    OffsetFetch,
    RawRequest,
    Step,
)
from conformance.sequential.symbols import ScriptSymbols
from fixtures.clients.messages import ApiKey, api_name, request_schema
from fixtures.clients.outcomes import NOT_CONTROLLER
from fixtures.clients.raw import RawClient, RawClientError, UnsupportedApi
from fixtures.targets.target import Node

_Result = TypeVar("_Result")
_CLIENT_SOFTWARE: Final = {"client_software_name": "kafkatrial", "client_software_version": "1"}
_PARTITION_APIS: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DELETE_RECORDS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_LOG_DIRS,
    }
)
_GROUP_APIS: Final = frozenset(
    {
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
    }
)
_TRANSACTION_APIS: Final = frozenset(
    {ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.DESCRIBE_TRANSACTIONS}
)
_REQUIRED_FEATURES: Final = dict.fromkeys(
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE), "group.version"
)
"""The feature (KIP-584) that must be enabled for an API. Without it, a broker advertises the API but rejects it."""
_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
"""The broker setting that enables the protocols of groups. Without `consumer`, it rejects the APIs of that protocol."""
_WITH_AUTO_CREATION: Final = {
    "allow_auto_topic_creation": True,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}
LOADING: Final = "COORDINATOR_LOAD_IN_PROGRESS"
_NOT_READY: Final = frozenset({LOADING, "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", NOT_CONTROLLER})
_AFTER_TIMEOUT_S: Final = 1.0
"""Timeout for the effects on topics that follow one that did not occur, in seconds."""


class NotReady(Exception):  # noqa: N818
    """Timeout of the wait for the coordinator of a group or transactional id."""


class Routing:
    """Sender of the requests of one run of a script, with the leaders, coordinators and topics of that run."""

    def __init__(self, connections: Connections, symbols: ScriptSymbols) -> None:
        self._connections = connections
        self._transport = connections.transport
        self._symbols = symbols
        self._leaders: dict[tuple[str, int], int] = {}
        self._coordinators: dict[str, int] = {}
        self._rejecting: dict[str, int] = {}
        """By group, the broker that FindCoordinator names as coordinator and that returns NOT_COORDINATOR."""
        self._topic_timeout_s = timeouts.READY_TIMEOUT_S
        """Timeout for the effect of a creation or a deletion of a topic."""
        self._created: set[str] = set()
        """Topics to delete at the end, because the script has created them or may have created them."""
        self._deleted: set[str] = set()
        """Deleted topics that a ZooKeeper cluster may still reject as existing when they are created again."""

    # --- requests

    def request(self, step: Step, broker: int | None = None) -> Response:
        """Send a request once, and return the response.

        A topic that the request may create is deleted at the end. If its name is unique to this run, that holds even
        without a successful response, because the response may be lost.

        :param broker: the broker's place among the target's brokers, from 1 on (see `steps`); None for the broker that
            a client selects.
        """
        node_id = self.destination(step) if broker is None else self._symbols.broker(broker)
        client = self._connections.client(node_id)
        message = self.message(step, client)
        self._may_create(step)
        response = normalise(step, client.request(message), self._symbols)
        self._created |= {*_created_by(step, response)}
        return response

    def request_merged(self, steps: Sequence[Step]) -> tuple[Response, ...]:
        """Send the requests of the steps, merged into one for each broker, as clients do; return the response to each.

        Requests for partitions without a known leader are sent to the first leader. Requests that one message of the
        version cannot hold, such as those for several groups in old versions, are sent one after the other.
        """
        known = [self.destination(step) for step in steps]
        first = next((node_id for node_id in known if node_id is not None), None)
        destinations = [first if node_id is None else node_id for node_id in known]
        whole = MergedRequests()
        for step, node_id in zip(steps, destinations, strict=True):
            self._may_create(step)
            whole.add(step, node_id, self.message(step, self._connections.client(node_id)))
        found: dict[Step, Response] = {}
        for each in whole.requests:
            response = self._connections.client(each.node_id).request(each.message)
            found |= zip(each.steps, responses_to_each(each.steps, response, self._symbols), strict=True)
        self._created.update(*(_created_by(step, response) for step, response in found.items()))
        return tuple(found[step] for step in steps)

    def _may_create(self, step: Step) -> None:
        """Record a topic that the next request may create, if its name is unique to this run."""
        if isinstance(step, CreateTopic) and not step.validate_only and self._symbols.real(step.topic) != step.topic:
            self._created.add(step.topic)

    def request_when_ready(self, step: Step) -> Response:
        """Send a request; repeat it while its coordinator or controller is not ready. Return the last response.

        The creation of a topic that this run has deleted is also repeated while it returns TOPIC_ALREADY_EXISTS.
        """
        not_ready = _NOT_READY
        if isinstance(step, CreateTopic) and step.topic in self._deleted:
            not_ready |= {"TOPIC_ALREADY_EXISTS"}
            self._deleted.discard(step.topic)
        deadline = self._transport.monotonic() + timeouts.READY_TIMEOUT_S
        while not_ready & _errors(response := self.request(step)) and self._transport.monotonic() < deadline:
            if NOT_CONTROLLER in _errors(response):
                self._connections.find_controller()
            self._transport.sleep(timeouts.RETRY_DELAY_S)
        return response

    def message(self, step: Step, client: RawClient) -> Any:
        """Return the message of a step in the newest version that both sides support, or in the step's version."""
        key = requests.api_key(step)
        version = version_for(client, key, getattr(step, "version", None))
        step = self._with_settings(step) if isinstance(step, RawRequest) else step
        return requests.request(step, request_schema(key, version), self._symbols)

    def _with_settings(self, step: RawRequest) -> RawRequest:
        """Replace the placeholders of settings in a request by the values that its destination describes."""
        names = tuple(names_of_settings(step.fields))
        if not names:
            return step
        return with_settings(step, self._connections.described(names, self.destination(step)))

    def destination(self, step: Step) -> int | None:
        """Return the id of the broker to which a client sends a request; None for the first one."""
        key = requests.api_key(step)
        if key in _GROUP_APIS | _TRANSACTION_APIS:
            self._require(key)  # a coordinator of an API that is not offered may never be found
        if key in _GROUP_APIS:
            return self._group_coordinator(getattr(step, "group", TOPIC))
        raw_id = step.fields.get("transactional_id") if isinstance(step, RawRequest) else None
        if key in _TRANSACTION_APIS or raw_id or getattr(step, "transactional_id", None):
            return self._transaction_coordinator(TOPIC)  # every script uses this name as its transactional id
        if key in _PARTITION_APIS:
            return self._leaders.get((getattr(step, "topic", ""), getattr(step, "partition", 0)))
        return self._connections.controller

    # --- coordinators

    def _group_coordinator(self, group: str) -> int:
        """Return the group's coordinator after it has loaded its partition of the offsets topic.

        If the broker that FindCoordinator names returns NOT_COORDINATOR until the timeout, return that broker, so that
        its responses are judged.
        """
        if group not in self._coordinators and not self._until_ready(partial(self._has_loaded_coordinator, group)):
            if group not in self._rejecting:
                raise NotReady(f"no coordinator of a group for {timeouts.READY_TIMEOUT_S:g} s")
            self._coordinators[group] = self._rejecting[group]
        return self._coordinators[group]

    def _require(self, key: ApiKey) -> None:
        """Raise `UnsupportedApi` if the target does not offer an API, or has not enabled the feature that it needs."""
        client = self._connections.client()
        client.version_for(key)
        if key not in _REQUIRED_FEATURES:
            return
        response = client.request(build(client.schema_for(ApiKey.API_VERSIONS, 3).ApiVersionsRequest, _CLIENT_SOFTWARE))
        finalized = getattr(response, "finalized_features", ())  # absent in versions below 3
        enabled = {feature.name for feature in finalized if feature.max_version_level > 0}
        if _REQUIRED_FEATURES[key] not in enabled:
            raise UnsupportedApi(f"the broker has not enabled {_REQUIRED_FEATURES[key]} for {api_name(key)}")
        protocols = self._connections.described((_PROTOCOLS,)).get(_PROTOCOLS)
        if protocols is not None and "consumer" not in protocols.split(","):
            raise UnsupportedApi(f"the broker does not serve {api_name(key)}: {_PROTOCOLS} is {protocols}")

    def _transaction_coordinator(self, transactional_id: str) -> int:
        """Return the coordinator of a transactional id. It may still be loading (see `request_when_ready`)."""
        found = self._until_ready(partial(self._find_coordinator, transactional_id, key_type=1))
        if found is None:
            raise NotReady(f"no coordinator of a transactional id for {timeouts.READY_TIMEOUT_S:g} s")
        return int(found.node_id)

    def _find_coordinator(self, name: str, key_type: int) -> Any | None:
        """Send FindCoordinator for a group (key type 0) or transactional id (1); return None while there is none."""
        found = find_coordinators(self._connections.client(), (self._symbols.real(name),), key_type)
        return found[0] if found and error_of(found[0].error_code) not in _NOT_READY else None

    def _has_loaded_coordinator(self, group: str) -> bool:
        """Whether the group has a coordinator that has loaded it; if so, record the coordinator."""
        self._rejecting.pop(group, None)
        found = self._find_coordinator(group, key_type=0)
        if found is None:
            return False
        error = self._group_error(found.node_id, group)
        if error == "NOT_COORDINATOR":
            self._rejecting[group] = int(found.node_id)
        if error in _NOT_READY:
            return False
        self._coordinators[group] = int(found.node_id)
        return True

    def _group_error(self, node_id: int, group: str) -> object:
        """Return the error with which a broker responds to a request for a group."""
        probe = OffsetFetch(group=group, topic="trial-unknown", version=7)
        node = self._connections.client(node_id)
        return normalise(probe, node.request(self.message(probe, node)), self._symbols).get("error")

    def coordinators(self, groups: Sequence[str]) -> Response:
        """Find the coordinators of several groups, and return whether each serves its group."""
        found = find_coordinators(self._connections.client(), [*map(self._symbols.real, groups)])
        return coordinators_of_groups(found, groups, self._symbols, self._group_error)

    # --- topics and their leaders

    def await_leaders(self, topic: str, count: int) -> str:
        """Wait until every broker knows the leaders of the partitions 0 to `count` - 1, and the leaders serve them.

        Return the empty string, or, after a timeout, the reason why a partition cannot be used.
        """
        timeout_s = self._topic_timeout_s
        for partition in range(count):
            if not self._takes_effect(partial(self._has_leader, topic, partition)):
                return f"{self._why_unusable(topic, partition, count)} for {timeout_s:g} s"
        return ""

    def creates_topic(self, topic: str, timeout_s: float) -> bool:
        """Whether Metadata requests that permit automatic creation create a topic before the timeout."""
        self._created.add(topic)
        topics = ({"name": topic, "topic_id": None},)
        request = RawRequest(ApiKey.METADATA, {**_WITH_AUTO_CREATION, "topics": topics}, ())
        deadline = self._transport.monotonic() + timeout_s
        while (
            not (created := {*self.request(request)["errors"]} == {"NONE"}) and self._transport.monotonic() < deadline
        ):
            self._transport.sleep(timeouts.RETRY_DELAY_S)
        return created

    def await_restarted(self) -> bool:
        """Wait until every known partition has a leader that serves it. Return False after a timeout."""
        self._coordinators.clear()
        return all(self._until_ready(partial(self._has_leader, *known)) for known in [*self._leaders])

    def set_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Send requests for a partition to this broker from now on."""
        self._leaders[topic, partition] = node_id

    def _has_leader(self, topic: str, partition: int) -> bool:
        """Whether every broker knows the partition's leader, and the leader serves the partition.

        Brokers receive the metadata of a topic one after the other. All of them must have it, because a coordinator
        without it would return UNKNOWN_TOPIC_OR_PARTITION.
        """
        leaders = {self._leader_known_to(node, topic, partition) for node in self._connections.nodes}
        if len(leaders) != 1 or None in leaders:
            return False
        self._leaders[topic, partition] = next(leader for leader in leaders if leader is not None)
        return self.request(ListOffsets(topic=topic, partition=partition)).get("error") == "NONE"

    def _why_unusable(self, topic: str, partition: int, count: int) -> str:
        """Return the reason why a partition of a topic with `count` partitions cannot be used, as a text."""
        leaders = set()
        for node in self._connections.nodes:
            listed = {
                found.partition_index: found.leader_id
                for described in self.describe(topic, node)
                for found in described.partitions
            }
            if missing := {*range(count)} - listed.keys():
                return f"Metadata of broker {node.id} listed {count - len(missing)} of {count} partitions"
            leaders.add(listed[partition])
        if min(leaders) < 0:
            return f"Metadata named no leader of partition {partition}"
        if len(leaders) > 1:
            return f"brokers named different leaders of partition {partition}"
        error = self.request(ListOffsets(topic=topic, partition=partition)).get("error")
        return f"the leader of partition {partition} returned {error} to ListOffsets"

    def _leader_known_to(self, node: Node, topic: str, partition: int) -> int | None:
        """Return the partition's leader in the node's metadata, None if it has none, and record the topic's id."""
        for described in self.describe(topic, node):
            self._symbols.saw_topic_id(topic, getattr(described, "topic_id", None))
            for found in described.partitions:
                if found.partition_index == partition and found.leader_id >= 0:
                    return int(found.leader_id)
        return None

    def describe(self, topic: str, node: Node | None = None) -> Any:
        """Return the topics of a raw Metadata response for one topic, from a node (by default, the first broker)."""
        client = self._connections.client(node.id if node else None)
        message = requests.request(Metadata((topic,)), client.schema_for(ApiKey.METADATA), self._symbols)
        return client.request(message).topics

    def await_deleted(self, topic: str) -> None:
        """Wait until no broker knows the topic and no leader serves it. A timeout is not an error."""
        self._created.discard(topic)
        self._deleted.add(topic)
        self._symbols.remove_topic(topic)
        self._takes_effect(partial(self._is_deleted, topic))

    def _takes_effect(self, is_done: Callable[[], bool]) -> bool:
        """Wait for the effect of a creation or a deletion of a topic; return False after the timeout.

        After the first timeout, the effects that follow have little time: otherwise the scripts on a broker that, for
        example, deletes no topics would take many minutes.
        """
        if self._until_ready(is_done, self._topic_timeout_s):
            return True
        self._topic_timeout_s = min(self._topic_timeout_s, _AFTER_TIMEOUT_S)
        return False

    def _is_deleted(self, topic: str) -> bool:
        """Whether no broker knows the topic and no leader serves it.

        A leader may serve a topic for a moment longer than the brokers know it.
        """
        if any(found.error_code == 0 for node in self._connections.nodes for found in self.describe(topic, node)):
            return False
        partitions = [partition for name, partition in self._leaders if name == topic]
        responses = [self.request(ListOffsets(topic=topic, partition=partition)) for partition in partitions]
        return all(response.get("error") != "NONE" for response in responses)

    @property
    def topics(self) -> Sequence[str]:
        """The real names of the topics that `delete_topics` deletes."""
        return [self._symbols.real(topic) for topic in sorted(self._created)]

    def delete_topics(self) -> bool:
        """Delete the script's topics, and return whether the target responded.

        A target without DeleteTopics counts as one that responded, although its topics remain.
        """
        try:
            for topic in sorted(self._created):
                self.request(DeleteTopic(topic))
                self._created.discard(topic)
        except UnsupportedApi:
            return True
        except RawClientError:
            self._connections.close()
            return False
        return True

    def _until_ready(self, condition: Callable[[], _Result], timeout_s: float | None = None) -> _Result:
        """Call the condition until its result is true, or until the timeout. Return its last result."""
        deadline = self._transport.monotonic() + (timeouts.READY_TIMEOUT_S if timeout_s is None else timeout_s)
        while not (result := condition()) and self._transport.monotonic() <= deadline:
            self._transport.sleep(timeouts.RETRY_DELAY_S)
        return result


def _created_by(step: Step, response: Response) -> frozenset[str]:
    """Return the topic that a successful CreateTopics request has created."""
    if not isinstance(step, CreateTopic) or step.validate_only or response.get("error") != "NONE":
        return frozenset()
    return frozenset({step.topic})


def _errors(response: Response) -> frozenset[object]:
    return frozenset((response.get("error"), *response.get("errors", ())))
