"""Property test: elections, crashes, cuts and delayed metadata in any order lose no record, and logs match.

The model has the committed records by offset: the records that were acknowledged with acks=all, and those below the
high watermark of a leader. Elections are clean, and disks keep written data, because Kafka's guarantee requires both.
"""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from reference_broker.core.replication.partition import NO_LEADER
from reference_broker.protocol.errors import ErrorCode
from tests.reference_broker.replication.group import Group, Produced

NODES = (1, 2, 3)
NODE = st.sampled_from(NODES)
PAIR = st.sampled_from([(1, 2), (1, 3), (2, 3)])
PUBLISH_TO = st.sets(NODE)


class Run:
    """A group, its committed records, and the events of a test case."""

    def __init__(self, min_isr: int) -> None:
        self.group = Group(3, min_isr=min_isr)
        self.committed: dict[int, str] = {}
        self._produced: list[Produced] = []
        self._values = 0
        self._watermarks: dict[tuple[int, int], int] = {}
        """High watermarks by broker epoch and leader epoch, because a restart may restore a lower high watermark."""

    # Events

    def produce(self, acks: int) -> None:
        leader = self.group.state.leader
        if leader in self.group.members:
            self._values += 1
            self._produced.append(self.group.produce(f"v{self._values}", acks=acks, timeout_ms=2_000))

    def produce_to(self, node: int) -> None:
        """Produce to any broker, possibly to a former leader without the new metadata."""
        if node in self.group.members:
            self._values += 1
            self._produced.append(self.group.produce(f"v{self._values}", to=node, timeout_ms=2_000))

    def kill(self, node: int) -> None:
        if node in self.group.members:
            self.group.kill(node)

    def start(self, node: int) -> None:
        if node not in self.group.members:
            self.group.start(node)
            self.group.publish_metadata({node})

    def fence_killed(self, publish_to: set[int]) -> None:
        """Do what the controller does after crashes: elect a leader, and remove killed brokers from the ISR.

        The last member of the ISR stays.
        """
        state, alive = self.group.state, set(self.group.members)
        isr = tuple(node for node in state.isr if node in alive)
        leader = state.leader if state.leader in alive else next(iter(isr), NO_LEADER)
        isr = isr or state.isr[:1]
        if (leader, isr) != (state.leader, state.isr):
            epoch = state.leader_epoch + (leader != state.leader)
            self.group.change(leader=leader, leader_epoch=epoch, isr=isr, publish_to=publish_to)

    def elect(self, node: int, publish_to: set[int]) -> None:
        if node in self.group.state.isr and node in self.group.members:
            self.group.elect(node, publish_to=publish_to)

    def cut(self, pair: tuple[int, int]) -> None:
        self.group.cut(*pair)

    def heal(self) -> None:
        self.group.heal()

    def set_controller_reachable(self, reachable: bool) -> None:
        self.group.is_controller_reachable = reachable

    def publish_metadata(self, publish_to: set[int]) -> None:
        self.group.publish_metadata(publish_to)

    def step(self, times: int) -> None:
        for _ in range(times):
            self.group.step()

    def wait(self, for_ms: int) -> None:
        self.group.run(for_ms=for_ms)

    # Invariants

    def check(self) -> None:
        self._update_committed()
        logs = {node: self.group.log(node) for node in self.group.members}
        for one in logs.values():
            for other in logs.values():
                assert_matching(one, other)
        leader = self.group.state.leader
        if leader in logs:
            assert_contains(logs[leader], self.committed)

    def _update_committed(self) -> None:
        for produced in self._produced:
            if produced.error is ErrorCode.none and produced.acks == -1:
                self._add_committed(produced.base_offset, produced.values[0])
        self._produced = [produced for produced in self._produced if produced.error is None]
        for node in self.group.members:
            partition = self.group.partition(node)
            if partition.is_leader:
                epochs = self.group.members[node].broker.epoch, partition.leader_epoch
                assert partition.high_watermark >= self._watermarks.get(epochs, 0), "the high watermark decreased"
                self._watermarks[epochs] = partition.high_watermark
                for offset, _, value in self.group.log(node):
                    if offset < partition.high_watermark:
                        self._add_committed(offset, value)

    def _add_committed(self, offset: int, value: str) -> None:
        assert self.committed.setdefault(offset, value) == value, "two records were committed at one offset"

    def recover_and_check(self) -> None:
        """End all faults, and assert that all replicas are equal, are in sync, and have the committed records."""
        self.group.heal()
        self.group.is_controller_reachable = True
        for node in NODES:
            self.start(node)
        self.fence_killed(set(NODES))
        if self.group.state.leader == NO_LEADER:
            self.group.elect(self.group.state.isr[0])
        self.group.publish_metadata()
        self.group.run(for_ms=50_000)  # an AlterPartition request that was lost times out after 30 s
        self.check()
        first, *others = (self.group.log(node) for node in NODES)
        assert all(other == first for other in others)
        assert set(self.group.state.isr) == set(NODES)


def assert_matching(one: list[tuple[int, int, str]], other: list[tuple[int, int, str]]) -> None:
    """Assert that two logs are equal up to the last offset at which their epochs are equal."""
    common = [index for index, (left, right) in enumerate(zip(one, other, strict=False)) if left[:2] == right[:2]]
    end = common[-1] + 1 if common else 0
    assert one[:end] == other[:end]


def assert_contains(log: list[tuple[int, int, str]], committed: dict[int, str]) -> None:
    values = {offset: value for offset, _, value in log}
    lost = {offset: value for offset, value in committed.items() if values.get(offset) != value}
    assert not lost


def _events() -> st.SearchStrategy[Callable[[Run], None]]:
    def event(method: Callable[..., None], *arguments: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        return st.tuples(st.just(method), *arguments)

    return st.one_of(
        event(Run.produce, st.sampled_from([-1, 1])),
        event(Run.produce, st.sampled_from([-1, 1])),
        event(Run.produce_to, NODE),
        event(Run.step, st.integers(1, 5)),
        event(Run.step, st.integers(1, 5)),
        event(Run.wait, st.sampled_from([0, 500, 1_000, 4_500])),
        event(Run.elect, NODE, PUBLISH_TO),
        event(Run.kill, NODE),
        event(Run.start, NODE),
        event(Run.fence_killed, PUBLISH_TO),
        event(Run.cut, PAIR),
        event(Run.heal),
        event(Run.publish_metadata, PUBLISH_TO),
        event(Run.set_controller_reachable, st.booleans()),
    )


@settings(max_examples=100)
@given(st.integers(1, 2), st.lists(_events(), max_size=40))
def test_logs_match_and_no_committed_record_is_lost(
    min_isr: int, events: list[tuple[Callable[..., None], ...]]
) -> None:
    run = Run(min_isr)
    for method, *arguments in events:
        method(run, *arguments)
        run.check()
    run.recover_and_check()
