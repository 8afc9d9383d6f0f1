"""Workloads as clients with steps, for virtual time: as many steps as fit into the phases of their trial."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from conformance.trial.trial import Client, Topic, Trial
from conformance.trial.workloads import (
    DELIVERY_TIMEOUT_MS,
    Administrator,
    Committer,
    Keyed,
    LeaderReader,
    OneByOne,
    Pipelined,
    Retrying,
    Tail,
    Workload,
)
from fixtures.clients.steps import (
    AlterTopicConfig,
    CommitOffsets,
    Consumer,
    CreateTopic,
    DeleteTopic,
    FetchOffsets,
    Idle,
    ListOffsets,
    Poll,
    Produce,
    Producer,
    RequestClient,
    SendBatches,
    SteppingClient,
)

_POLL_PAUSE_MS = 100


def unrolled(trial: Trial) -> Trial:
    """Return the trial with clients that have steps in place of its workloads. All other clients are kept."""
    if not trial.workloads:
        return trial
    during_ms = trial.steady_ms + trial.end_ms + trial.healed_ms
    clients: list[Client] = []
    for client in trial.clients:
        clients += _clients(client, trial.topic, during_ms) if isinstance(client, Workload) else [client]
    return replace(trial, clients=tuple(clients))


def _clients(workload: Workload, topic: Topic, during_ms: int) -> Iterable[SteppingClient]:
    partitions = range(topic.partitions)
    match workload:
        case Pipelined():
            return [_pipelined(workload, topic, during_ms)]
        case OneByOne():
            return [_one_by_one(workload, topic.name, partition, during_ms) for partition in partitions]
        case Retrying(in_flight_max, records, pause_ms):
            batches = during_ms // pause_ms
            return [
                Producer(
                    (SendBatches(batches, records, pause_ms, topic.name, partition),),
                    in_flight_max=in_flight_max,
                    delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
                )
                for partition in partitions
            ]
        case Keyed(keys, pause_ms):
            sends = (
                SendBatches(during_ms // pause_ms, 1, pause_ms, topic.name, each, keys=keys) for each in partitions
            )
            return [Producer((send,), idempotent=False, in_flight_max=1) for send in sends]
        case Tail(isolation):
            places = tuple((topic.name, partition) for partition in partitions)
            polls = (Poll(during_ms // _POLL_PAUSE_MS, _POLL_PAUSE_MS),)
            return [Consumer(polls, places, isolation=isolation)]
        case LeaderReader(pause_ms):
            return _leader_readers(topic, pause_ms, during_ms // pause_ms)
        case Committer(pause_ms):
            once = (Poll(), CommitOffsets(), FetchOffsets(), Idle(pause_ms))
            places = tuple((topic.name, partition) for partition in partitions)
            return [Consumer(once * (during_ms // pause_ms), places, workload.group_of(topic.name))]
        case Administrator(pause_ms):
            return [RequestClient(tuple(_administration(topic.name, pause_ms, during_ms // pause_ms)))]


def _pipelined(workload: Pipelined, topic: Topic, during_ms: int) -> Producer:
    places = (burst % topic.partitions for burst in range(during_ms // workload.pause_ms))
    return Producer(
        tuple(SendBatches(1, workload.records, workload.pause_ms, topic.name, partition) for partition in places),
        idempotent=workload.idempotent,
        acks=workload.acks,
        in_flight_max=workload.in_flight_max,
        delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
    )


def _one_by_one(workload: OneByOne, topic: str, partition: int, during_ms: int) -> RequestClient:
    send = Produce(workload.records, topic, partition, acks=workload.acks, idempotent=workload.idempotent)
    return RequestClient(
        (send, Idle(workload.pause_ms)) * (during_ms // workload.pause_ms), timeout_ms=workload.timeout_ms
    )


def _leader_readers(topic: Topic, pause_ms: int, times: int) -> Iterator[SteppingClient]:
    for partition in range(topic.partitions):
        yield Consumer((Poll(times, pause_ms),), ((topic.name, partition),))
        yield RequestClient((ListOffsets(times, pause_ms, topic.name, partition),))


def _administration(
    topic: str, pause_ms: int, times: int
) -> Iterator[CreateTopic | AlterTopicConfig | DeleteTopic | Idle]:
    for number in range(1, times + 1):
        name = f"{topic}-{number}"
        yield CreateTopic(name, replication_factor=2)
        yield AlterTopicConfig("retention.ms", "86400000", name)
        yield DeleteTopic(name)
        yield Idle(pause_ms)
