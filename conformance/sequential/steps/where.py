"""Steps around other steps: which broker is asked, how long, and how the request is written."""

from dataclasses import dataclass

from conformance.sequential.steps.base import TOPIC, Step


@dataclass(frozen=True, slots=True)
class On(Step):
    """A step asked of a certain broker, whether or not a client would ask that one."""

    broker: int
    step: Step


@dataclass(frozen=True, slots=True)
class OnEveryBroker(Step):
    """A step asked of each broker in turn; how many served it, and what the others said."""

    step: Step


@dataclass(frozen=True, slots=True)
class Eventually(Step):
    """A step that only reads, asked until the answer is the one that is due, or the time is up; its last answer.

    For what Kafka promises to come, not when: a broker that learns of a change, a follower that catches up.
    """

    step: Step


@dataclass(frozen=True, slots=True)
class WithUnknownTags(Step):
    """A step whose request has a tagged field that nobody knows, in its header and in its body (KIP-482)."""

    step: Step


@dataclass(frozen=True, slots=True)
class AwaitTopic(Step):
    """Until every broker describes the topic as is due, and the leaders serve; what they describe in the end.

    From here on requests go to the leaders described.
    """

    topic: str = TOPIC


@dataclass(frozen=True, slots=True)
class Placement(Step):
    """Metadata of a topic, of which only the evenness over the brokers is looked at."""

    topic: str = TOPIC
