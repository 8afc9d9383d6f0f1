"""Post-run checks: requests to a cluster that is whole again, most of which it has to reject.

The nodes of a simulated cluster send what is true, and no client can send a node's requests; so each run ends with some
of these checks, by turns of its seed: requests of brokers and voters with a wrong id or epoch at the controllers'
listener, and those of clients that no requirement can send (`of_clients`). Each has one row in a table, with the errors
of Kafka's handlers. What a response without an error contains is checked by `quorum-response` and the like.
"""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, Final

from chaos.simulation.clients.asked import WrongAnswerError
from chaos.simulation.clients.process import Answer, Ask, Behaviour, Sleep, Wait
from chaos.simulation.examination import of_clients, of_controllers, of_quorum
from chaos.simulation.examination.exam import Exam, Facts, Whom, errors_of
from chaos.simulation.roles import Roles
from chaos.trial import Trial
from fixtures.clients.client_request import encoded
from fixtures.faults import Role
from reference_broker.simulation.cluster import CLIENT, CONTROLLER, SimulatedCluster

EXAMS: Final = (
    *of_clients.EXAMS,
    *of_quorum.EXAMS,
    *of_controllers.EXAMS,
)
AT_ONCE: Final = 2
"""Exams of one run."""
_TIMEOUT_MS: Final = 10_000
_ATTEMPTS_MAX: Final = 3
_AT_CONTROLLERS: Final = frozenset({Whom.CONTROLLER, Whom.STANDBY})


def exams_of(seed: int) -> list[Exam]:
    """Those of one run, by its trial's seed, of which consecutive ones have all in turn.

    What unsettles the cluster comes last.
    """
    chosen = [EXAMS[(seed * AT_ONCE + place) % len(EXAMS)] for place in range(AT_ONCE)]
    return sorted(chosen, key=lambda exam: exam.unsettles)


def facts_of(cluster: SimulatedCluster, roles: Roles, trial: Trial) -> Facts | None:
    """What is known of a cluster; null where there is nobody who decides, or nothing to ask about."""
    image, active = roles.image(), roles.node(Role.CONTROLLER)
    topic = next((topic.name for topic in trial.topics if image is not None and topic.name in image.topics), None)
    if image is None or active is None or topic is None:
        return None
    brokers = sorted(image.brokers)
    return Facts(
        cluster_id=cluster.nodes[active].runtime.identity.cluster_id,
        image=image,
        quorum=cluster.nodes[active].quorum,
        controller=active,
        standby=roles.node(Role.STANDBY),
        broker=brokers[trial.seed % len(brokers)],
        topic=topic,
        configuration=cluster.nodes[active].runtime.configuration,
    )


def take(exam: Exam, look: Callable[[], Facts | None]) -> Behaviour:
    """Ask, and raise `WrongAnswerError` for another answer than the right one.

    :param look: tells the facts of the moment. Where somebody takes another office meanwhile it is all asked again.
    """
    for _ in range(_ATTEMPTS_MAX):
        facts = look()
        node = None if facts is None else facts.node(exam.whom)
        if facts is None or node is None:
            return
        before = facts.offices
        found = yield from _answers(exam, facts, node)
        expected, after = exam.errors(facts), look()
        if found is None or not expected or found == expected:
            return
        if after is not None and after.offices == before:
            break
    raise WrongAnswerError(f"{exam.name}, asked of node {node}: {found}, which should be {expected}")


def _answers(exam: Exam, facts: Facts, node: int) -> Generator[Ask | Sleep | Wait, Any, list[str] | None]:
    """The errors of all answers; null where the connection is lost, which tells nothing."""
    listener = CONTROLLER if exam.whom in _AT_CONTROLLERS else CLIENT
    found: list[str] = []
    asked = exam.make(facts)
    for request in asked if isinstance(asked, list) else [asked]:
        if isinstance(request, Sleep):
            yield request
            continue
        unchecked = replace(encoded(request), body=None)
        answer: Answer = yield Ask(node, unchecked, _TIMEOUT_MS, listener)
        if answer.response is None:
            return None
        found += errors_of(answer.response)
    return found
