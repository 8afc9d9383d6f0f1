"""Mistakes that have been made in consensus protocols, each with the scenarios of the quorum that are made to show it.

Most are the defects of `chaos.defects` that the quorum alone can have. The others are here: a whole cluster seldom
shows them, or takes long to. Each shows in a fifth of its scenarios at least, so that no seed has to be looked for. The
clean quorum runs them all in silence.
"""

from collections.abc import Callable, Mapping

from chaos.defects.defect import Area, Defect
from chaos.defects.registry import defect
from reference_broker.core.quorum.election_state import ElectionState, ElectionStateStore
from reference_broker.core.quorum.quorum_log import QuorumLog
from tests.reference_broker.quorum.simulation.scenario import Scenario

_write = ElectionStateStore.write
_seeds = Area.QUORUM.seeds


@_seeds(ElectionStateStore, "write", "quorum-one-leader")
def forget_the_vote(self, election):
    _write(self, ElectionState(election.epoch, election.leader_id, None))


@_seeds(QuorumLog, "truncate_to_end_offset", "quorum-log-matching", source="KIP-595")
def keep_records_that_the_leader_lacks(_self, _divergence, _now_ms):
    pass


@_seeds(QuorumLog, "install_snapshot", "exception")
def drop_the_log_before_the_snapshot(self, snapshot_id, data, now_ms):
    self._log.truncate_fully_and_start_at(snapshot_id.offset, now_ms)
    self.snapshots.store(snapshot_id, data)
    self.snapshots.delete_before(snapshot_id)


@_seeds(QuorumLog, "install_snapshot", "quorum-log-matching")
def keep_the_log_under_a_snapshot(self, snapshot_id, data, _now_ms):
    self.snapshots.store(snapshot_id, data)


SCENARIOS: Mapping[Defect, Callable[[int], Scenario]] = {
    defect("commit-an-older-epoch-by-count"): Scenario.draw_power_cuts,
    defect("count-half-as-a-majority"): Scenario.draw_power_cuts,
    defect("win-without-a-majority"): Scenario.draw_power_cuts,
    defect("vote-without-comparing-logs"): Scenario.draw,
    defect("pre-vote-without-comparing-logs"): Scenario.draw,
    defect("vote-twice"): Scenario.draw_duels,
    forget_the_vote: Scenario.draw_duels,
    defect("forget-the-epoch"): Scenario.draw_power_cuts,
    defect("stand-again-after-a-restart"): Scenario.draw_power_cuts,
    keep_records_that_the_leader_lacks: Scenario.draw_power_cuts,
    defect("see-no-divergence-of-the-quorum"): Scenario.draw_power_cuts,
    defect("acknowledge-metadata-before-the-flush"): Scenario.draw_power_cuts,
    defect("never-resign"): Scenario.draw_silences,
    drop_the_log_before_the_snapshot: Scenario.draw_installations,
    keep_the_log_under_a_snapshot: Scenario.draw_power_cuts,
}
