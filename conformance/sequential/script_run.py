"""Execution of the steps of one script on one target.

Rules:
- Each run of a script has its own topics, groups and producers, so that no script sees another's.
- The run waits for the effects that the script awaits (`Eventually`, `AwaitTopic`), and for what a client would wait
  for (`Routing`).
- If a broker closes a connection or does not respond, the run opens a new connection to every broker. If a broker
  does not respond there either, it is down, paused or hangs, and `TargetDown` is raised.
- `RawBytes`, `BrokenRequest`, `ApiVersions`, `AsClient` and the Produce requests of a `LongPoll` use a separate
  connection.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from conformance.sequential import admin_responses, timeouts
from conformance.sequential.connections import Connections, TargetDown
from conformance.sequential.evaluations import Evaluated, Evaluations
from conformance.sequential.expectation import Expectation, Satisfies, mismatches
from conformance.sequential.frames import request_unknown_version, request_with_unknown_tags
from conformance.sequential.layout import build
from conformance.sequential.real_values import Comparison
from conformance.sequential.response import CLOSED, NOT_READY, SILENT, Response, malformed
from conformance.sequential.responses import normalise
from conformance.sequential.routing import LOADING, Routing
from conformance.sequential.steps import (
    API_VERSIONS_NEWEST,
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
    Kill,
    ListOffsets,
    LongPoll,
    Merged,
    On,
    OnEveryBroker,
    Pipelined,
    Produce,
    RawBytes,
    Restart,
    SessionFetch,
    Step,
    WithUnknownTags,
)
from conformance.sequential.symbols import ScriptSymbols
from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import (
    ConnectionClosed,
    MalformedResponse,
    RawClient,
    RawClientError,
    ResponseTimeout,
    UnsupportedApi,
)

MEMORY_GROWTH_MAX: Final = 1 << 30
"""Limit for the growth of a broker's resident memory by requests that are together smaller than a megabyte."""
_REQUEST_BYTES: Final = 50_000
"""Size of requests that every broker must accept."""
_REQUEST_MAX: Final = "socket.request.max.bytes"
_SHOWN_BYTES_MAX: Final = 40


class ScriptRun:
    """One run of one script.

    :param symbols: the values of the script's symbols in this run.
    :param checks_logs_from_s: time from which on a broker that was started with the session checks its logs.
    """

    def __init__(self, connections: Connections, symbols: ScriptSymbols, checks_logs_from_s: float) -> None:
        self._connections = connections
        connections.begin_script()
        self._checks_logs_from_s = checks_logs_from_s
        self._transport = connections.transport
        self._symbols = symbols
        self._routing = Routing(connections, self._symbols)
        self._evaluations = Evaluations(connections, self._symbols, self._routing, self._send)
        self._effect_timeout_s = timeouts.EFFECT_TIMEOUT_S
        self._killed: list[int] = []
        """Ids of the brokers that are down since a `Kill`."""
        self.steps_begun = 0

    @property
    def topics(self) -> Sequence[str]:
        """The names on the wire of the topics that may exist."""
        return self._routing.topics

    def finish(self) -> bool:
        """Restart the brokers that are down, and delete the topics. Returns whether the target responded; never raises.

        Brokers are down only if the script ended before their `Restart`.
        """
        for broker in self._killed:
            with suppress(TargetDown):
                self._connections.restart(broker)
        self._killed.clear()
        return self._routing.delete_topics()

    # --- steps

    def step(self, step: Step, expectation: Expectation) -> Response:
        """Execute a step and return its response. Raises `TargetDown`, `NotReady`, `UnsupportedApi`."""
        self.steps_begun += 1
        try:
            return self._execute(step, expectation)
        except ConnectionClosed as error:
            if not self._connections.are_live(timeouts.READY_TIMEOUT_S):
                raise TargetDown(str(error)) from error
            self._require_request_size(self._connections.last_request_bytes)
            return CLOSED
        except ResponseTimeout as error:
            self._connections.response_missed()
            if not self._connections.are_live(timeouts.READY_TIMEOUT_S):
                raise TargetDown(f"{error}, nor on a new connection: the broker hangs or is paused") from error
            return SILENT
        except MalformedResponse as error:
            self._connections.close()
            return malformed(error)

    def _require_request_size(self, size: int) -> None:
        """Raise `UnsupportedApi` if a request was larger than the limit above which a broker closes the connection."""
        if size <= _REQUEST_BYTES:
            return
        limit = self._connections.described((_REQUEST_MAX,)).get(_REQUEST_MAX) or ""
        if limit.isdecimal() and size > int(limit):
            raise UnsupportedApi(f"{_REQUEST_MAX} is {limit}, and a script sends a request of {size} bytes")

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
                return self._poll_until(
                    lambda: self._execute(step.step, expectation), expectation, step.awaited, from_s
                )
            case AwaitTopic():
                return self._await_topic(step, expectation)
            case Kill() | Restart():
                return self._kill_or_restart(step)
            case WithUnknownTags():
                return self._with_unknown_tags(step.step)
            case LongPoll():
                return self._long_poll(step)
        if isinstance(step, Evaluated):
            return self._evaluations.evaluate(step, self._effect_timeout_s)
        return self._send(step)

    def _send_to_broker(self, step: On) -> Response:
        """Send a request to one broker; repeat it while the coordinator on that broker is loading."""
        loaded = Satisfies("not loading", LOADING.__ne__)
        return self._poll_until(lambda: self._routing.request(step.step, step.broker), {"error": loaded})

    def _send_as_client(self, step: AsClient) -> Response:
        with self._connections.fresh_client(
            self._routing.destination(step.step), self._symbols.real(step.client)
        ) as client:
            sent_s = self._transport.monotonic()
            response = client.request(self._routing.message(step.step, client))
            muted = self._muted(client, response.throttle_time, sent_s)
        throttled = {"throttled": response.throttle_time > timedelta(0), "muted": muted}
        return {**normalise(step.step, response, self._symbols), **throttled}

    def _muted(self, client: RawClient, throttle_time: timedelta, sent_s: float) -> Comparison:
        """Compare the throttle time of a response with the time until the next response on the connection (KIP-219).

        The time is measured from the request on, because the throttle time begins before its response arrives. If no
        response arrives before the timeout, the connection has been muted for long enough.

        :param sent_s: time before the request was sent.
        """
        with suppress(ResponseTimeout):
            if throttle_time > timedelta(0):
                client.request(client.schema_for(ApiKey.API_VERSIONS, 0).ApiVersionsRequest())
                waited = timedelta(seconds=self._transport.monotonic() - sent_s)
                if waited < throttle_time / 2:
                    times = (f"{one // timedelta(milliseconds=1)} ms" for one in (throttle_time, waited))
                    return Comparison("too short", "{} of throttle time, next response after {}".format(*times))
        return Comparison("for the throttle time")

    def _send_to_every_broker(self, step: OnEveryBroker) -> Response:
        self._routing.destination(step.step)  # waits for a coordinator that is loading
        places = range(1, len(self._connections.nodes) + 1)
        errors = [self._send_to_broker(On(place, step.step)).get("error") for place in places]
        return {"served_by": errors.count("NONE"), "other_errors": tuple(sorted({*errors} - {"NONE"}, key=str))}

    def _send(self, step: Step) -> Response:
        match step:
            case RawBytes():
                return self._send_bytes(step)
            case BrokenRequest():
                return self._send_broken(step)
            case ApiVersions():
                return self._api_versions(step)
            case Pipelined():
                return self._pipeline(step)
            case SessionFetch():
                return self._fetch_in_session(step)
            case Merged():
                return self._merge(step)
            case Produce(acks=0):
                return self._produce_without_response(step)
        return self._await_effect(step, self._routing.request_when_ready(step))

    def _merge(self, step: Merged) -> Response:
        """Send merged requests. If a new topic cannot be used, the whole response has the reason."""
        returned = zip(step.steps, self._routing.request_merged(step.steps), strict=True)
        responses = tuple(self._await_effect(*each) for each in returned)
        reasons = [response[NOT_READY] for response in responses if NOT_READY in response]
        return {"responses": responses, **({NOT_READY: reasons[0]} if reasons else {})}

    def _await_effect(self, step: Step, response: Response) -> Response:
        """Wait for the leaders of a topic that the step has created, or for the end of one that it has deleted."""
        if response.get("error") != "NONE":
            return response
        if isinstance(step, CreateTopic) and not step.validate_only:
            count = len(step.assignments) or max(step.partitions, 1)
            if reason := self._routing.await_leaders(step.topic, count):
                return {**response, NOT_READY: reason}
        if isinstance(step, DeleteTopic):
            self._routing.await_deleted(step.topic)
        if isinstance(step, DeleteTopicById) and (name := self._symbols.topic_name(step.topic_id)):
            self._routing.await_deleted(name)
        return response

    def _fetch_in_session(self, step: SessionFetch) -> Response:
        response = self._routing.request(step)
        if step.epoch == 0 and response.get("error") == "NONE" and not response["has_session"]:
            raise UnsupportedApi("the broker does not offer fetch sessions")
        return response

    def _produce_without_response(self, step: Produce) -> Response:
        """Produce with acks=0: the next response on the connection must be that of the next request."""
        client = self._connections.client(self._routing.destination(step))
        client.send(self._routing.message(step, client))
        probe = client.send(client.schema_for(ApiKey.API_VERSIONS, 0).ApiVersionsRequest())
        first, _ = client.receive_next()
        return {"has_response": first != probe}

    def _with_unknown_tags(self, step: Step) -> Response:
        client = self._connections.client(self._routing.destination(step))
        return normalise(step, request_with_unknown_tags(client, self._routing.message(step, client)), self._symbols)

    def _long_poll(self, step: LongPoll) -> Response:
        """Fetch from the leader, which waits while the records are produced on another connection."""
        leader = self._routing.destination(step.fetch)
        client = self._connections.client(leader)
        fetch = client.send(self._routing.message(step.fetch, client))
        with self._connections.fresh_client(leader) as beside:
            for produce in step.produces:
                beside.request(self._routing.message(produce, beside))
        return normalise(step.fetch, client.receive(fetch), self._symbols)

    def _pipeline(self, step: Pipelined) -> Response:
        client = self._connections.client(self._routing.destination(step.steps[0]))
        sent = {client.send(self._routing.message(inner, client)): inner for inner in step.steps}
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
            "listed_once": len(keys) == len(response.api_keys),
            "ranges_in_order": all(0 <= low <= high for low, high in keys.values()),
        }

    def _send_bytes(self, step: RawBytes) -> Response:
        with self._connections.fresh_client() as client:
            client.send_bytes(step.data)
            closed = client.wait_closed(timeouts.CLOSE_TIMEOUT_S)
        if closed:
            self._transport.sleep(timeouts.CRASH_S)
        if not self._connections.are_live(timeouts.READY_TIMEOUT_S):
            raise TargetDown(f"no response on a new connection after {step.data[:_SHOWN_BYTES_MAX]!r}")
        return {"connection": "closed" if closed else "open", "broker": "alive"}

    def _send_broken(self, step: BrokenRequest) -> Response:
        """Send a frame while another connection is open. The broker must then serve that connection and new ones."""
        self._serves_others()
        self._connections.memory_growth_bytes()
        with self._connections.fresh_client() as client, suppress(RawClientError):
            client.send_bytes(step.data)
            client.wait_closed(timeouts.BROKEN_TIMEOUT_S)
        if not self._connections.are_live(timeouts.READY_TIMEOUT_S):
            raise TargetDown(f"no response on a new connection after {step.title}")
        others = "served" if self._serves_others() else "closed or silent"
        grown = self._connections.memory_growth_bytes()
        memory = "bounded" if grown <= MEMORY_GROWTH_MAX else f"{grown >> 20} MiB more than at first"
        return {"broker": "alive", "other_connections": others, "memory": memory}

    def _kill_or_restart(self, step: Kill | Restart) -> Response:
        """Kill a broker, or start it again and wait until every known partition has a leader that serves."""
        broker = self._symbols.broker(step.broker)
        if isinstance(step, Kill):
            self._killed.append(broker)
            self._connections.kill(broker)
            return {}
        self._connections.restart(broker)
        self._killed.remove(broker)
        if not self._connections.are_live(timeouts.READY_TIMEOUT_S):
            raise TargetDown("no response after a broker was killed and started again")
        return {"serves": self._routing.await_restarted()}

    def _serves_others(self) -> bool:
        """Whether the connection of another client is served. After an error, connections are opened again later."""
        client = self._connections.client()
        try:
            client.request(client.schema_for(ApiKey.API_VERSIONS, 0).ApiVersionsRequest())
        except RawClientError:
            self._connections.close()
            return False
        return True

    # --- waiting

    def _poll_until(
        self,
        send: Callable[[], Response],
        expectation: Expectation,
        awaited: frozenset[str] | None = None,
        from_s: float = 0.0,
    ) -> Response:
        """Send until the response is as expected, or until the timeout; return the last response.

        :param awaited: names of the fields that must be as expected; None for all.
        :param from_s: earliest time at which the timeout begins.
        """
        deadline = max(self._transport.monotonic(), from_s) + self._effect_timeout_s
        while mismatches(expectation, response := send(), awaited):
            if self._transport.monotonic() > deadline:
                self._effect_timeout_s = 0.0
                break
            self._transport.sleep(timeouts.RETRY_DELAY_S)
        return response

    def _await_topic(self, step: AwaitTopic, expectation: Expectation) -> Response:
        """Wait until all brokers describe the topic as expected and its leaders serve, or until the timeout.

        Return only the expected fields, because the cluster may choose the replicas that the script has not assigned.
        """
        described = self._poll_until(partial(self._described_by_all, step.topic), expectation)
        for index, leader, *_ in described["partitions"]:
            self._routing.set_leader(step.topic, index, self._symbols.broker(leader))
            self._poll_until(
                partial(self._routing.request, ListOffsets(topic=step.topic, partition=index)), {"error": "NONE"}
            )
        return {name: value for name, value in described.items() if name in expectation}

    def _described_by_all(self, topic: str) -> Response:
        """Return the first broker's description of a topic, and whether all others return the same."""
        described = [
            admin_responses.topic_state(self._routing.describe(topic, n), self._symbols)
            for n in self._connections.nodes
        ]
        return {"all_agree": all(one == described[0] for one in described), **described[0]}
