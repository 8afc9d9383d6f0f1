"""Mistakes that have been made in consensus protocols, each as a replacement of one function of the quorum.

A defect is caught if scenarios with it violate an invariant. Each names the scenarios that are made to show it, and
shows in a fifth of them at least, so that no seed has to be looked for. The clean quorum runs them all in silence.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from reference_broker.core.log.partition_log import PartitionLog
from reference_broker.core.quorum import answers, outcomes
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.election_state import ElectionStateStore
from reference_broker.core.quorum.leadership import Leadership
from reference_broker.core.quorum.messages import NO_LEADER
from reference_broker.core.quorum.node import QuorumNode
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.states import Ballot, Prospective, Unattached, grants_vote
from tests.reference_broker.quorum.simulation.scenario import Scenario


@dataclass(frozen=True)
class Defect:
    name: str
    owner: Any
    attribute: str
    replacement: Callable[..., Any] | property
    draw: Callable[[int], Scenario]

    @contextmanager
    def seeded(self) -> Iterator[None]:
        with patch.object(self.owner, self.attribute, self.replacement):
            yield


def _commit_older_epoch_by_count(_self, _offset):
    return True


def _vote_without_comparing_logs(_self, _other):
    return True


_write = ElectionStateStore.write


def _forget_the_vote(self, election):
    _write(self, type(election)(election.epoch, election.leader_id, None))


def _forget_the_epoch(self, election):
    if election.leader_id != NO_LEADER:
        _write(self, election)


def _do_nothing(*_args, **_kwargs):
    return None


def _vote_for_everybody(state, candidate, *, is_log_up_to_date, pre_vote):
    if isinstance(state, Unattached | Prospective) and not pre_vote:
        return is_log_up_to_date
    return grants_vote(state, candidate, is_log_up_to_date=is_log_up_to_date, pre_vote=pre_vote)


def _pre_vote_without_comparing_logs(state, candidate, *, is_log_up_to_date, pre_vote):
    return grants_vote(state, candidate, is_log_up_to_date=is_log_up_to_date or pre_vote, pre_vote=pre_vote)


def _no_divergence(_self, _offset, _epoch):
    return None


def _minority(self):
    end_offsets = sorted((progress.end_offset for progress in self._progress.values()), reverse=True)
    return end_offsets[max(self._voters.majority - 2, 0)]


def _is_won_by_minority(self):
    return len(self.granting) >= self._voters.majority - 1


def _an_age(_self):
    return 1_000_000_000


def _keep_leading_after_restart(self, now):
    state = _initial_state(self, now)
    if isinstance(state, outcomes.Resigned):
        voted = self.local
        return outcomes.Candidate(state.epoch, voted, now.monotonic_ms, self._ballot())
    return state


_initial_state = QuorumNode._initial_state


def _keep_the_log_under_a_snapshot(self, snapshot_id, data, _now_ms):
    self.snapshots.store(snapshot_id, data)


def _drop_the_log_before_the_snapshot(self, snapshot_id, data, now_ms):
    self._log.begin_again_at(snapshot_id.offset, now_ms)
    self.snapshots.store(snapshot_id, data)
    self.snapshots.delete_before(snapshot_id)


DEFECTS = (
    Defect(
        "commit-older-epoch-by-count", Leadership, "_may_commit", _commit_older_epoch_by_count, Scenario.draw_power_cuts
    ),
    Defect("count-half-as-majority", Leadership, "_reached_by_majority", _minority, Scenario.draw_power_cuts),
    Defect("win-without-majority", Ballot, "is_won", property(_is_won_by_minority), Scenario.draw_power_cuts),
    Defect("vote-without-comparing-logs", QuorumLog, "is_behind_or_equal", _vote_without_comparing_logs, Scenario.draw),
    Defect("pre-vote-without-comparing-logs", answers, "grants_vote", _pre_vote_without_comparing_logs, Scenario.draw),
    Defect("vote-twice", answers, "grants_vote", _vote_for_everybody, Scenario.draw_duels),
    Defect("forget-the-vote", ElectionStateStore, "write", _forget_the_vote, Scenario.draw_duels),
    Defect("forget-the-epoch", ElectionStateStore, "write", _forget_the_epoch, Scenario.draw_power_cuts),
    Defect(
        "lead-again-after-restart", QuorumNode, "_initial_state", _keep_leading_after_restart, Scenario.draw_power_cuts
    ),
    Defect("skip-truncation", PartitionLog, "truncate_to", _do_nothing, Scenario.draw_power_cuts),
    Defect("see-no-divergence", QuorumLog, "divergence_of", _no_divergence, Scenario.draw_power_cuts),
    Defect("acknowledge-before-flush", QuorumLog, "flush", _do_nothing, Scenario.draw_power_cuts),
    Defect("never-resign", QuorumConfig, "check_quorum_timeout_ms", property(_an_age), Scenario.draw_silences),
    Defect(
        "drop-the-log-before-the-snapshot",
        QuorumLog,
        "install_snapshot",
        _drop_the_log_before_the_snapshot,
        Scenario.draw_installations,
    ),
    Defect(
        "keep-the-log-under-a-snapshot",
        QuorumLog,
        "install_snapshot",
        _keep_the_log_under_a_snapshot,
        Scenario.draw_power_cuts,
    ),
)
