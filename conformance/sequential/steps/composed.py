"""Steps around other steps, and steps whose response is the evaluation of one or several responses of brokers.

A step around another one determines the broker that receives the request, its repetition, or its encoding.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from conformance.sequential.steps.base import TOPIC, Step


@dataclass(frozen=True, slots=True)
class On(Step):
    """A step sent to one broker, whether or not a client would select it."""

    broker: int
    step: Step


@dataclass(frozen=True, slots=True)
class OnEveryBroker(Step):
    """A step sent to each broker in turn.

    The response has the number of brokers that served it, and the errors of the others.
    """

    step: Step


@dataclass(frozen=True, slots=True)
class Eventually(Step):
    """A step that only reads, repeated until the response is as expected, or until a timeout.

    For effects that Kafka promises without a time limit: a broker applies a change, a follower catches up.

    :ivar awaited: names of the fields that must be as expected; None for all.
    """

    step: Step
    awaited: frozenset[str] | None = field(default=None, kw_only=True)


class Cleanup(StrEnum):
    """Periodic cleanup of a broker's logs. The value is the setting that determines its period."""

    RETENTION = "log.retention.check.interval.ms"
    """Old segments are deleted by size and time."""
    COMPACTION = "log.cleaner.backoff.ms"
    """Records with a newer record of the same key are removed, except in the active segment."""


@dataclass(frozen=True, slots=True)
class AfterCleanup(Eventually):
    """A step that only reads, repeated until the response shows the effect of a cleanup, or until a timeout.

    Scripts with this step are not run on targets that clean their logs rarely.
    """

    by: Cleanup = Cleanup.RETENTION


@dataclass(frozen=True, slots=True)
class AsClient(Step):
    """A step of another client, with its client id on a new connection.

    The response has the fields `throttled` and `muted`.
    """

    client: str
    step: Step


@dataclass(frozen=True, slots=True)
class WithUnknownTags(Step):
    """A step whose request has an unknown tagged field in its header and in its body (KIP-482)."""

    step: Step


@dataclass(frozen=True, slots=True)
class AwaitTopic(Step):
    """Metadata of a topic, repeated until all brokers describe it as expected and its leaders serve, or a timeout.

    Later requests are sent to the described leaders.
    """

    topic: str = TOPIC


@dataclass(frozen=True, slots=True)
class UseDefaults(Step):
    """CreateTopics of a topic without settings, and requests to it whose results depend on the broker's defaults.

    The response has the defaults that the broker describes, but does not apply.
    """

    topic: str = TOPIC


@dataclass(frozen=True, slots=True)
class UseSettings(Step):
    """Description of every broker's settings, and requests whose results depend on them.

    The requests create a topic, delete it, and permit Metadata to create another one. The response has the settings
    that a broker describes but does not have.
    """

    topic: str = TOPIC


@dataclass(frozen=True, slots=True)
class ListConfigResources(Step):
    """ListConfigResources of each type, in each version, sent to every broker.

    The response has the differences from the resources that exist.

    :ivar metrics: names of client metrics that may exist.
    """

    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement(Step):
    """Metadata of a topic, reduced to how evenly it is spread over the brokers."""

    topic: str = TOPIC
