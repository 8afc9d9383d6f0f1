"""Any mixture of elections, crashes, cuts and late news: logs match, and what was acknowledged is never lost.

The model is a list: what was acknowledged with acks=all, and what a leader has once held below its high watermark, each
record at its offset. Elections are clean and disks keep what was written, as Kafka demands for its promise.
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
NEWS = st.sets(NODE)


class Run:
    """A group, what was promised of it, and what can happen to it."""

    def __init__(self, min_isr: int) -> None:
        self.group = Group(3, min_isr=min_isr)
        self.committed: dict[int, str] = {}
        self._produced: list[Produced] = []
        self._values = 0
        self._watermarks: dict[tuple[int, int], int] = {}
        """Of a run of a broker, in a leader epoch: what is remembered of it over a restart may be old."""

    # What can happen

    def produce(self, acks: int) -> None:
        leader = self.group.state.leader
        if leader in self.group.members:
            self._values += 1
            self._produced.append(self.group.produce(f"v{self._values}", acks=acks, timeout_ms=2_000))

    def produce_to(self, node: int) -> None:
        """Perhaps to one that does not know that it was deposed."""
        if node in self.group.members:
            self._values += 1
            self._produced.append(self.group.produce(f"v{self._values}", to=node, timeout_ms=2_000))

    def kill(self, node: int) -> None:
        if node in self.group.members:
            self.group.kill(node)

    def start(self, node: int) -> None:
        if node not in self.group.members:
            self.group.start(node)
            self.group.tell({node})

    def fence_the_dead(self, news: set[int]) -> None:
        """As the controller does: out of the ISR, unless nobody would be left; a leader is elected among the others."""
        state, alive = self.group.state, set(self.group.members)
        isr = tuple(node for node in state.isr if node in alive)
        leader = state.leader if state.leader in alive else next(iter(isr), NO_LEADER)
        isr = isr or state.isr[:1]
        if (leader, isr) != (state.leader, state.isr):
            epoch = state.leader_epoch + (leader != state.leader)
            self.group.change(leader=leader, leader_epoch=epoch, isr=isr, tell=news)

    def elect(self, node: int, news: set[int]) -> None:
        if node in self.group.state.isr and node in self.group.members:
            self.group.elect(node, tell=news)

    def cut(self, pair: tuple[int, int]) -> None:
        self.group.cut(*pair)

    def heal(self) -> None:
        self.group.heal()

    def reach_controller(self, can: bool) -> None:
        self.group.is_controller_reachable = can

    def tell(self, news: set[int]) -> None:
        self.group.tell(news)

    def step(self, times: int) -> None:
        for _ in range(times):
            self.group.step()

    def wait(self, for_ms: int) -> None:
        self.group.run(for_ms=for_ms)

    # What must hold

    def check(self) -> None:
        self._note_promises()
        logs = {node: self.group.log(node) for node in self.group.members}
        for one in logs.values():
            for other in logs.values():
                assert_matching(one, other)
        leader = self.group.state.leader
        if leader in logs:
            assert_holds(logs[leader], self.committed)

    def _note_promises(self) -> None:
        for produced in self._produced:
            if produced.error is ErrorCode.none and produced.acks == -1:
                self._promise(produced.base_offset, produced.values[0])
        self._produced = [produced for produced in self._produced if produced.error is None]
        for node in self.group.members:
            partition = self.group.partition(node)
            if partition.is_leader:
                reign = self.group.members[node].broker.epoch, partition.leader_epoch
                assert partition.high_watermark >= self._watermarks.get(reign, 0), "the high watermark went back"
                self._watermarks[reign] = partition.high_watermark
                for offset, _, value in self.group.log(node):
                    if offset < partition.high_watermark:
                        self._promise(offset, value)

    def _promise(self, offset: int, value: str) -> None:
        assert self.committed.setdefault(offset, value) == value, "two records at one offset were promised"

    def end_well(self) -> None:
        """Everything heals; then all replicas are the same, in sync, and hold what was promised."""
        self.group.heal()
        self.group.is_controller_reachable = True
        for node in NODES:
            self.start(node)
        self.fence_the_dead(set(NODES))
        if self.group.state.leader == NO_LEADER:
            self.group.elect(self.group.state.isr[0])
        self.group.tell()
        self.group.run(for_ms=20_000)
        self.check()
        first, *others = (self.group.log(node) for node in NODES)
        assert all(other == first for other in others)
        assert set(self.group.state.isr) == set(NODES)


def assert_matching(one: list[tuple[int, int, str]], other: list[tuple[int, int, str]]) -> None:
    """Where two logs have a record of the same epoch at an offset, they are the same up to there."""
    common = [index for index, (left, right) in enumerate(zip(one, other, strict=False)) if left[:2] == right[:2]]
    end = common[-1] + 1 if common else 0
    assert one[:end] == other[:end]


def assert_holds(log: list[tuple[int, int, str]], promised: dict[int, str]) -> None:
    held = {offset: value for offset, _, value in log}
    lost = {offset: value for offset, value in promised.items() if held.get(offset) != value}
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
        event(Run.elect, NODE, NEWS),
        event(Run.kill, NODE),
        event(Run.start, NODE),
        event(Run.fence_the_dead, NEWS),
        event(Run.cut, PAIR),
        event(Run.heal),
        event(Run.tell, NEWS),
        event(Run.reach_controller, st.booleans()),
    )


@settings(max_examples=100)
@given(st.integers(1, 2), st.lists(_events(), max_size=40))
def test_logs_match_and_nothing_promised_is_lost(min_isr: int, events: list[tuple[Callable[..., None], ...]]) -> None:
    run = Run(min_isr)
    for method, *arguments in events:
        method(run, *arguments)
        run.check()
    run.end_well()
