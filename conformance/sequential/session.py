"""Scripts run on one target: where their requests go, and what is waited for.

Rules:
- Each run of a script has topics, groups and producers of its own, so that no script sees another's.
- Requests go where Kafka's clients send them: to the partition's leader, to the group's coordinator, else to the
  first broker; or to the one that the script names. They are sent once; only what a client would wait out before a
  script's first request (a new topic's leader, a coordinator that still loads) is waited for, and what the script says
  is to come (`Eventually`, `AwaitTopic`).
- A broker that closes is connected to again for the next step; one that cannot be connected to is `TargetDown`.
- Bytes that are no request, and requests that are sent beside others, travel on a connection of their own.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from conformance.sequential import admin_answers, requests
from conformance.sequential.answer import CLOSED, SILENT, Answer, malformed
from conformance.sequential.answers import normalise
from conformance.sequential.connections import Connections, TargetDown, version_for
from conformance.sequential.expectation import Expectation, Satisfies, mismatches
from conformance.sequential.frames import request_unknown_version, request_with_unknown_tags
from conformance.sequential.layout import build
from conformance.sequential.model import expected
from conformance.sequential.steps import (
    API_VERSIONS_NEWEST,
    ApiVersions,
    AwaitTopic,
    CreateTopic,
    DeleteTopic,
    DeleteTopicById,
    Eventually,
    ListOffsets,
    LongPoll,
    Metadata,
    OffsetCommit,
    OffsetFetch,
    On,
    OnEveryBroker,
    Pipelined,
    Placement,
    Produce,
    RawBytes,
    Script,
    Step,
    WithUnknownTags,
)
from conformance.sequential.symbols import ScriptSymbols
from fixtures.clients.messages import ApiKey, request_schema
from fixtures.clients.raw import (
    ConnectionClosed,
    MalformedResponse,
    RawClient,
    ResponseTimeout,
)
from fixtures.targets.target import Node, Target

READY_TIMEOUT_S: Final = 15.0
"""For a topic to have a leader, a group to have a coordinator, a broker to accept again."""
EFFECT_TIMEOUT_S: Final = 10.0
"""For what a script awaits. Once in a script: what follows an effect that never came is asked but once."""
CLOSE_TIMEOUT_S: Final = 2.0
"""For a broker to close a connection with malformed bytes."""
NO_LEADER: Final = "no_leader"
"""In the answer to a CreateTopic: a partition had no leader for so long."""
_RETRY_DELAY_S: Final = 0.02

_PARTITION_STEPS: Final = frozenset(
    {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DELETE_RECORDS}
)
_LOADING: Final = "COORDINATOR_LOAD_IN_PROGRESS"
_NOT_READY: Final = frozenset({_LOADING, "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"})


class NotReady(Exception):  # noqa: N818
    """A group got no coordinator in time."""


class Session:
    """One target and its connections, over any number of scripts. A context manager.

    :param unique: makes the names of this session's topics unlike those of any other.
    """

    def __init__(self, target: Target, unique: str) -> None:
        self._connections = Connections(target)
        self._unique = unique
        self._scripts_run = 0

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connections.close()

    def run(self, script: Script) -> tuple[Answer, ...]:
        """Send the steps in order; one answer for each. Raises `TargetDown`, `NotReady`, `UnsupportedApi`."""
        self._scripts_run += 1
        run = _ScriptRun(self._connections, f"{self._unique}-{self._scripts_run}")
        try:
            return tuple(run.step(step, due) for step, due in zip(script.steps, expected(script), strict=True))
        finally:
            run.delete_topics()


class _ScriptRun:
    """One run of one script: where its requests go, and what came of them."""

    def __init__(self, connections: Connections, unique: str) -> None:
        self._connections = connections
        self._transport = connections.transport
        self._symbols = ScriptSymbols(unique, connections.nodes)
        self._leaders: dict[tuple[str, int], int] = {}
        self._coordinators: dict[str, int] = {}
        self._created: set[str] = set()
        self._patience_s = EFFECT_TIMEOUT_S

    # --- steps

    def step(self, step: Step, due: Expectation) -> Answer:
        try:
            return self._answer(step, due)
        except ConnectionClosed as error:
            if not self._connections.live(READY_TIMEOUT_S):
                raise TargetDown(str(error)) from error
            return CLOSED
        except ResponseTimeout:
            self._connections.close()
            return SILENT
        except MalformedResponse as error:
            self._connections.close()
            return malformed(error)

    def _answer(self, step: Step, due: Expectation) -> Answer:
        match step:
            case On():
                return self._answer_of_broker(step)
            case OnEveryBroker():
                return self._answer_of_every_broker(step)
            case Eventually():
                return self._last_answer(lambda: self._answer(step.step, due), due)
            case AwaitTopic():
                return self._await_topic(step, due)
            case WithUnknownTags():
                return self._with_unknown_tags(step.step)
            case LongPoll():
                return self._long_poll(step)
            case Placement():
                return admin_answers.placement(self._describe(step.topic), len(self._connections.nodes))
            case _:
                return self._answer_of_request(step)

    def _answer_of_broker(self, step: On) -> Answer:
        """A certain broker's; one that only says that it still loads is asked again."""
        still_loads = Satisfies("not loading", _LOADING.__ne__)
        answer = self._last_answer(lambda: self._request(step.step, step.broker), {"error": still_loads})
        if isinstance(step.step, CreateTopic) and answer.get("error") == "NONE":
            self._created.add(step.step.topic)
        return answer

    def _answer_of_every_broker(self, step: OnEveryBroker) -> Answer:
        self._destination(step.step)  # which waits for a coordinator that loads
        places = range(1, len(self._connections.nodes) + 1)
        errors = [self._answer_of_broker(On(place, step.step)).get("error") for place in places]
        return {"served_by": errors.count("NONE"), "refusals": tuple(sorted({*errors} - {"NONE"}, key=str))}

    def _answer_of_request(self, step: Step) -> Answer:
        match step:
            case RawBytes():
                return self._send_bytes(step)
            case ApiVersions():
                return self._api_versions(step)
            case Pipelined():
                return self._pipeline(step)
            case Produce(acks=0):
                return self._produce_without_answer(step)
        answer = self._request_when_ready(step)
        if answer.get("error") != "NONE":
            return answer
        if isinstance(step, CreateTopic) and not step.validate_only and not self._wait_for_leaders(step):
            return {**answer, NO_LEADER: f"for {READY_TIMEOUT_S:g} s"}
        if isinstance(step, DeleteTopic):
            self._wait_until_forgotten(step.topic)
        if isinstance(step, DeleteTopicById) and (name := self._symbols.topic_name(step.topic_id)):
            self._wait_until_forgotten(name)
        return answer

    def _request(self, step: Step, broker: int | None = None) -> Answer:
        node_id = self._destination(step) if broker is None else self._symbols.broker(broker)
        client = self._connections.client(node_id)
        return normalise(step, client.request(self._message(step, client)), self._symbols)

    def _request_when_ready(self, step: Step) -> Answer:
        """Again, as any client does, while a coordinator says that it still loads; its last word in the end."""
        deadline = self._transport.monotonic() + READY_TIMEOUT_S
        while (answer := self._request(step)).get("error") in _NOT_READY and self._transport.monotonic() < deadline:
            self._transport.sleep(_RETRY_DELAY_S)
        return answer

    def _message(self, step: Step, client: RawClient) -> Any:
        key = requests.api_key(step)
        version = version_for(client, key, getattr(step, "version", None))
        return requests.request(step, request_schema(key, version), self._symbols)

    def _destination(self, step: Step) -> int | None:
        if isinstance(step, OffsetCommit | OffsetFetch):
            return self._coordinator(step.group)
        if requests.api_key(step) in _PARTITION_STEPS:
            return self._leaders.get((getattr(step, "topic", ""), getattr(step, "partition", 0)))
        return None

    def _produce_without_answer(self, step: Produce) -> Answer:
        """acks=0: the next answer on the connection must be the one to the request after it."""
        client = self._connections.client(self._destination(step))
        client.send(self._message(step, client))
        probe = client.send(client.schema_for(ApiKey.API_VERSIONS, 0).ApiVersionsRequest())
        first, _ = client.receive_next()
        return {"answered": first != probe}

    def _with_unknown_tags(self, step: Step) -> Answer:
        client = self._connections.client(self._destination(step))
        return normalise(step, request_with_unknown_tags(client, self._message(step, client)), self._symbols)

    def _long_poll(self, step: LongPoll) -> Answer:
        """The fetch waits at the leader while the records come in on another connection."""
        leader = self._destination(step.fetch)
        client = self._connections.client(leader)
        fetch = client.send(self._message(step.fetch, client))
        with self._connections.fresh_client(leader) as beside:
            for produce in step.produces:
                beside.request(self._message(produce, beside))
        return normalise(step.fetch, client.receive(fetch), self._symbols)

    def _pipeline(self, step: Pipelined) -> Answer:
        client = self._connections.client(self._destination(step.steps[0]))
        sent = {client.send(self._message(inner, client)): inner for inner in step.steps}
        received = [client.receive_next() for _ in sent]
        answers = [normalise(sent[correlation_id], response, self._symbols) for correlation_id, response in received]
        return {"in_order": [id_ for id_, _ in received] == list(sent), "answers": tuple(answers)}

    def _api_versions(self, step: ApiVersions) -> Answer:
        """On a connection of its own: the version may be one that closes it."""
        with self._connections.fresh_client() as client:
            if step.version >= API_VERSIONS_NEWEST:
                response = request_unknown_version(client, step.version)
            else:
                schema = client.schema_for(ApiKey.API_VERSIONS, step.version)
                names = {"client_software_name": step.software_name, "client_software_version": step.software_version}
                response = client.request(build(schema.ApiVersionsRequest, names))
        keys = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        return {
            "error": response.error_code.name.upper(),
            "api_versions_listed": ApiKey.API_VERSIONS in keys,
            "ranges_in_order": all(0 <= low <= high for low, high in keys.values()),
        }

    def _send_bytes(self, step: RawBytes) -> Answer:
        with self._connections.fresh_client() as client:
            client.send_bytes(step.data)
            closed = client.wait_closed(CLOSE_TIMEOUT_S)
        return {
            "connection": "closed" if closed else "open",
            "broker": "alive" if self._connections.live(READY_TIMEOUT_S) else "dead",
        }

    # --- waiting

    def _last_answer(self, ask: Callable[[], Answer], due: Expectation) -> Answer:
        """Ask until the answer is the one that is due, or the time is up; the last answer."""
        deadline = self._transport.monotonic() + self._patience_s
        while mismatches(due, answer := ask()):
            if self._transport.monotonic() > deadline:
                self._patience_s = 0.0
                break
            self._transport.sleep(_RETRY_DELAY_S)
        return answer

    def _await_topic(self, step: AwaitTopic, due: Expectation) -> Answer:
        """Without what is not due: where replicas are is the cluster's choice, unless the script made it."""
        answer = self._last_answer(partial(self._described_by_all, step.topic), due)
        for index, leader, *_ in answer["partitions"]:
            self._leaders[step.topic, index] = self._symbols.broker(leader)
            self._last_answer(partial(self._request, ListOffsets(topic=step.topic, partition=index)), {"error": "NONE"})
        return {name: value for name, value in answer.items() if name in due}

    def _described_by_all(self, topic: str) -> Answer:
        """The first broker's description of a topic, and whether all others give the same."""
        described = [
            admin_answers.topic_state(self._describe(topic, n), self._symbols) for n in self._connections.nodes
        ]
        return {"all_agree": all(one == described[0] for one in described), **described[0]}

    def _coordinator(self, group: str) -> int:
        """The group's coordinator, once it has loaded its partition of the offsets topic."""
        if group not in self._coordinators and not self._comes(partial(self._find_coordinator, group)):
            raise NotReady(f"no coordinator of a group for {READY_TIMEOUT_S:g} s")
        return self._coordinators[group]

    def _find_coordinator(self, group: str) -> bool:
        client = self._connections.client()
        schema = client.schema_for(ApiKey.FIND_COORDINATOR)
        keys = {"key": self._symbols.real(group), "key_type": 0, "coordinator_keys": (self._symbols.real(group),)}
        response = client.request(build(schema.FindCoordinatorRequest, keys))
        answer = response.coordinators[0] if hasattr(response, "coordinators") else response
        if answer.error_code.name.upper() in _NOT_READY:
            return False
        probe = OffsetFetch(group=group, topic="trial-unknown", version=7)
        node = self._connections.client(answer.node_id)
        loaded = normalise(probe, node.request(self._message(probe, node)), self._symbols)
        self._coordinators[group] = int(answer.node_id)
        return loaded.get("error") not in _NOT_READY

    def _wait_for_leaders(self, step: CreateTopic) -> bool:
        """Until every broker knows each partition's leader, and that answers as one; false if it takes too long."""
        self._created.add(step.topic)
        count = len(step.assignments) or step.partitions
        return all(self._comes(partial(self._leader, step.topic, partition)) for partition in range(max(count, 1)))

    def _leader(self, topic: str, partition: int) -> bool:
        """Whether every broker knows the partition's leader, and that serves.

        Brokers learn of a topic one by one; a coordinator that has not yet would answer for one that does not exist.
        """
        leaders = {self._leader_known_to(node, topic, partition) for node in self._connections.nodes}
        if len(leaders) != 1 or None in leaders:
            return False
        self._leaders[topic, partition] = next(leader for leader in leaders if leader is not None)
        return self._request(ListOffsets(topic=topic, partition=partition)).get("error") == "NONE"

    def _leader_known_to(self, node: Node, topic: str, partition: int) -> int | None:
        for described in self._describe(topic, node):
            self._symbols.saw_topic_id(topic, getattr(described, "topic_id", None))
            for found in described.partitions:
                if found.partition_index == partition and found.leader_id >= 0:
                    return int(found.leader_id)
        return None

    def _describe(self, topic: str, node: Node | None = None) -> Any:
        """The topics in one broker's raw answer to a Metadata about one; the first broker's if none is named."""
        client = self._connections.client(node.id if node else None)
        message = requests.request(Metadata((topic,)), client.schema_for(ApiKey.METADATA), self._symbols)
        return client.request(message).topics

    def _wait_until_forgotten(self, topic: str) -> None:
        """Until no broker knows the topic and no leader serves it, or too long: the next step finds what is left."""
        self._created.discard(topic)
        self._symbols.forget_topic(topic)
        self._comes(partial(self._is_forgotten, topic))

    def _is_forgotten(self, topic: str) -> bool:
        """A leader may serve for a moment longer than its broker's metadata knows the topic."""
        if any(found.error_code == 0 for node in self._connections.nodes for found in self._describe(topic, node)):
            return False
        partitions = [partition for name, partition in self._leaders if name == topic]
        answers = [self._request(ListOffsets(topic=topic, partition=partition)) for partition in partitions]
        return all(answer.get("error") != "NONE" for answer in answers)

    def delete_topics(self) -> None:
        """Leave the target as small as it was. Never raises: the script's answers are in."""
        for topic in tuple(self._created):
            with suppress(ConnectionClosed, ResponseTimeout, MalformedResponse):
                self._request(DeleteTopic(topic))

    def _comes(self, condition: Callable[[], bool]) -> bool:
        """Whether the condition comes true in time."""
        deadline = self._transport.monotonic() + READY_TIMEOUT_S
        while not condition():
            if self._transport.monotonic() > deadline:
                return False
            self._transport.sleep(_RETRY_DELAY_S)
        return True
