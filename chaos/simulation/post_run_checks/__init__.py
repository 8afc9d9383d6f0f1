"""Post-run checks: requests, most of them invalid, to a cluster that is healthy again.

The nodes of a simulated cluster send only correct requests, and clients do not send the requests of nodes. Therefore
each run ends with some of these checks, selected by its seed:

- `quorum_checks` and `controller_checks` send requests of voters and brokers, mostly with a wrong id or epoch.
- `client_checks` send requests of clients that a requirement cannot send.

Each check has its requests and the errors that Kafka returns. The other fields of a response are checked by invariants,
such as `quorum-response`.
"""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, Final

from chaos.simulation.post_run_checks import client_checks, controller_checks, quorum_checks
from chaos.simulation.post_run_checks.post_run_check import At, ClusterState, PostRunCheck, Receiver, errors_of
from chaos.simulation.roles import Roles
from conformance.trial.trial import Trial
from fixtures.clients.client_request import ClientRequest, encoded
from fixtures.clients.core.process import Behaviour, ClientResponse, SendRequest, Sleep, Wait
from fixtures.clients.core.response_pairs import InvalidResponseError
from fixtures.faults import Role
from reference_broker.core.quorum.quorum_state import Follower
from reference_broker.simulation.cluster import CLIENT, CONTROLLER, SimulatedCluster

POST_RUN_CHECKS: Final = (
    *client_checks.CHECKS,
    *quorum_checks.CHECKS,
    *controller_checks.CHECKS,
)
CHECKS_PER_RUN: Final = 2
_TIMEOUT_MS: Final = 45_000
"""Longer than one attempt of a broker to forward a request. If a fault has left the connection to the controller half
open, the attempt fails only after 30 s."""
_ATTEMPTS_MAX: Final = 3
_AT_CONTROLLERS: Final = frozenset({Receiver.CONTROLLER, Receiver.STANDBY})


def checks_of_seed(seed: int) -> list[PostRunCheck]:
    """Return the checks for the run of a trial with this seed: first those that do not disturb the cluster.

    Consecutive seeds cover all checks.
    """
    chosen = [
        POST_RUN_CHECKS[(seed * CHECKS_PER_RUN + index) % len(POST_RUN_CHECKS)] for index in range(CHECKS_PER_RUN)
    ]
    return sorted(chosen, key=lambda check: check.disturbs_cluster)


def cluster_state(cluster: SimulatedCluster, roles: Roles, trial: Trial) -> ClusterState | None:
    """Return the state of a cluster; None if it has no active controller, no broker, or no topic of the trial."""
    image, active = roles.image(), roles.node(Role.CONTROLLER)
    topic = next((topic.name for topic in trial.topics if image is not None and topic.name in image.topics), None)
    if image is None or not image.brokers or active is None or topic is None:
        return None
    brokers, standby = sorted(image.brokers), roles.node(Role.STANDBY)
    follower = None if standby is None else cluster.nodes[standby].quorum.state
    return ClusterState(
        cluster_id=cluster.nodes[active].runtime.identity.cluster_id,
        image=image,
        quorum=cluster.nodes[active].quorum,
        controller=active,
        standby=standby,
        standby_has_fetched=isinstance(follower, Follower) and follower.has_fetched,
        broker=brokers[trial.seed % len(brokers)],
        topic=topic,
        configuration=cluster.nodes[active].runtime.configuration,
    )


def perform(check: PostRunCheck, get_state: Callable[[], ClusterState | None]) -> Behaviour:
    """Send the requests of a check, and compare the errors in the responses with the expected ones.

    If the errors differ, and the leader or the controller has changed meanwhile, all requests are repeated. After
    `_ATTEMPTS_MAX` such changes, the check ends without a result.

    :param get_state: returns the current state.
    :raises InvalidResponseError: a response is missing, or has other errors than expected.
    """
    for _ in range(_ATTEMPTS_MAX):
        state = get_state()
        if state is None or state.node(check.receiver) is None:
            return
        before = state.roles
        found = yield from _returned_errors(check, state)
        expected, after = check.errors(state), get_state()
        if check.permits(found, expected):
            return
        if after is not None and after.roles == before:
            raise InvalidResponseError(f"{check.name}: {found}, not {expected}")


def _returned_errors(check: PostRunCheck, state: ClusterState) -> Generator[SendRequest | Sleep | Wait, Any, list[str]]:
    """Send the requests of a check; return the errors of all responses."""
    found: list[str] = []
    requests = check.make(state)
    for request in requests if isinstance(requests, list) else [requests]:
        if isinstance(request, Sleep):
            yield request
            continue
        sent = request if isinstance(request, At) else At(check.receiver, request)
        node = state.node(sent.receiver)
        assert node is not None
        listener = CONTROLLER if sent.receiver in _AT_CONTROLLERS else CLIENT
        encoded_request = sent.request if isinstance(sent.request, ClientRequest) else encoded(sent.request)
        unchecked = replace(encoded_request, body=None)
        result: ClientResponse = yield SendRequest(node, unchecked, _TIMEOUT_MS, listener)
        if result.response is None:
            raise InvalidResponseError(f"{check.name}: no response of node {node} to {type(sent.request).__name__}")
        found += errors_of(result.response)
    return found
