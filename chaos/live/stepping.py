"""Clients with steps on a real cluster: the state machines of `chaos.simulation.clients`, driven over sockets.

All clients of a trial run in one asyncio loop, in the thread of one actor, and write their rows through the run's
recorder. After the faults they read back the topics that workloads do not know: all but the first.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from chaos.faults import Node
from chaos.live.report import Violation
from chaos.live.sockets import SocketEnvironment, addresses_of
from chaos.simulation.clients import client
from chaos.simulation.clients.asked import WrongAnswerError
from chaos.simulation.clients.client import Client, Steps
from chaos.simulation.clients.consumer import Consumer
from chaos.simulation.clients.process import Behaviour, MalformedAnswerError, Process, Sleep
from chaos.simulation.clients.producer import Producer
from chaos.simulation.clients.raw import RawClient
from chaos.simulation.clients.view import Place
from chaos.trial import CLIENTS_MS, Send, SteppingClient, Trial
from chaos.trial import Consumer as ConsumerSteps
from chaos.trial import Producer as ProducerSteps
from chaos.trial import RawClient as RawClientSteps
from conformance.concurrent.script import Phase
from conformance.concurrent.surroundings import Surroundings
from fixtures.clients.stage import Event
from fixtures.clients.topic_ids import topic_id_from_text

_LOOK_S: Final = 0.02
_READ_BACK_MS: Final = 60_000
_AGAIN_MS: Final = 100
_NAMES: Final = {WrongAnswerError: "wrong-answer", MalformedAnswerError: "malformed-answer"}


class SteppingClients:
    """The clients with steps of a trial, as one actor.

    :param node: returns the node that has a role now.
    :ivar violations: responses that no broker may give, and clients that are not through in time.
    """

    is_writer = True

    def __init__(self, surroundings: Surroundings, trial: Trial, node: Callable[[Node], int | None]) -> None:
        self._surroundings = surroundings
        self._trial = trial
        self._node = node
        self.violations: list[Violation] = []

    def act(self, phase: Phase, over: Event) -> None:
        """Run all clients from their first step to their last, or until `over` is set."""
        within_ms = self._trial.steady_ms + self._trial.end_ms + CLIENTS_MS
        unfinished = asyncio.run(self._run(self._started, within_ms, over.is_set))
        if unfinished:
            text = f"clients {unfinished} are not through {CLIENTS_MS} ms after the last fault"
            self.violations.append(Violation("not-converged", text))

    def read_back(self) -> None:
        """Write a record to every partition of all topics but the first, and read them and group offsets back.

        What is not read in time shows in the history as unseen.
        """
        if len(self._trial.topics) > 1 or self._trial.created_topics or self._groups:
            asyncio.run(self._run(self._reading_back, _READ_BACK_MS, lambda: False))

    def close(self) -> None:
        """Nothing is left open: a run closes its connections."""

    async def _run(
        self, start: Callable[[SocketEnvironment], Sequence[Process]], within_ms: int, is_over: Callable[[], bool]
    ) -> list[int]:
        """Run processes; returns the numbers of those that are not through when the time is over."""
        target = self._surroundings.target
        environment = SocketEnvironment(asyncio.get_running_loop(), lambda: addresses_of(tuple(target.nodes)))
        processes = start(environment)
        late: list[int] = []
        while (busy := [process.number for process in processes if not process.is_done]) and not late:
            if is_over() or environment.failure is not None:
                break
            if environment.scheduler.now_ms > within_ms:
                late = busy
            await asyncio.sleep(_LOOK_S)
        for process in processes:
            process.close()
        if environment.failure is not None:
            self._note(environment.failure)
        return late

    def _note(self, error: Exception) -> None:
        """Keep a broker's violation; any other error is a bug of the client and raised."""
        name = _NAMES.get(type(error))
        if name is None:
            raise error
        self.violations.append(Violation(name, str(error)))

    # What runs

    def _started(self, environment: SocketEnvironment) -> list[Process]:
        return [self._start(each, environment) for each in self._trial.stepping]

    def _start(self, steps: SteppingClient, environment: SocketEnvironment) -> Process:
        process, surroundings = self._process(environment), self._of(environment)
        match steps:
            case ProducerSteps():
                Producer(process, surroundings, steps).run()
            case ConsumerSteps():
                Consumer(process, surroundings, steps).run()
            case RawClientSteps():
                RawClient(process, surroundings, steps).run()
        return process

    def _reading_back(self, environment: SocketEnvironment) -> list[Process]:
        process = self._process(environment)
        process.start(self._read_topics_and_groups(environment, process))
        return [process]

    def _read_topics_and_groups(self, environment: SocketEnvironment, process: Process) -> Behaviour:
        surroundings = self._of(environment)
        places = yield from _places(Client(process, surroundings), self._other_topics)
        if places:
            writing = self._process(environment)
            sends = tuple(Send(topic=topic, partition=partition, keys=1) for topic, partition in places)
            Producer(writing, surroundings, ProducerSteps(steps=sends, idempotent=False)).run()
            while not writing.is_done:
                yield Sleep(_AGAIN_MS)
            writing.close()
            yield from Consumer(process, surroundings, ConsumerSteps(partitions=tuple(places))).drain()
        for group in self._groups:
            reader = Consumer(process, surroundings, ConsumerSteps(group=group.group, partitions=group.partitions))
            while (yield from reader.fetch_offsets(list(group.partitions))) is not None:
                yield Sleep(_AGAIN_MS)

    @property
    def _other_topics(self) -> list[str]:
        names = (*(topic.name for topic in self._trial.topics), *(step.topic for step in self._trial.created_topics))
        return [name for name in dict.fromkeys(names) if name != self._surroundings.topic]

    @property
    def _groups(self) -> tuple[ConsumerSteps, ...]:
        return tuple(each for each in self._trial.stepping if isinstance(each, ConsumerSteps) and each.group)

    # What it runs in

    def _process(self, environment: SocketEnvironment) -> Process:
        return Process(next(self._surroundings.processes), environment)

    def _of(self, environment: SocketEnvironment) -> client.Surroundings:
        target = self._surroundings.target
        return client.Surroundings(
            self._surroundings.recorder,
            tuple(node.id for node in target.nodes),
            node=self._node,
            acknowledged=lambda *_: None,
            committed=lambda *_: None,
            wall_start_ms=environment.wall_start_ms,
            keeps_timestamps=not self._trial.may_replace_timestamps,
            topic_ids={name: topic_id_from_text(text) for name, text in self._surroundings.topic_ids.items()},
            passing=self._trial.deleted_topics,
        )


def _places(reader: Client, topics: Sequence[str]) -> Steps:
    """Return the partitions of those topics that exist."""
    places: list[Place] = []
    if topics:
        while (yield from reader.refresh(topics)).response is None:
            yield Sleep(_AGAIN_MS)
        places = [(topic, index) for topic in topics for index in range(reader.view.partitions.get(topic, 0))]
    return places
