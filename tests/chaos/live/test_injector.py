"""Execution of a schedule, in simulated time, on a scripted target of three nodes that records every action."""

import contextlib
import errno
from types import SimpleNamespace

import pytest

from chaos.live.injector import Injector
from chaos.live.watch import PartitionSeen, TopicPartition, View
from fixtures.faults import (
    ClockDrift,
    Configure,
    Cut,
    CutConnections,
    CutShort,
    DamageDisk,
    Held,
    HoldRequests,
    Isolate,
    Kill,
    LimitMemory,
    Listener,
    Lost,
    Pause,
    PowerCut,
    Refuse,
    RestartWith,
    Role,
    ShutDown,
    Slice,
    StaleCopy,
    Starve,
    Timed,
    Unregister,
    Upgrade,
    Wipe,
)
from fixtures.faults.damage import Damage
from fixtures.targets.controls import Barrier, Direction, LinkCondition
from fixtures.targets.target import TargetError
from tests.chaos.live.clock import Clock

A0, B0 = TopicPartition("a", 0), TopicPartition("b", 0)


class Cancelled:
    """Event that is set at the time `at_s`, or never if `at_s` is None."""

    def __init__(self, clock, at_s=None):
        self._clock, self._at_s = clock, at_s

    def wait(self, seconds=None):
        self._clock.sleep(seconds)
        return self.is_set()

    def is_set(self):
        return self._at_s is not None and self._clock.now_s >= self._at_s


class Stage:
    """Stage that runs an action at once."""

    def start(self, action):
        action()
        return SimpleNamespace(result=lambda: None)


class Target:
    """Target with every control, which records each action and its time."""

    name = "scripted"
    stage = Stage()

    def __init__(self, clock, directory):
        self.transport = clock
        self.nodes = [SimpleNamespace(id=node) for node in (1, 2, 3)]
        self.done = []
        self.down = {}
        self.processes = self
        self.disks = SimpleNamespace(cut_power=self._cut_power)
        self.links = SimpleNamespace(
            cut=lambda *what: self._while("cut", *what),
            impair=self._impair,
            reject_connections=lambda direction: self._while("reject", direction),
        )
        self.requests = SimpleNamespace(
            hold=lambda direction, api_keys, *, delay_ms, held: self._while("hold", direction, api_keys, delay_ms, held)
        )
        self.limits = SimpleNamespace(
            starve=lambda node, cpu_per_mille: self._while("starve", node, cpu_per_mille),
            limit_memory=lambda node, bytes_max: self._while("limit memory", node, bytes_max),
        )
        self._directory = directory

    def _do(self, *action):
        self.done.append((round(self.transport.now_s, 3), *action))

    def kill(self, node):
        self._do("kill", node)
        self.down[node] = "killed"

    def send_sigterm(self, node):
        self._do("sigterm", node)

    def launch(self, node):
        assert node in self.down
        self._do("launch", node)
        del self.down[node]

    def ended(self):
        return dict(self.down)

    @contextlib.contextmanager
    def pause(self, node):
        self._do("pause", node)
        yield
        self._do("resume", node)

    @contextlib.contextmanager
    def _impair(self, directions, condition):
        self._do("impair", set(directions), condition)
        yield
        self._do("heal")

    @contextlib.contextmanager
    def _while(self, *fault):
        self._do(*fault)
        yield
        self._do("heal", fault[0])

    def configure(self, node, name, value):
        self._do("configure", node, name, value)

    def set_version(self, node, version):
        self._do("set_version", node, version)

    def _cut_power(self, nodes, unflushed, seed):
        self._do("cut power", *nodes)
        self.down.update(dict.fromkeys(nodes, "no power"))

    def log_directories(self, node):
        return [self._directory]


class Recorder:
    def __init__(self, clock):
        self._clock, self.rows = clock, []

    def now_ns(self):
        return int(self._clock.now_s * 1e9)

    @contextlib.contextmanager
    def fault(self, kind, target, argument=None):
        began_s = self._clock.now_s
        yield
        self.rows.append((kind, target, argument, round(began_s, 3), round(self._clock.now_s, 3)))


class Administered:
    """Client whose requests always succeed."""

    def __init__(self, target):
        self._target = target

    def administer(self, request, *, timeout_ms):
        arguments = {name: value for name, value in request.build.keywords.items() if name != "validate_only"}
        self._target._do(request.f, *arguments.values())
        return SimpleNamespace(error=None)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def target(clock, tmp_path):
    return Target(clock, tmp_path)


@pytest.fixture
def view():
    view = View({"a": 1})
    view.update(A0, PartitionSeen(1, 5, (1, 2, 3), (1, 2, 3), by_leader=True, at_ns=0))
    return view


@pytest.fixture
def inject(clock, target, view):
    def inject(*schedule, cancelled_at_s=None, flushed=(), recover=None, view=view):
        recorder = Recorder(clock)
        client = contextlib.nullcontext(Administered(target))
        context = SimpleNamespace(target=target, recorder=recorder, topic="a", raw_client=lambda *_, **__: client)
        cancelled = Cancelled(clock, cancelled_at_s)
        injector = Injector(
            target, context, view, schedule, 1_000, 0, cancelled, flushed_topics=flushed, recover=recover
        )
        injector()
        return SimpleNamespace(
            rows=recorder.rows,
            injected=injector.injected,
            found=[each.found for each in injector.injected],
            nodes=injector.nodes,
        )

    return inject


def test_a_fault_begins_after_the_steady_phase_and_ends_in_time(inject, target):
    result = inject(Timed(500, Kill(Role.LEADER), 2_000), Timed(1_000, Pause(2), 100))
    assert target.done == [(1.5, "kill", 1), (2.0, "pause", 2), (2.1, "resume", 2), (3.5, "launch", 1)]
    assert result.rows == [("pause", "2", None, 2.0, 2.1), ("kill", "1", None, 1.5, 3.5)]
    assert result.found == [True, True]


def test_without_a_fault_in_force_the_schedule_waits_for_recovery(inject, target, clock):
    inject(
        *(Timed(0, Kill(1), 1_000), Timed(500, Kill(2), 1_000), Timed(2_000, Kill(3), 100), Timed(2_600, Kill(1), 100)),
        recover=lambda: clock.sleep(7),
    )
    killed = [each for each in target.done if each[1] == "kill"]
    assert killed == [(1.0, "kill", 1), (1.5, "kill", 2), (10.0, "kill", 3), (17.6, "kill", 1)]


def test_a_node_starts_when_the_last_of_several_faults_is_over(inject, target):
    result = inject(Timed(0, Kill(1), 1_000), Timed(500, ShutDown(1), 2_000))
    assert [each for each in target.done if each[1] == "launch"] == [(3.5, "launch", 1)]
    assert {row[:2]: row[3:] for row in result.rows} == {("kill", "1"): (1.0, 3.5), ("shutdown", "1"): (1.5, 3.5)}


def test_a_paused_node_is_not_resumed_by_the_end_of_another_pause(inject, target):
    result = inject(Timed(0, Pause(1), 2_000), Timed(500, Pause(1), 100))
    assert target.done == [(1.0, "pause", 1), (3.0, "resume", 1)]
    assert result.found == [True, False]


def test_a_fault_that_fails_is_recorded_and_the_schedule_continues(inject, target, monkeypatch):
    def fail(node, rate_ppm):
        raise TargetError("the clock of node 1 drifts already")

    monkeypatch.setattr(target, "clocks", SimpleNamespace(drift=fail), raising=False)
    result = inject(Timed(0, ClockDrift(1, 500), 100), Timed(200, Kill(1), 100))
    assert [each.rejection for each in result.injected] == ["the clock of node 1 drifts already", ""]
    assert [row[0] for row in result.rows] == ["clock", "kill"], "the row of a failed fault ends at once"
    assert result.rows[0][3] == result.rows[0][4]


def test_a_disk_that_fails_is_not_damaged_further(inject, target, monkeypatch):
    def fail(directories):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("fixtures.faults.replica_files.wipe", fail)
    assert inject(Timed(0, Wipe(1), 100)).found == [True]
    assert not target.down


def test_a_broker_outside_every_isr_is_restarted(inject, target, view):
    result = inject(Timed(0, Unregister(2), 1_000))
    view.update(A0, PartitionSeen(1, 6, (1, 3), (1, 2, 3), by_leader=True, at_ns=0))
    result.nodes.restart_missing()
    assert target.done[-2:] == [(2.0, "kill", 2), (2.0, "launch", 2)]
    assert result.rows[-1][:2] == ("kill", "2")
    assert not target.down


def test_network_faults_name_directions(inject, target):
    inject(Timed(0, Cut(1, 3, listener=Listener.REPLICATION), 500), Timed(0, Isolate(Role.CONTROLLER), 500))
    holds = LinkCondition(Barrier.HOLDS)
    assert target.done == [(1.0, "impair", {Direction(1, 3, Listener.REPLICATION)}, holds), (1.5, "heal")]


def test_a_power_cut_hits_all_nodes_at_one_moment(inject, target):
    result = inject(Timed(0, PowerCut(), 500))
    assert target.done == [(1.0, "cut power", 1, 2, 3), *((1.5, "launch", node) for node in (1, 2, 3))]
    assert {row[0] for row in result.rows} == {"power"}


def test_power_that_cannot_be_cut_leaves_no_node_down(inject, target, monkeypatch):
    def fail(nodes, unflushed, seed):
        raise TargetError("node 1 has no disk")

    monkeypatch.setattr(target.disks, "cut_power", fail)
    inject(Timed(0, PowerCut((1,)), 100), Timed(200, Kill(1), 100))
    assert [each[1:] for each in target.done] == [("kill", 1), ("launch", 1)]


def test_a_setting_is_reverted(inject, target):
    inject(Timed(0, Configure("min.insync.replicas", "1"), 500))
    assert target.done == [
        (1.0, "alter_configs", "a", "min.insync.replicas", "1"),
        (1.5, "alter_configs", "a", "min.insync.replicas", None),
    ]


def test_every_fault_is_healed_after_a_cancellation(inject, target):
    result = inject(Timed(0, Kill(1), 9_000), Timed(100, Pause(2), 9_000), Timed(5_000, Kill(3), 1), cancelled_at_s=1.5)
    assert [each[1:] for each in target.done] == [("kill", 1), ("pause", 2), ("resume", 2), ("launch", 1)]
    assert len(result.rows) == 2


def test_a_node_that_ended_by_itself_is_recorded_and_started(inject, target):
    target.down[2] = "OutOfMemoryError"
    result = inject(Timed(0, Kill(1), 100))
    assert result.nodes.deaths == {2: "OutOfMemoryError"}
    assert not target.down


@pytest.mark.parametrize(("isr", "is_recorded"), [((1,), True), ((1, 2), False), ((2,), False)])
def test_a_lost_log_of_the_last_in_sync_replica_counts_as_unclean_election(inject, view, isr, is_recorded):
    view.update(A0, PartitionSeen(1, 6, isr, (1, 2, 3), by_leader=True, at_ns=1))
    result = inject(Timed(0, Wipe(1), 500))
    assert any(row[0] == "election" and "unclean" in row[2] for row in result.rows) is is_recorded


@pytest.mark.parametrize(
    ("fault", "topics"),
    [
        (PowerCut((1,)), ["b"]),
        (Wipe(1), ["b"]),
        (DamageDisk(1, Damage.CHECKPOINTS), ["b"]),
        (DamageDisk(1, Damage.REPLICA), []),
        (DamageDisk(1, Damage.INDEXES), []),
        (CutShort(1), []),
    ],
)
def test_every_topic_that_lost_records_counts_as_unclean_election(inject, target, fault, topics):
    view = View({"a": 1, "b": 1})
    view.update(A0, PartitionSeen(2, 6, (1, 2, 3), (1, 2, 3), by_leader=True, at_ns=1))
    view.update(B0, PartitionSeen(1, 6, (1,), (1, 2, 3), by_leader=True, at_ns=1))
    result = inject(Timed(0, fault, 500), view=view)
    assert [row[1] for row in result.rows if row[0] == "election"] == topics


@pytest.mark.parametrize(("whole", "topics"), [(A0, ["b"]), (B0, [])])
def test_a_full_isr_of_one_partition_has_no_effect_on_another(inject, clock, whole, topics):
    view = View({"a": 1, "b": 1})
    result = inject(Timed(0, Wipe(1), 500), view=view)
    clock.sleep(1)
    view.update(whole, PartitionSeen(2, 6, (1, 2, 3), (1, 2, 3), by_leader=True, at_ns=int(clock.now_s * 1e9)))
    clock.sleep(1)
    view.update(B0, PartitionSeen(1, 7, (1,), (1, 2, 3), by_leader=True, at_ns=int(clock.now_s * 1e9)))
    assert [row[1] for row in result.rows if row[0] == "election"] == topics


@pytest.mark.parametrize(("flushed", "is_recorded"), [((), True), (("b",), True), (("a",), False)])
def test_a_power_cut_loses_nothing_of_a_topic_that_flushes_each_message(inject, view, flushed, is_recorded):
    view.update(A0, PartitionSeen(1, 6, (1,), (1, 2, 3), by_leader=True, at_ns=1))
    result = inject(Timed(0, PowerCut((1,)), 500), flushed=flushed)
    assert any(row[0] == "election" for row in result.rows) is is_recorded


@pytest.mark.parametrize(
    ("fault", "done"),
    [
        (Refuse(Role.CLIENTS, Role.LEADER), ("reject", Direction("client", 1))),
        (CutConnections(2, Role.LEADER), ("cut", 2, 1, Listener.REPLICATION, Lost.REQUESTS)),
        (CutConnections(Role.CLIENTS, 3, Lost.ANSWERS), ("cut", "client", 3, None, Lost.ANSWERS)),
        (HoldRequests(3, 1, (1,), 50), ("hold", Direction(3, 1), (1,), 50, Held.REQUESTS)),
        (Slice(2, 3, 7, both_ways=False), ("impair", {Direction(2, 3)}, LinkCondition(slice_bytes=7))),
        (Starve(Role.LEADER, 20), ("starve", 1, 20)),
        (LimitMemory(2, 1 << 20), ("limit memory", 2, 1 << 20)),
    ],
)
def test_lasting_faults_are_healed(inject, target, fault, done):
    result = inject(Timed(0, fault, 500))
    assert target.done[0] == (1.0, *done)
    assert target.done[1][:2] == (1.5, "heal")
    assert [row[3:] for row in result.rows] == [(1.0, 1.5)]


def test_a_fault_without_its_node_or_link_does_nothing(inject, target):
    assert inject(Timed(0, Refuse(1, Role.LEADER), 500), Timed(0, HoldRequests(9, 1, (0,)), 500)).found == [False] * 2
    assert target.done == []


@pytest.mark.parametrize(
    ("fault", "done"),
    [
        (RestartWith(2, "a.b", "7"), [(1.0, "configure", 2, "a.b", "7"), (1.0, "kill", 2), (1.5, "launch", 2)]),
        (
            Upgrade(2, "4.3.1"),
            [(1.0, "set_version", 2, "4.3.1"), (1.0, "sigterm", 2), (1.5, "kill", 2), (1.5, "launch", 2)],
        ),
    ],
)
def test_a_node_restarts_with_another_setting_or_version(inject, target, fault, done):
    inject(Timed(0, fault, 500))
    assert target.done == done


def test_a_node_that_the_kernel_killed_for_its_memory_is_not_a_violation(inject, target):
    target.down[2] = "killed"
    result = inject(Timed(0, LimitMemory(2, 1), 500))
    assert result.nodes.deaths == {}
    assert target.down == {}


def test_a_stale_copy_has_the_contents_of_its_time(inject, target, view, tmp_path, monkeypatch):
    log = tmp_path / "a-0" / "0.log"
    log.parent.mkdir()
    log.write_text("old")
    launch = Target.launch

    def write_more(self, node):
        launch(self, node)
        log.write_text("newer")

    monkeypatch.setattr(Target, "launch", write_more)
    monkeypatch.setattr(
        "fixtures.faults.replica_files.put_back", lambda _, __, copies: restored.append(read(copies[0]))
    )
    restored = []

    def read(copy):
        return (copy / "a-0" / "0.log").read_text()

    view.update(A0, PartitionSeen(1, 6, (1,), (1, 2, 3), by_leader=True, at_ns=1))
    result = inject(Timed(0, StaleCopy(1), 500))
    assert restored == ["old"]
    assert [each[1:] for each in target.done] == [("kill", 1), ("launch", 1), ("kill", 1), ("launch", 1)]
    assert any(row[0] == "election" for row in result.rows), "the node leads again, and has lost records"


def test_files_are_truncated_while_the_node_is_down(inject, target, monkeypatch):
    monkeypatch.setattr("fixtures.faults.replica_files.cut_short", lambda *what: target._do("cut", *what[1:]))
    inject(Timed(0, CutShort(1, per_mille=250), 500))
    assert target.done == [(1.0, "kill", 1), (1.0, "cut", "a", ".log", 250), (1.5, "launch", 1)]


def test_a_node_that_cannot_be_killed_in_time_is_not_kept_down(inject, target, monkeypatch):
    def kill(self, node):
        self.down[node] = "killed"
        raise TargetError("process 7 was killed and has not ended after 10 s: it waits for its disk")

    monkeypatch.setattr(Target, "kill", kill)
    result = inject(Timed(0, Kill(1), 500))
    assert result.injected[0].rejection.startswith("process 7")
    assert target.down == {}
