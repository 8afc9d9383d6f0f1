"""Clients with steps on a real cluster: the state machines of `fixtures.clients.core`, driven over sockets.

All clients of a trial run in one asyncio loop, in the thread of one actor, and write rows through the run's recorder.
After the faults, further clients read back the topics that workloads do not use (all but the first).
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from chaos.campaign.violation import Violation
from conformance.concurrent.trial_context import TrialContext
from conformance.trial.phased_clients import Phase
from conformance.trial.trial import CLIENTS_MS, Trial
from fixtures.clients.core.client import Client, ClientContext, Steps
from fixtures.clients.core.consumer import Consumer
from fixtures.clients.core.process import Behaviour, Process, Sleep
from fixtures.clients.core.producer import Producer
from fixtures.clients.core.response_pairs import InvalidResponseError
from fixtures.clients.core.single_request_client import SingleRequestClient
from fixtures.clients.raw import MalformedResponse
from fixtures.clients.responses import TopicPartition
from fixtures.clients.sockets import SocketEnvironment
from fixtures.clients.stage import Event
from fixtures.clients.steps import Consumer as ConsumerSteps
from fixtures.clients.steps import Producer as ProducerSteps
from fixtures.clients.steps import RequestClient, SendBatches, SteppingClient
from fixtures.clients.transport import SOCKETS
from fixtures.faults import Node
from fixtures.targets.target import TargetError, addresses_of

_POLL_INTERVAL_S: Final = 0.02
_READ_BACK_MS: Final = 60_000
_RETRY_BACKOFF_MS: Final = 100
_NAMES: Final = {InvalidResponseError: "wrong-response", MalformedResponse: "malformed-response"}


class SteppingClients:
    """The clients with steps of a trial, as one actor.

    :param node: returns the node that has a role now.
    :param is_healed: whether the schedule and the healed phase are over, after which the clients have a limited time.
    :ivar violations: invalid responses, and partitions that accept no record after the faults.
    :ivar unfinished: a line if clients did not finish in time, and one if topics were not read back in time. Neither is
        a violation, because the machine may be slow.
    """

    is_writer = True

    def __init__(
        self,
        context: TrialContext,
        trial: Trial,
        node: Callable[[Node], int | None],
        is_healed: Callable[[], bool],
    ) -> None:
        self._context = context
        self._trial = trial
        self._node = node
        self._is_healed = is_healed
        self.violations: list[Violation] = []
        self.unfinished: list[str] = []
        self._processes: list[Process] = []
        """Processes of the present run, with connections that may be open."""

    def act(self, phase: Phase, phase_over: Event) -> None:
        """Run all clients to their last step, at most until their time is over or `phase_over` is set."""
        late = asyncio.run(self._run(self._start_clients, CLIENTS_MS, phase_over.is_set, self._is_healed))
        if late:
            self.unfinished.append(f"clients {late} have steps left {CLIENTS_MS} ms after the last fault")

    def read_back(self) -> None:
        """Write a record to every partition of all topics but the first; read these topics and the group offsets back.

        Records that are not read in time are unseen in the history.
        """
        if len(self._trial.topics) > 1 or self._trial.created_topics or self._groups:
            late = asyncio.run(self._run(self._start_read_back, _READ_BACK_MS, lambda: False, lambda: True))
            if late:
                self.unfinished.append(f"topics and group offsets are not read back in {_READ_BACK_MS} ms")

    def close(self) -> None:
        """Do nothing: a run closes its connections."""

    async def _run(
        self,
        start: Callable[[SocketEnvironment], Sequence[Process]],
        within_ms: int,
        is_over: Callable[[], bool],
        is_counted: Callable[[], bool],
    ) -> list[int]:
        """Run processes until all are done or `is_over`; return the numbers of those that have run out of time.

        Their time is `within_ms` from the moment at which `is_counted` is true. Raises `TargetError` if the target
        requires TLS or SASL.
        """
        target = self._context.target
        if target.transport is not SOCKETS:
            raise TargetError(f"{target.name} requires TLS or SASL, which clients with steps do not support")
        environment = SocketEnvironment(asyncio.get_running_loop(), lambda: addresses_of(target.nodes))
        try:
            late = await self._wait_for(start(environment), environment, within_ms, is_over, is_counted)
        finally:
            for process in self._processes:
                process.close()
            self._processes.clear()
        if environment.failure is not None:
            self._note(environment.failure)
        return late

    async def _wait_for(
        self,
        processes: Sequence[Process],
        environment: SocketEnvironment,
        within_ms: int,
        is_over: Callable[[], bool],
        is_counted: Callable[[], bool],
    ) -> list[int]:
        """Wait for processes, and return the numbers of those that have run out of time, as `_run` does."""
        counted_ms: int | None = None
        while busy := [process.number for process in processes if not process.is_done]:
            if is_over() or environment.failure is not None:
                break
            if counted_ms is None and is_counted():
                counted_ms = environment.scheduler.now_ms
            if counted_ms is not None and environment.scheduler.now_ms - counted_ms > within_ms:
                return busy
            await asyncio.sleep(_POLL_INTERVAL_S)
        return []

    def _note(self, error: Exception) -> None:
        """Note a violation of a broker; raise any other error, which is a bug of the client."""
        name = _NAMES.get(type(error))
        if name is None:
            raise error
        self.violations.append(Violation(name, str(error)))

    # Processes and their behaviour

    def _start_clients(self, environment: SocketEnvironment) -> list[Process]:
        return [self._start(each, environment) for each in self._trial.stepping]

    def _start(self, steps: SteppingClient, environment: SocketEnvironment) -> Process:
        process, context = self._process(environment), self._client_context(environment)
        match steps:
            case ProducerSteps():
                Producer(process, context, steps).run()
            case ConsumerSteps():
                Consumer(process, context, steps).run()
            case RequestClient():
                SingleRequestClient(process, context, steps).run()
        return process

    def _start_read_back(self, environment: SocketEnvironment) -> list[Process]:
        process = self._process(environment)
        process.start(self._read_topics_and_groups(environment, process))
        return [process]

    def _read_topics_and_groups(self, environment: SocketEnvironment, process: Process) -> Behaviour:
        context = self._client_context(environment)
        places = yield from _places(Client(process.number, context), self._other_topics)
        if places:
            writing = self._process(environment)
            sends = tuple(SendBatches(topic=topic, partition=partition, keys=1) for topic, partition in places)
            producer = Producer(writing, context, ProducerSteps(steps=sends, idempotent=False))
            producer.run()
            while not writing.is_done:
                yield Sleep(_RETRY_BACKOFF_MS)
            if producer.rejected:
                text = f"a write to {producer.rejected[0]} is not accepted after the faults"
                self.violations.append(Violation("not-recovered", text))
            yield from Consumer(process, context, ConsumerSteps(partitions=tuple(places))).drain()
        for group in self._groups:
            reader = Consumer(process, context, ConsumerSteps(group=group.group, partitions=group.partitions))
            while (yield from reader.fetch_offsets(list(group.partitions))) is not None:
                yield Sleep(_RETRY_BACKOFF_MS)

    @property
    def _other_topics(self) -> list[str]:
        names = (*(topic.name for topic in self._trial.topics), *(step.topic for step in self._trial.created_topics))
        return [name for name in dict.fromkeys(names) if name != self._context.topic]

    @property
    def _groups(self) -> tuple[ConsumerSteps, ...]:
        return tuple(each for each in self._trial.stepping if isinstance(each, ConsumerSteps) and each.group)

    # Contexts of processes

    def _process(self, environment: SocketEnvironment) -> Process:
        self._processes.append(Process(next(self._context.processes), environment, negotiates=True))
        return self._processes[-1]

    def _client_context(self, environment: SocketEnvironment) -> ClientContext:
        target = self._context.target
        return ClientContext(
            self._context.recorder,
            tuple(node.id for node in target.nodes),
            node=self._node,
            wall_start_ms=environment.wall_start_ms,
            keeps_timestamps=self._context.keeps_timestamps,
            topic_ids=self._context.topic_ids,
            deleted_topics=self._trial.deleted_topics,
        )


def _places(reader: Client, topics: Sequence[str]) -> Steps:
    """Return the partitions of the topics, without the topics that do not exist."""
    places: list[TopicPartition] = []
    if topics:
        while (yield from reader.refresh(topics)).response is None:
            yield Sleep(_RETRY_BACKOFF_MS)
        places = [(topic, index) for topic in topics for index in range(reader.metadata.partitions.get(topic, 0))]
    return places
