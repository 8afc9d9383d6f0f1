"""Execution of scripts on one target: routing of requests, and waiting for their effects.

Rules:
- Each run of a script has its own topics, groups and producers, so that no script sees another's.
- Requests are routed as Kafka's clients route them: to the partition's leader, to the group's coordinator, otherwise
  to the first broker; or to the broker that the script names. A request is sent once, except that it is repeated while
  the coordinator or controller is not ready. The session waits only for what a client would wait for before a script's
  first request (the leader of a new topic, a coordinator that is loading), and for the effects that the script awaits
  (`Eventually`, `AwaitTopic`).
- If a broker closes a connection or does not respond, the session opens a new connection to every broker. If one of
  them does not respond either, it is down, paused or hangs, and `TargetDown` is raised.
- Bytes that are not a request, and requests that are sent while another one is pending, use a separate connection.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

from conformance.sequential import admin_responses, requests
from conformance.sequential.connections import Connections, TargetDown, version_for
from conformance.sequential.expectation import Expectation, Satisfies, mismatches
from conformance.sequential.frames import request_unknown_version, request_with_unknown_tags
from conformance.sequential.layout import build
from conformance.sequential.model import expected
from conformance.sequential.model.groups import METADATA_LENGTH_MAX
from conformance.sequential.pinned import pinned, with_unlimited_retention, without_automatic_creation
from conformance.sequential.response import CLOSED, SILENT, Response, malformed
from conformance.sequential.responses import normalise
from conformance.sequential.steps import (
    API_VERSIONS_NEWEST,
    TOPIC,
    AfterCleanup,
    ApiVersions,
    AsClient,
    AwaitTopic,
    BrokenRequest,
    Cleanup,
    CreateTopic,
    DeleteTopic,
    DeleteTopicById,
    Eventually,
    KillAndRestart,
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
    RawRequest,
    Script,
    Step,
    WithUnknownTags,
)
from conformance.sequential.symbols import ScriptSymbols
from fixtures.clients.broker_defaults import broker_settings, settings_to_pin
from fixtures.clients.messages import ApiKey, api_name, request_schema
from fixtures.clients.raw import (
    ConnectionClosed,
    MalformedResponse,
    RawClient,
    RawClientError,
    ResponseTimeout,
    UnsupportedApi,
)
from fixtures.targets.target import ExistingCluster, Node, Target

READY_TIMEOUT_S: Final = 15.0
"""Timeout for a topic to have a leader, a group to have a coordinator, a broker to accept connections again."""
EFFECT_TIMEOUT_S: Final = 10.0
"""Timeout for an effect that a script awaits. After the first timeout in a script, each later effect is read once."""
CLEANUP_PERIOD_MAX_MS: Final = 2_000
"""Maximum period of a cleanup that a script awaits."""
_FIRST_CHECK: Final = "log.initial.task.delay.ms"
"""The time from the start of a broker to its first check of the logs."""
FIRST_CHECK_MS: Final = 30_000
"""The time before the first check in Kafka before 3.8, which does not have this setting."""
CLOSE_TIMEOUT_S: Final = 2.0
"""Timeout for a broker to close a connection after malformed bytes."""
_CRASH_S: Final = 0.2
"""Time from the close of a connection to the end of a process that crashes: it may still print a stack trace."""
BROKEN_TIMEOUT_S: Final = 0.02
"""Time to wait for the end of the connection after a broken request."""
MEMORY_GROWTH_MAX: Final = 1 << 30
"""Limit for the growth of a broker's resident memory by requests that are together smaller than a megabyte."""
NO_LEADER: Final = "no_leader"
"""Field of the response to a CreateTopic: the time for which a partition had no leader."""
_RETRY_DELAY_S: Final = 0.02
_Condition = TypeVar("_Condition")
_METADATA_MAX: Final = "offset.metadata.max.bytes"
_LONG_METADATA: Final = 10
"""Metadata from this length on may be longer than a broker permits."""
_CLIENT_SOFTWARE: Final = {"client_software_name": "kafkatrial", "client_software_version": "1"}
_SHOWN_BYTES_MAX: Final = 40

_PARTITION_STEPS: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DELETE_RECORDS,
        ApiKey.DESCRIBE_PRODUCERS,
    }
)
_GROUP_REQUESTS: Final = frozenset(
    {
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
    }
)
_TRANSACTION_REQUESTS: Final = frozenset(
    {ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.DESCRIBE_TRANSACTIONS}
)
_FEATURES: Final = dict.fromkeys((ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE), "group.version")
"""The feature (KIP-584) without which a broker rejects an API that it advertises."""
_CREATES: Final = "auto.create.topics.enable"
_LOADING: Final = "COORDINATOR_LOAD_IN_PROGRESS"
_NOT_CONTROLLER: Final = "NOT_CONTROLLER"
_NOT_READY: Final = frozenset({_LOADING, "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", _NOT_CONTROLLER})


class NotReady(Exception):  # noqa: N818
    """Timeout of the wait for the coordinator of a group or transactional id."""


class Session:
    """One target and its connections, for any number of scripts. A context manager.

    :param unique: suffix that makes the names of this session's topics unique.
    """

    def __init__(self, target: Target, unique: str) -> None:
        self._target = target
        self._connections = Connections(target)
        self._unique = unique
        self._scripts_run = 0
        self._pinned_settings: Mapping[str, str] | None = None
        self._creates_topics = False
        self._opened_s = self._connections.transport.monotonic()
        self._checks_logs_from_s = 0.0
        """Time from which on a broker that was started with this session checks its logs for retention."""
        self._unfinished: list[_ScriptRun] = []
        """Runs whose topics could not be deleted, because the target did not respond."""

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Delete the topics that are left. Stop at the first script whose topics cannot be deleted now either.

        A cluster that continues after the run can be reached even if the target has stopped.
        """
        self._connections.close()
        all(run.delete_topics() for run in self._unfinished)
        self._connections.close()
        if isinstance(self._target, ExistingCluster):
            self._target.delete_topics([topic for run in self._unfinished for topic in run.topics])

    def reconnect(self) -> None:
        """Close the connections: the target was started again, perhaps on other ports."""
        self._connections.close()

    def pinned(self, script: Script) -> Script:
        """Return the script as this session sends it: with Kafka's defaults set where the target has others."""
        if self._pinned_settings is None:
            with self._connections.fresh_client() as client:
                node = self._connections.nodes[0].id
                self._pinned_settings = settings_to_pin(client, node)
                self._creates_topics = broker_settings(client, node, (_CREATES,)).get(_CREATES) == "true"
        script = without_automatic_creation(script) if self._creates_topics else script
        return pinned(with_unlimited_retention(script), self._pinned_settings)

    def _require_metadata_limit(self, script: Script) -> None:
        """Raise `UnsupportedApi` if the script commits long metadata, and the limit is not Kafka's default."""
        commits = (step for step in script.steps if isinstance(step, OffsetCommit))
        if all(len(step.metadata) < _LONG_METADATA for step in commits):
            return
        node, limit = self._connections.nodes[0].id, str(METADATA_LENGTH_MAX)
        found = broker_settings(self._connections.client(), node, (_METADATA_MAX,)).get(_METADATA_MAX) or limit
        if found != limit:
            raise UnsupportedApi(f"{_METADATA_MAX} is {found}, and the scripts are written for {limit}")

    def _require_frequent_cleanup(self, script: Script) -> None:
        """Raise `UnsupportedApi` if the period of a cleanup that the script awaits is too long, or not described.

        Determine from when on the broker checks its logs for retention.
        """
        for name in sorted({str(step.by) for step in script.steps if isinstance(step, AfterCleanup)}):
            node = self._connections.nodes[0].id
            settings = broker_settings(self._connections.client(), node, (name, _FIRST_CHECK))
            found, described_ms = settings.get(name), settings.get(_FIRST_CHECK) or ""
            first_check_ms = int(described_ms) if described_ms.isdecimal() else FIRST_CHECK_MS
            self._checks_logs_from_s = self._opened_s + first_check_ms / 1000
            if found is None or not found.isdecimal():
                raise UnsupportedApi(f"the broker does not offer this cleanup: it does not describe {name}")
            if int(found) > CLEANUP_PERIOD_MAX_MS:
                raise UnsupportedApi(f"{name} is {found}, and a script awaits at most {CLEANUP_PERIOD_MAX_MS}")

    def run(self, script: Script) -> tuple[Response, ...]:
        """Send the steps in order; return one response for each. Raises `TargetDown`, `NotReady`, `UnsupportedApi`."""
        script = self.pinned(script)
        self._require_metadata_limit(script)
        self._require_frequent_cleanup(script)
        self._scripts_run += 1
        run = _ScriptRun(self._connections, f"{self._unique}-{self._scripts_run}", self._checks_logs_from_s)
        try:
            steps = zip(script.steps, expected(script), strict=True)
            return tuple(run.step(step, expectation) for step, expectation in steps)
        except TargetDown as error:
            error.step = run.steps_begun - 1
            raise
        finally:
            if not run.delete_topics():
                self._unfinished.append(run)


def _errors(response: Response) -> frozenset[object]:
    return frozenset((response.get("error"), *response.get("errors", ())))


class _ScriptRun:
    """One run of one script: known leaders and coordinators, and created topics."""

    def __init__(self, connections: Connections, unique: str, checks_logs_from_s: float) -> None:
        self._connections = connections
        self._checks_logs_from_s = checks_logs_from_s
        self._transport = connections.transport
        self._symbols = ScriptSymbols(unique, connections.nodes)
        self._leaders: dict[tuple[str, int], int] = {}
        self._coordinators: dict[str, int] = {}
        self._rejecting: dict[str, int] = {}
        """Brokers that FindCoordinator names and that return NOT_COORDINATOR."""
        self._created: set[str] = set()
        self._deleted: set[str] = set()
        """Topics that no broker's metadata has, though a ZooKeeper cluster may still be deleting them."""
        self._effect_timeout_s = EFFECT_TIMEOUT_S
        self.steps_begun = 0

    # --- steps

    def step(self, step: Step, expectation: Expectation) -> Response:
        self.steps_begun += 1
        try:
            return self._execute(step, expectation)
        except ConnectionClosed as error:
            if not self._connections.live(READY_TIMEOUT_S):
                raise TargetDown(str(error)) from error
            return CLOSED
        except ResponseTimeout as error:
            self._connections.close()
            if not self._connections.live(READY_TIMEOUT_S):
                raise TargetDown(f"{error}, nor on a new connection: it hangs, or is paused") from error
            return SILENT
        except MalformedResponse as error:
            self._connections.close()
            return malformed(error)

    def _execute(self, step: Step, expectation: Expectation) -> Response:
        match step:
            case On():
                return self._send_to_broker(step)
            case AsClient():
                return self._send_as_client(step)
            case OnEveryBroker():
                return self._send_to_every_broker(step)
            case Eventually():
                is_check_of_logs = isinstance(step, AfterCleanup) and step.by is Cleanup.RETENTION
                from_s = self._checks_logs_from_s if is_check_of_logs else 0.0
                return self._poll_until(lambda: self._execute(step.step, expectation), expectation, from_s)
            case AwaitTopic():
                return self._await_topic(step, expectation)
            case WithUnknownTags():
                return self._with_unknown_tags(step.step)
            case LongPoll():
                return self._long_poll(step)
            case Placement():
                return admin_responses.placement(self._describe(step.topic), len(self._connections.nodes))
            case _:
                return self._send(step)

    def _send_to_broker(self, step: On) -> Response:
        """Send a request to one broker; repeat it while the coordinator on that broker is loading."""
        loaded = Satisfies("not loading", _LOADING.__ne__)
        response = self._poll_until(lambda: self._request(step.step, step.broker), {"error": loaded})
        if isinstance(step.step, CreateTopic) and response.get("error") == "NONE":
            self._created.add(step.step.topic)
        return response

    def _send_as_client(self, step: AsClient) -> Response:
        with self._connections.fresh_client(self._destination(step.step), self._symbols.real(step.client)) as client:
            response = client.request(self._message(step.step, client))
        return {**normalise(step.step, response, self._symbols), "throttled": response.throttle_time > timedelta(0)}

    def _send_to_every_broker(self, step: OnEveryBroker) -> Response:
        self._destination(step.step)  # waits for a coordinator that is loading
        places = range(1, len(self._connections.nodes) + 1)
        errors = [self._send_to_broker(On(place, step.step)).get("error") for place in places]
        return {"served_by": errors.count("NONE"), "other_errors": tuple(sorted({*errors} - {"NONE"}, key=str))}

    def _send(self, step: Step) -> Response:
        match step:
            case RawBytes():
                return self._send_bytes(step)
            case KillAndRestart():
                return self._kill_and_restart(step)
            case BrokenRequest():
                return self._send_broken(step)
            case ApiVersions():
                return self._api_versions(step)
            case Pipelined():
                return self._pipeline(step)
            case Produce(acks=0):
                return self._produce_without_response(step)
        response = self._request_when_ready(step)
        if response.get("error") != "NONE":
            return response
        if isinstance(step, CreateTopic) and not step.validate_only and not self._wait_for_leaders(step):
            return {**response, NO_LEADER: f"for {READY_TIMEOUT_S:g} s"}
        if isinstance(step, DeleteTopic):
            self._wait_until_deleted(step.topic)
        if isinstance(step, DeleteTopicById) and (name := self._symbols.topic_name(step.topic_id)):
            self._wait_until_deleted(name)
        return response

    def _request(self, step: Step, broker: int | None = None) -> Response:
        node_id = self._destination(step) if broker is None else self._symbols.broker(broker)
        client = self._connections.client(node_id)
        message = self._message(step, client)
        if isinstance(step, CreateTopic) and not step.validate_only and self._symbols.real(step.topic) != step.topic:
            self._created.add(step.topic)  # deleted in the end, even if the response is lost
        return normalise(step, client.request(message), self._symbols)

    def _request_when_ready(self, step: Step) -> Response:
        """Send a request; repeat it while its coordinator or controller is not ready. Return the last response.

        The creation of a topic that was deleted is repeated while the topic exists.
        """
        not_ready = _NOT_READY
        if isinstance(step, CreateTopic) and step.topic in self._deleted:
            not_ready |= {"TOPIC_ALREADY_EXISTS"}
            self._deleted.discard(step.topic)
        deadline = self._transport.monotonic() + READY_TIMEOUT_S
        while not_ready & _errors(response := self._request(step)) and self._transport.monotonic() < deadline:
            if _NOT_CONTROLLER in _errors(response):
                self._connections.find_controller()
            self._transport.sleep(_RETRY_DELAY_S)
        return response

    def _message(self, step: Step, client: RawClient) -> Any:
        key = requests.api_key(step)
        version = version_for(client, key, getattr(step, "version", None))
        return requests.request(step, request_schema(key, version), self._symbols)

    def _destination(self, step: Step) -> int | None:
        key = requests.api_key(step)
        if key in _GROUP_REQUESTS | _TRANSACTION_REQUESTS:
            self._require(key)  # a coordinator of an API that is not offered may never be found
        if key in _GROUP_REQUESTS:
            return self._coordinator(getattr(step, "group", TOPIC))
        if key in _TRANSACTION_REQUESTS or (isinstance(step, RawRequest) and step.fields.get("transactional_id")):
            return self._transaction_coordinator(TOPIC)
        if key in _PARTITION_STEPS:
            return self._leaders.get((getattr(step, "topic", ""), getattr(step, "partition", 0)))
        return self._connections.controller

    def _produce_without_response(self, step: Produce) -> Response:
        """Produce with acks=0: the next response on the connection must be that of the next request."""
        client = self._connections.client(self._destination(step))
        client.send(self._message(step, client))
        probe = client.send(client.schema_for(ApiKey.API_VERSIONS, 0).ApiVersionsRequest())
        first, _ = client.receive_next()
        return {"has_response": first != probe}

    def _with_unknown_tags(self, step: Step) -> Response:
        client = self._connections.client(self._destination(step))
        return normalise(step, request_with_unknown_tags(client, self._message(step, client)), self._symbols)

    def _long_poll(self, step: LongPoll) -> Response:
        """Fetch from the leader, which waits while the records are produced on another connection."""
        leader = self._destination(step.fetch)
        client = self._connections.client(leader)
        fetch = client.send(self._message(step.fetch, client))
        with self._connections.fresh_client(leader) as beside:
            for produce in step.produces:
                beside.request(self._message(produce, beside))
        return normalise(step.fetch, client.receive(fetch), self._symbols)

    def _pipeline(self, step: Pipelined) -> Response:
        client = self._connections.client(self._destination(step.steps[0]))
        sent = {client.send(self._message(inner, client)): inner for inner in step.steps}
        received = [client.receive_next() for _ in sent]
        responses = [normalise(sent[correlation_id], response, self._symbols) for correlation_id, response in received]
        return {"in_order": [id_ for id_, _ in received] == list(sent), "responses": tuple(responses)}

    def _api_versions(self, step: ApiVersions) -> Response:
        """Send ApiVersions on a separate connection, which an unknown version may close."""
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

    def _send_bytes(self, step: RawBytes) -> Response:
        with self._connections.fresh_client() as client:
            client.send_bytes(step.data)
            closed = client.wait_closed(CLOSE_TIMEOUT_S)
        if closed:
            self._transport.sleep(_CRASH_S)
        if not self._connections.live(READY_TIMEOUT_S):
            raise TargetDown(f"no response on a new connection after {step.data[:_SHOWN_BYTES_MAX]!r}")
        return {"connection": "closed" if closed else "open", "broker": "alive"}

    def _send_broken(self, step: BrokenRequest) -> Response:
        """Send a frame while another connection is open. The broker must then serve that connection and new ones."""
        self._serves_others()
        self._connections.memory_growth_bytes()
        with self._connections.fresh_client() as client, suppress(RawClientError):
            client.send_bytes(step.data)
            client.wait_closed(BROKEN_TIMEOUT_S)
        if not self._connections.live(READY_TIMEOUT_S):
            raise TargetDown(f"no response on a new connection after {step.title}")
        others = "served" if self._serves_others() else "closed or silent"
        grown = self._connections.memory_growth_bytes()
        memory = "bounded" if grown <= MEMORY_GROWTH_MAX else f"{grown >> 20} MiB more than at first"
        return {"broker": "alive", "other_connections": others, "memory": memory}

    def _kill_and_restart(self, step: KillAndRestart) -> Response:
        """Kill a broker and start it again; wait until every known partition has a leader that serves."""
        self._connections.kill_and_restart(self._symbols.broker(step.broker))
        self._coordinators.clear()
        if not self._connections.live(READY_TIMEOUT_S):
            raise TargetDown("no response after a broker was killed and started again")
        return {"serves": all(self._wait_until(partial(self._leader, *known)) for known in [*self._leaders])}

    def _serves_others(self) -> bool:
        """Whether the connection of another client is served; one that fails is opened again later."""
        client = self._connections.client()
        try:
            client.request(client.schema_for(ApiKey.API_VERSIONS, 0).ApiVersionsRequest())
        except RawClientError:
            self._connections.close()
            return False
        return True

    # --- waiting

    def _poll_until(self, send: Callable[[], Response], expectation: Expectation, from_s: float = 0.0) -> Response:
        """Send until the response is as expected, or until the timeout; return the last response.

        :param from_s: time before which the timeout does not begin.
        """
        deadline = max(self._transport.monotonic(), from_s) + self._effect_timeout_s
        while mismatches(expectation, response := send()):
            if self._transport.monotonic() > deadline:
                self._effect_timeout_s = 0.0
                break
            self._transport.sleep(_RETRY_DELAY_S)
        return response

    def _await_topic(self, step: AwaitTopic, expectation: Expectation) -> Response:
        """Wait until all brokers describe the topic as expected and its leaders serve, or until the timeout.

        Return only the expected fields, because the cluster may choose the replicas that the script has not assigned.
        """
        described = self._poll_until(partial(self._described_by_all, step.topic), expectation)
        for index, leader, *_ in described["partitions"]:
            self._leaders[step.topic, index] = self._symbols.broker(leader)
            self._poll_until(partial(self._request, ListOffsets(topic=step.topic, partition=index)), {"error": "NONE"})
        return {name: value for name, value in described.items() if name in expectation}

    def _described_by_all(self, topic: str) -> Response:
        """Return the first broker's description of a topic, and whether all others return the same."""
        described = [
            admin_responses.topic_state(self._describe(topic, n), self._symbols) for n in self._connections.nodes
        ]
        return {"all_agree": all(one == described[0] for one in described), **described[0]}

    def _coordinator(self, group: str) -> int:
        """Return the group's coordinator after it has loaded its partition of the offsets topic.

        If the broker that FindCoordinator names returns NOT_COORDINATOR until the timeout, return that broker, so that
        its responses are judged.
        """
        if group not in self._coordinators and not self._wait_until(partial(self._find_coordinator, group)):
            if group not in self._rejecting:
                raise NotReady(f"no coordinator of a group for {READY_TIMEOUT_S:g} s")
            self._coordinators[group] = self._rejecting[group]
        return self._coordinators[group]

    def _require(self, key: ApiKey) -> None:
        """Raise `UnsupportedApi` if the target does not offer an API, or its feature is not enabled."""
        client = self._connections.client()
        client.version_for(key)
        if key not in _FEATURES:
            return
        response = client.request(build(client.schema_for(ApiKey.API_VERSIONS, 3).ApiVersionsRequest, _CLIENT_SOFTWARE))
        finalized = getattr(response, "finalized_features", ())  # absent in versions below 3
        enabled = {feature.name for feature in finalized if feature.max_version_level > 0}
        if _FEATURES[key] not in enabled:
            raise UnsupportedApi(f"the broker has not enabled {_FEATURES[key]} for {api_name(key)}")

    def _transaction_coordinator(self, transactional_id: str) -> int:
        """Return the coordinator of a transactional id; the requests themselves wait until it is loaded."""
        found = self._wait_until(partial(self._coordinator_of, transactional_id, key_type=1))
        if found is None:
            raise NotReady(f"no coordinator of a transactional id for {READY_TIMEOUT_S:g} s")
        return int(found.node_id)

    def _coordinator_of(self, name: str, key_type: int) -> Any | None:
        """Return the coordinator of a group (key type 0) or transactional id (1); null while there is none."""
        client = self._connections.client()
        schema = client.schema_for(ApiKey.FIND_COORDINATOR)
        keys = {"key": self._symbols.real(name), "key_type": key_type, "coordinator_keys": (self._symbols.real(name),)}
        response = client.request(build(schema.FindCoordinatorRequest, keys))
        found = response.coordinators[0] if hasattr(response, "coordinators") else response
        return None if found.error_code.name.upper() in _NOT_READY else found

    def _find_coordinator(self, group: str) -> bool:
        self._rejecting.pop(group, None)
        found = self._coordinator_of(group, key_type=0)
        if found is None:
            return False
        probe = OffsetFetch(group=group, topic="trial-unknown", version=7)
        node = self._connections.client(found.node_id)
        error = normalise(probe, node.request(self._message(probe, node)), self._symbols).get("error")
        if error == "NOT_COORDINATOR":
            self._rejecting[group] = int(found.node_id)
        if error in _NOT_READY:
            return False
        self._coordinators[group] = int(found.node_id)
        return True

    def _wait_for_leaders(self, step: CreateTopic) -> bool:
        """Wait until every broker knows each partition's leader, and that leader serves; return false on timeout."""
        self._created.add(step.topic)
        count = len(step.assignments) or step.partitions
        return all(self._wait_until(partial(self._leader, step.topic, partition)) for partition in range(max(count, 1)))

    def _leader(self, topic: str, partition: int) -> bool:
        """Whether every broker knows the partition's leader, and that leader serves.

        Brokers learn of a topic one after the other; until then a coordinator would report it as unknown.
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
        """Return the topics of a raw Metadata response for one topic, from the node or else from the first broker."""
        client = self._connections.client(node.id if node else None)
        message = requests.request(Metadata((topic,)), client.schema_for(ApiKey.METADATA), self._symbols)
        return client.request(message).topics

    def _wait_until_deleted(self, topic: str) -> None:
        """Wait until no broker knows the topic and no leader serves it. After a timeout, later steps show the topic."""
        self._created.discard(topic)
        self._deleted.add(topic)
        self._symbols.remove_topic(topic)
        self._wait_until(partial(self._is_deleted, topic))

    def _is_deleted(self, topic: str) -> bool:
        """Whether no broker's metadata has the topic, and no leader serves it, which may take a moment longer."""
        if any(found.error_code == 0 for node in self._connections.nodes for found in self._describe(topic, node)):
            return False
        partitions = [partition for name, partition in self._leaders if name == topic]
        responses = [self._request(ListOffsets(topic=topic, partition=partition)) for partition in partitions]
        return all(response.get("error") != "NONE" for response in responses)

    @property
    def topics(self) -> Sequence[str]:
        """The names on the wire of the topics that may exist."""
        return [self._symbols.real(topic) for topic in sorted(self._created)]

    def delete_topics(self) -> bool:
        """Delete the script's topics. Returns whether the target responded; never raises."""
        try:
            for topic in sorted(self._created):
                self._request(DeleteTopic(topic))
                self._created.discard(topic)
        except UnsupportedApi:
            return True
        except RawClientError:
            self._connections.close()
            return False
        return True

    def _wait_until(self, condition: Callable[[], _Condition]) -> _Condition:
        """Wait until the condition returns a true value, and return it; on timeout, return the last (false) value."""
        deadline = self._transport.monotonic() + READY_TIMEOUT_S
        while not (found := condition()) and self._transport.monotonic() <= deadline:
            self._transport.sleep(_RETRY_DELAY_S)
        return found
