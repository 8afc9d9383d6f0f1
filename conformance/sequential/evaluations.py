"""Steps whose response is an evaluation of several responses of the brokers.

A response has the differences that were found: between descriptions and effects (`described_defaults`,
`described_settings`), between equal requests (`repeated_responses`), between lists and what exists (`config_resources`,
`group_responses`), between coordinators and the brokers that serve their groups (`coordinators`), and between the
replicas of partitions.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from conformance.sequential import (
    admin_responses,
    config_resources,
    described_defaults,
    described_settings,
    session_timeouts,
)
from conformance.sequential.connections import Connections, shared_versions
from conformance.sequential.group_responses import listed_groups, to_describe
from conformance.sequential.layout import build
from conformance.sequential.repeated_responses import Returned, decreased, differing
from conformance.sequential.response import NOT_READY, Response
from conformance.sequential.responses import normalise
from conformance.sequential.routing import Routing
from conformance.sequential.steps import (
    AwaitSessionTimeout,
    CreateTopic,
    FindCoordinators,
    ListConfigResources,
    ListedGroups,
    ListGroups,
    ListOffsets,
    Placement,
    RawRequest,
    Repeated,
    Step,
    UseDefaults,
    UseSettings,
)
from conformance.sequential.symbols import ScriptSymbols
from fixtures.clients.broker_defaults import log_directories, topic_settings
from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import RawClient, UnsupportedApi

Evaluated: TypeAlias = (
    UseDefaults
    | UseSettings
    | ListConfigResources
    | Placement
    | Repeated
    | ListedGroups
    | FindCoordinators
    | AwaitSessionTimeout
)

_REPETITIONS: Final = 3
"""How often a `Repeated` request is sent to each broker in each version."""


class Evaluations:
    """Evaluation of steps in one run of a script.

    :param send: sends the request of a step, and waits for its effect as a client does.
    """

    def __init__(
        self, connections: Connections, symbols: ScriptSymbols, routing: Routing, send: Callable[[Step], Response]
    ) -> None:
        self._connections = connections
        self._transport = connections.transport
        self._symbols = symbols
        self._routing = routing
        self._send = send

    def evaluate(self, step: Evaluated, effect_timeout_s: float) -> Response:
        """Return the evaluation of a step.

        :param effect_timeout_s: how long to wait for effects that a broker has without a request, such as the
            automatic creation of a topic.
        """
        match step:
            case UseDefaults():
                return self._use_defaults(step)
            case UseSettings():
                return self._use_settings(step, effect_timeout_s)
            case Repeated():
                return self._repeat(step)
            case ListConfigResources():
                metrics = [self._symbols.real(name) for name in step.metrics]
                clients = (self._connections.client(node.id) for node in self._connections.nodes)
                found = (text for client in clients for text in config_resources.differences(client, metrics))
                return {"differences": tuple(dict.fromkeys(found))}
            case ListedGroups():
                return self._describe_listed_groups(step)
            case FindCoordinators():
                return self._routing.coordinators(step.groups)
            case AwaitSessionTimeout():
                timeout_s = self._symbols.short_session_timeout_ms / 1000
                return session_timeouts.await_end(step, timeout_s, self._send, self._transport)
            case Placement():
                return admin_responses.placement(self._routing.describe(step.topic), len(self._connections.nodes))

    def _use_defaults(self, step: UseDefaults) -> Response:
        """Compare the defaults that the leader of a new topic describes with those that it applies to the topic."""
        created = self._send(CreateTopic(step.topic, configs=()))
        if created.get("error") != "NONE" or NOT_READY in created:
            return created
        leader = self._connections.node(self._routing.destination(ListOffsets(topic=step.topic)))
        names = described_defaults.TOPIC_DEFAULTS + described_defaults.NUMBERS
        client = self._connections.client(leader.id)
        described = self._connections.described(names, leader.id)
        if not described:
            raise UnsupportedApi("the broker does not describe its settings")
        bounds = topic_settings(client, self._symbols.real(step.topic), described_defaults.TOPIC_BOUNDS)
        applied = {**described, **bounds}
        now_ms = int(self._transport.time() * 1000)
        brokers = len(self._connections.nodes)
        return {
            "error": "NONE",
            "not_applied": tuple(described_defaults.not_applied(applied, step.topic, now_ms, self._send)),
            "other_numbers": described_defaults.other_numbers(described, f"{step.topic}-numbers", brokers, self._send),
        }

    def _use_settings(self, step: UseSettings, effect_timeout_s: float) -> Response:
        """Compare the settings that each broker describes with what it is, and with the results of requests."""
        controller = self._connections.node(self._connections.controller)
        nodes = (controller, *(node for node in self._connections.nodes if node != controller))
        clients = {node: self._connections.client(node.id) for node in nodes}
        described = {node: self._connections.described(described_settings.NAMES, node.id) for node in nodes}
        if not any(described.values()):
            raise UnsupportedApi("the brokers do not describe their settings")
        created = self._send(CreateTopic(step.topic))
        if created.get("error") != "NONE" or NOT_READY in created:
            return created
        differences = [
            text
            for node, settings in described.items()
            for text in (
                *described_settings.other_ids(settings, node),
                *(described_settings.other_addresses(settings, node) if self._connections.are_direct else ()),
                *described_settings.other_directories(settings, node, log_directories(clients[node])),
            )
        ]
        not_applied = described_settings.not_applied(
            [*described.values()], step.topic, self._send, self._routing.creates_topic, effect_timeout_s
        )
        return {"error": "NONE", "differences": tuple(differences), "not_applied": tuple(not_applied)}

    def _repeat(self, step: Repeated) -> Response:
        """Send a request in each version, to each broker or to one, and compare."""
        selected = self._routing.destination(step.request)
        node_id = selected if step.broker is None else self._symbols.broker(step.broker)
        nodes = self._connections.nodes if step.on_every_broker else (self._connections.node(node_id),)
        returned = []
        for node in nodes:
            client = self._connections.client(node.id)
            for version in self._versions(client, step.request) * _REPETITIONS:
                message = self._routing.message(replace(step.request, version=version), client)
                returned.append(Returned(version, self._symbols.place(node.id), client.request(message)))
        responses = (normalise(step.request, each.response, self._symbols) for each in returned)
        errors = {error for response in responses for error in response["errors"]} - {"NONE"}
        return {
            "errors": tuple(sorted(errors)),
            "differing": differing(returned, {*step.varying, *step.rising}, self._symbols),
            "decreased": decreased(returned, step.rising, self._symbols),
        }

    def _describe_listed_groups(self, step: ListedGroups) -> Response:
        """List the groups of each broker, and describe them by a request to the same broker."""
        self._routing.destination(ListGroups(step.group))  # waits for a coordinator that is loading
        returned = []
        for node in self._connections.nodes:
            client = self._connections.client(node.id)
            listed = client.request(self._routing.message(ListGroups(step.group), client))
            request = client.schema_for(ApiKey.DESCRIBE_GROUPS).DescribeGroupsRequest
            groups = {"groups": to_describe(listed), "include_authorized_operations": False}
            returned.append((listed, client.request(build(request, groups))))
        return listed_groups(step, returned, self._symbols)

    def _versions(self, client: RawClient, request: RawRequest) -> list[int]:
        """Return the shared versions up to that of the request."""
        highest = request.version
        return [each for each in shared_versions(client, request.api) if highest is None or each <= highest]
