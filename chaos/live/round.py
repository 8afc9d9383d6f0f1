"""A round: one cluster, its topic, the clients at work on it, and a schedule of faults.

A round is a plain value that prints as Python, and means the same on every target. Unlike a script of the simulation it
does not say what each client does step by step: on a real cluster time passes by itself, and its clients work for as
long as the faults last. The schedule is the same value as a script's.

A round goes through phases: *steady* (`steady_ms`), *faulty* (until the last fault of the schedule is over), *healed*
(until the cluster is in order again, and `healed_ms` more). Clients work through all three; then everything is read
back.
"""

from dataclasses import dataclass, replace

from chaos.faults import Configure, Timed
from chaos.simulation.script import Cluster, Topic
from conformance.concurrent.moves import AsPython


@dataclass(frozen=True, slots=True, repr=False)
class Pipelined(AsPython):
    """librdkafka's producer: it retries, and sends to all partitions in turn, a burst and a pause.

    :param in_flight_max: of librdkafka 2.16 a lawful cluster gets a record twice with more than one request in flight:
        after OUT_OF_ORDER_SEQUENCE_NUMBER from a new leader it sends again what it has.
    """

    idempotent: bool = True
    acks: int = -1
    in_flight_max: int = 1
    records: int = 10
    pause_ms: int = 100


@dataclass(frozen=True, slots=True, repr=False)
class OneByOne(AsPython):
    """A raw producer for each partition: one batch at a time to whoever leads, sent once, with a pause after each.

    :param idempotent: with a producer id, a new one after each outcome that is not known; needs acks -1.
    :param timeout_ms: how long a broker may hold a batch that waits for replicas.
    """

    acks: int = -1
    idempotent: bool = False
    records: int = 3
    pause_ms: int = 100
    timeout_ms: int = 5_000


@dataclass(frozen=True, slots=True, repr=False)
class Retrying(AsPython):
    """A raw idempotent producer for each partition that retries as Java's producer does, several batches in flight."""

    in_flight_max: int = 5
    records: int = 3
    pause_ms: int = 100


@dataclass(frozen=True, slots=True, repr=False)
class Keyed(AsPython):
    """A raw producer for each partition that writes few keys again and again, now and then a tombstone."""

    keys: int = 5
    pause_ms: int = 50


@dataclass(frozen=True, slots=True, repr=False)
class Tail(AsPython):
    """librdkafka's consumer, which reads all partitions from their start, and goes on."""


@dataclass(frozen=True, slots=True, repr=False)
class LeaderReader(AsPython):
    """A raw reader for each partition that asks the leader for records and for the end offset by turns."""

    pause_ms: int = 100


@dataclass(frozen=True, slots=True, repr=False)
class Committer(AsPython):
    """Commits an offset for each partition to the coordinator of a group, asks for them, and goes on.

    It is no member of the group. Its offsets rise, and are nobody's positions.
    """

    pause_ms: int = 100

    def group_of(self, topic: str) -> str:
        """The group's name."""
        return f"{topic}-committers"


@dataclass(frozen=True, slots=True, repr=False)
class Administrator(AsPython):
    """Creates a topic of its own, alters it and deletes it, again and again."""

    pause_ms: int = 300


_CLUSTER = Cluster()
_TOPIC = Topic()

Workload = Pipelined | OneByOne | Retrying | Keyed | Tail | LeaderReader | Committer | Administrator


@dataclass(frozen=True, slots=True, repr=False)
class Round(AsPython):
    """One round.

    :param seed: what it was drawn from; it decides nothing else.
    :param waits_for_recovery: whether the times of the schedule stand still where no fault is in force, from the end of
        the last one until the cluster is in order again, however long the machine takes for that.
    """

    seed: int = 0
    cluster: Cluster = _CLUSTER
    topic: Topic = _TOPIC
    workloads: tuple[Workload, ...] = ()
    schedule: tuple[Timed, ...] = ()
    steady_ms: int = 2_000
    healed_ms: int = 1_000
    waits_for_recovery: bool = False

    @property
    def group(self) -> str | None:
        """In which clients commit; null where none does."""
        return next((each.group_of(self.topic.name) for each in self.workloads if isinstance(each, Committer)), None)

    def under_load(self, times: int) -> "Round":
        """The same round with so many times the records in each batch of its producers. Writers of keys stay."""
        workloads = (
            replace(each, records=each.records * times) if isinstance(each, Pipelined | OneByOne | Retrying) else each
            for each in self.workloads
        )
        return replace(self, workloads=tuple(workloads))

    @property
    def flushes_each_message(self) -> bool:
        """Whether the topic's records are durable once they are acknowledged, whoever loses power."""
        changed = (timed.fault.name for timed in self.schedule if isinstance(timed.fault, Configure))
        of_brokers = dict(self.cluster.properties).get("log.flush.interval.messages")
        return dict(self.topic.properties).get("flush.messages", of_brokers) == "1" and "flush.messages" not in changed

    @property
    def may_replace_timestamps(self) -> bool:
        """Whether the broker may set a record's timestamp at some time, which its checksum then does not cover."""
        changed = (timed.fault.name for timed in self.schedule if isinstance(timed.fault, Configure))
        return "message.timestamp.type" in {*changed, *dict(self.topic.properties)}


__all__ = [
    "Administrator",
    "Cluster",
    "Committer",
    "Keyed",
    "LeaderReader",
    "OneByOne",
    "Pipelined",
    "Retrying",
    "Round",
    "Tail",
    "Timed",
    "Topic",
    "Workload",
]
