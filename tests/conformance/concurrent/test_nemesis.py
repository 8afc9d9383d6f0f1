"""Nemesis: its actions on a target, their order in the history, and the restoration of the target."""

import itertools
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from conformance.concurrent.nemesis import Moves, Nemesis
from conformance.concurrent.trial_context import Replicas, ScriptNotRunError, TrialContext
from conformance.trial.moves import (
    AwaitBrokers,
    Begin,
    ElectLeader,
    Heal,
    ProbeLeaderEpochs,
    StartBroker,
    StopBroker,
)
from fixtures.clients.call_results import CallResult, EpochEnd
from fixtures.clients.stage import THREADS
from fixtures.clients.steps import Idle
from fixtures.clients.transport import SOCKETS
from fixtures.faults import CutConnections, Damage, DamageDisk, Kill, Lost, Pause, Role, ShutDown
from fixtures.faults.places import InitialRoles
from fixtures.targets.target import Node, TargetError
from linearizability.operation import Outcome

LEADER, FOLLOWER = Role.FIRST_REPLICA, Role.SECOND_REPLICA


class Target:
    """Fake target and recorder in one object, which notes all actions in `done`.

    `[kill 2` and `kill 2]` are the begin and the end of the fault in the history; `kill 2` is the action on the node.
    """

    name = "fake"
    transport, stage = SOCKETS, THREADS
    nodes = tuple(Node(id_, "127.0.0.1", 9092) for id_ in (1, 2, 3))

    def __init__(self, log_directory=None):
        self.done = []
        self.down = set()
        self.links = SimpleNamespace(cut=self._cut)
        self.processes = SimpleNamespace(
            kill=self._kill, shut_down=self._shut_down, restart=self._restart, pause=self._pause, ended=self._ended
        )
        self.log_directory = log_directory
        self.fails_to_start = False
        self.fails_to_shut_down = False

    def _ended(self):
        return dict.fromkeys(self.down, "killed")

    def _kill(self, node):
        self.done.append(f"kill {node}")
        self.down.add(node)

    def _shut_down(self, node):
        if self.fails_to_shut_down:
            raise TargetError("it did not end")
        self.done.append(f"shut down {node}")
        self.down.add(node)

    def _restart(self, node):
        if self.fails_to_start:
            raise TargetError("no")
        self.done.append(f"restart {node}")
        self.down.discard(node)

    def _pause(self, node):
        return self.noted(f"pause {node}", f"resume {node}")

    def add_broker(self):
        self.nodes = (*self.nodes, Node(4, "127.0.0.1", 9092))
        self.done.append("add 4")
        return self.nodes[-1]

    def remove_broker(self, node):
        self.nodes = tuple(each for each in self.nodes if each.id != node)
        self.done.append(f"remove {node}")

    def _cut(self, source, destination, listener=None, lost=Lost.REQUESTS):
        return self.noted(f"cut {source}->{destination}", f"heal {source}->{destination}")

    def log_directories(self, node):
        return [self.log_directory]

    def fault(self, kind, target, argument=None):
        return self.noted(f"[{kind} {target}", f"{kind} {target}]")

    @contextmanager
    def noted(self, begin, end):
        self.done.append(begin)
        yield
        self.done.append(end)


@pytest.fixture
def target(tmp_path):
    return Target(tmp_path)


def context_on(target):
    """Return a context in which node 2 leads the only partition, node 3 follows, and node 1 has no replica."""
    return TrialContext(
        target=target,
        recorder=target,
        topic="t",
        topic_ids={},
        replicas={0: Replicas(2, (2, 3))},
        initial_roles=InitialRoles((2, 3), (1, 2, 3)),
        processes=itertools.count(1),
        values=itertools.count(1),
    )


def make(target, *moves):
    with Nemesis(context_on(target)) as nemesis:
        nemesis.make(moves)


def test_a_fault_begins_before_and_ends_after_its_actions(target):
    make(
        target,
        Begin(CutConnections(FOLLOWER, LEADER)),
        Heal(),
        Begin(Pause(Role.OUTSIDER)),
        Heal(Role.OUTSIDER),
    )
    assert target.done == [
        *("[cut 3->2", "cut 3->2", "heal 3->2", "cut 3->2]"),
        *("[pause 1", "pause 1", "resume 1", "pause 1]"),
    ]


def test_a_node_is_down_until_it_is_started(target):
    make(
        target,
        Begin(Kill(LEADER)),
        Heal(LEADER),
        Begin(ShutDown(FOLLOWER)),
        Heal(FOLLOWER),
    )
    assert target.done == [
        *("[kill 2", "kill 2", "restart 2", "kill 2]"),
        *("[shutdown 3", "shut down 3", "shutdown 3]", "[down 3", "restart 3", "down 3]"),
    ]


def test_a_node_without_a_fault_is_not_started(target):
    make(target, Heal(LEADER), Heal(FOLLOWER))
    assert target.done == []


def test_a_node_that_was_killed_and_then_shut_down_is_started_once(target):
    make(target, Begin(Kill(LEADER)), Begin(ShutDown(LEADER)), Heal(LEADER))
    assert target.done[-3:] == ["restart 2", "down 2]", "kill 2]"]
    assert target.done.count("restart 2") == 1
    assert not target.down


def test_a_disk_is_damaged_until_the_node_is_started(target):
    (target.log_directory / "t-0").mkdir()
    make(
        target,
        Begin(Kill(LEADER)),
        Begin(DamageDisk(LEADER, Damage.REPLICA)),
        Heal(LEADER),
    )
    assert target.done == ["[kill 2", "kill 2", "[wipe 2", "restart 2", "wipe 2]", "kill 2]"]
    assert not (target.log_directory / "t-0").exists()


def test_remaining_faults_are_healed_at_the_end(target):
    make(
        target,
        Begin(Kill(LEADER)),
        Begin(Pause(FOLLOWER)),
        Begin(CutConnections(Role.CLIENTS, LEADER)),
    )
    assert {"restart 2", "resume 3", "heal client->2"} <= set(target.done)


def test_a_broker_that_joined_leaves_once(target):
    make(target, StartBroker())
    make(target, StartBroker(), StopBroker())
    assert target.done == ["add 4", "remove 4"] * 2


def test_faults_are_healed_if_a_move_cannot_be_made(target):
    with pytest.raises(ScriptNotRunError, match="no node has the role third-replica for the topic"):
        make(target, Begin(Kill(LEADER)), Begin(Pause(Role.THIRD_REPLICA)))
    assert target.done[-2:] == ["restart 2", "kill 2]"]


def test_a_move_that_the_target_rejects_ends_the_script(target):
    target.fails_to_shut_down = True
    with pytest.raises(ScriptNotRunError, match="it did not end"):
        make(target, Begin(ShutDown(LEADER)))


def test_a_fault_of_a_node_without_process_control_ends_the_script(target):
    del target.processes
    with pytest.raises(ScriptNotRunError, match="fake has no processes to control"):
        make(target, Begin(CutConnections(FOLLOWER, LEADER)), Begin(Kill(LEADER)))
    assert target.done[-2:] == ["heal 3->2", "cut 3->2]"]


@pytest.mark.parametrize("move", [ElectLeader(), AwaitBrokers(3)])
def test_a_request_without_a_running_node_ends_the_script(target, move):
    with pytest.raises(ScriptNotRunError, match="no node is up"):
        make(target, *(Begin(Kill(node)) for node in (1, 2, 3)), move)


def test_a_node_that_does_not_start_leaves_its_fault_open(target):
    target.fails_to_start = True
    make(
        target,
        Begin(Kill(LEADER)),
        Heal(LEADER),
        Begin(CutConnections(FOLLOWER, LEADER)),
    )
    assert "kill 2]" not in target.done
    assert target.done[-1] == "cut 3->2]"


def test_the_first_cuts_hold_before_the_clients_begin(target):
    moves = Moves(
        context_on(target),
        (Begin(CutConnections(FOLLOWER, LEADER)), Idle(0), Begin(Kill(LEADER))),
    )
    moves()
    moves.await_in_force()
    assert moves.link_faults == [Begin(CutConnections(FOLLOWER, LEADER))]


def test_clients_that_trickle_end_with_the_nemesis(target):
    context = context_on(target)
    assert not context.nemesis_done.is_set()
    Moves(context, ())()
    assert context.nemesis_done.is_set()


def test_clients_end_even_if_a_move_cannot_be_made(target):
    context = context_on(target)
    with pytest.raises(ScriptNotRunError):
        Moves(context, (Begin(Kill(Role.THIRD_REPLICA)),))()
    assert context.nemesis_done.is_set()


def test_clients_that_wait_for_a_node_fault_continue_after_it(target):
    context = context_on(target)
    with Nemesis(context) as nemesis:
        nemesis.make([Begin(CutConnections(FOLLOWER, LEADER)), Begin(ShutDown(Role.OUTSIDER))])
        assert not context.node_failed.is_set()
        nemesis.make([Begin(Pause(LEADER))])
        assert context.node_failed.is_set()


def test_clients_that_wait_for_a_node_fault_continue_after_the_last_move(target):
    context = context_on(target)
    Moves(context, ())()
    assert context.node_failed.is_set()


class Slow:
    """Fake client of a node. From request number `requests_min` on, it returns all brokers and a leader epoch."""

    def __init__(self, requests_min):
        self.requests_min = requests_min
        self.requests = 0
        self.probes = []

    def _knows(self):
        self.requests += 1
        return self.requests >= self.requests_min

    def describe_cluster(self):
        return CallResult(Outcome.OK, None, SimpleNamespace(brokers=[1, 2, 3] if self._knows() else [1, 2]))

    def list_offsets(self, topic, partition):
        return SimpleNamespace(leader_epoch=4 if self._knows() else None)

    def find_epoch_end(self, topic, partition, epoch):
        return EpochEnd(Outcome.INFO, "NETWORK_EXCEPTION")

    def read_in_epoch(self, topic, partition, epoch, suffix):
        self.probes.append((epoch, suffix))


@pytest.fixture
def slow_nodes(monkeypatch):
    nodes = {1: Slow(1), 2: Slow(3), 3: Slow(2)}
    monkeypatch.setattr(Nemesis, "_client", lambda _, node: nodes[node])
    monkeypatch.setattr("conformance.concurrent.nemesis._RETRY_BACKOFF_S", 0)
    return nodes


def test_a_wait_lasts_until_every_running_node_reports_it(target, slow_nodes):
    make(target, AwaitBrokers(3))
    assert all(node.requests >= node.requests_min for node in slow_nodes.values())


def test_nodes_that_are_down_are_not_waited_for(target, slow_nodes):
    make(target, Begin(Kill(LEADER)), AwaitBrokers(3))
    assert slow_nodes[2].requests == 0


def test_a_leader_without_a_known_epoch_is_queried_until_it_has_one(target, slow_nodes):
    make(target, ProbeLeaderEpochs(LEADER))
    assert slow_nodes[2].probes == [(3, "in_old_epoch"), (5, "in_epoch_to_come")]


def test_a_leader_in_its_first_epoch_is_queried_once_and_gets_no_probes(target, slow_nodes):
    slow_nodes[2].list_offsets = lambda topic, partition: queried.append(topic) or SimpleNamespace(leader_epoch=0)
    queried = []
    make(target, ProbeLeaderEpochs(LEADER))
    assert len(queried) == 1
    assert slow_nodes[2].probes == []
