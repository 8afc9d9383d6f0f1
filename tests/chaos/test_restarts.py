"""The kills that a seed draws, and what a run under load says of a cluster that did not stand it."""

import contextlib
import itertools

import pytest

from chaos.restarts import DOWN_MAX_MS, Killing, RollingRestart, draw_kills
from chaos.under_load import Outcome
from fixtures.targets.replica_logs import Divergence
from fixtures.targets.stored_batches import StoredBatch
from fixtures.targets.target import TargetError
from linearizability.judgement import Anomaly, Evidence, Judgement, Verdict


class Control:
    """Three nodes that remember what was done to them; one may end by itself, or never come back."""

    def __init__(self, ends_by_itself_after=None):
        self.done = []
        self._ends_by_itself_after = ends_by_itself_after

    def kill(self, node):
        self.done.append(("kill", node))

    def shut_down(self, node):
        self.done.append(("shut down", node))

    def restart(self, node):
        self.done.append(("restart", node))

    def ended_nodes(self):
        return {2: "Segmentation fault"} if self._ends_by_itself_after == len(self.done) else {}


class FaultsOnly:
    """A recorder that keeps the faults, with what had been done to the nodes when each began and ended."""

    def __init__(self, control):
        self.control = control
        self.faults = []

    @contextlib.contextmanager
    def fault(self, kind, target):
        began = len(self.control.done)
        yield
        self.faults.append((kind, target, self.control.done[began:]))


def test_a_seed_draws_the_same_kills_of_every_node_at_many_moments():
    kills = list(itertools.islice(draw_kills(7, (1, 2, 3)), 200))
    assert kills == list(itertools.islice(draw_kills(7, (1, 2, 3)), 200))
    assert kills != list(itertools.islice(draw_kills(8, (1, 2, 3)), 200))
    assert {kill.node for kill in kills} == {1, 2, 3}
    assert {kill.when_in_sync for kill in kills} == {True, False}
    assert len({kill.pause_ms for kill in kills}) > 100
    assert max(kill.down_ms for kill in kills) <= DOWN_MAX_MS


@pytest.fixture
def no_sleep(monkeypatch):
    """Time that passes only by sleeping."""
    now = [0.0]
    monkeypatch.setattr("chaos.restarts.time.monotonic", lambda: now[0])
    monkeypatch.setattr("chaos.restarts.time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))


def test_killing_kills_one_node_at_a_time_and_leaves_all_running(no_sleep):
    control = Control()
    recorder = FaultsOnly(control)
    waits = []
    killing = Killing(control, recorder, draw_kills(1, (1, 2, 3)), lambda: waits.append(1) or True, 60.0)
    killing()
    assert killing.injected == len(recorder.faults) > 5
    for kind, target, done in recorder.faults:
        assert (kind, done) == ("kill", [("kill", int(target)), ("restart", int(target))])
    assert 0 < len(waits) < killing.injected + 1, "some kills wait for full ISRs, others do not"


@pytest.mark.parametrize("after", [0, 2])
def test_a_node_that_ends_by_itself_is_not_hidden_by_a_kill(after, no_sleep):
    control = Control(ends_by_itself_after=after)
    with pytest.raises(TargetError, match=r"^node 2 ended by itself: Segmentation fault$"):
        Killing(control, FaultsOnly(control), draw_kills(1, (1, 2, 3)), lambda: True, 60.0)()


def test_a_rolling_restart_goes_on_only_when_the_last_node_has_caught_up():
    control = Control()
    in_sync = iter([True, False])
    with pytest.raises(TargetError, match=r"^node 2 did not catch up after its restart$"):
        RollingRestart(control, FaultsOnly(control), (1, 2, 3), lambda: next(in_sync))()
    assert control.done == [("shut down", 1), ("restart", 1), ("shut down", 2), ("restart", 2)]


def test_everything_that_must_not_be_is_named():
    lost = Anomaly("lost-write", Verdict.VIOLATION, 3, (Evidence((1,), "load", 0, 7, 7, "value 7 is gone"),))
    regress = Anomaly("realtime-order", Verdict.PERMITTED, 1, ())
    batch = StoredBatch(**dict.fromkeys(StoredBatch._fields, 5))
    divergence = Divergence("load-0", ("1", "2"), (batch, None))
    outcome = Outcome(Judgement(9, 9, (lost, regress), ("it did not drain",)), (divergence,), 1, 0, 0.5)
    assert outcome.shortcomings == ("lost-write (3): value 7 is gone", "it did not drain", str(divergence))
    assert Outcome(Judgement(9, 9, (regress,)), (), 1, 0, 0.5).shortcomings == ()
