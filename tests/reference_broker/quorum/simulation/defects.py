"""Defects of consensus protocols, each with the scenarios that detect it.

Most of them are the defects of `chaos.defects` that concern the quorum. The others are defined here, because they are
rarely detected in a complete cluster. Each defect is detected in at least a fifth of its scenarios, so no seed has to
be selected. Without a defect, all these scenarios pass.
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


SCENARIOS: Mapping[Defect, Callable[[int], Scenario]] = {
    defect("commit-an-older-epoch-by-count"): Scenario.generate_power_cuts,
    defect("count-half-as-a-majority"): Scenario.generate_power_cuts,
    defect("win-without-a-majority"): Scenario.generate_power_cuts,
    defect("vote-without-comparing-logs"): Scenario.generate,
    defect("pre-vote-without-comparing-logs"): Scenario.generate,
    defect("vote-twice"): Scenario.generate_duels,
    forget_the_vote: Scenario.generate_duels,
    defect("forget-the-epoch"): Scenario.generate_power_cuts,
    defect("stand-again-after-a-restart"): Scenario.generate_power_cuts,
    keep_records_that_the_leader_lacks: Scenario.generate_power_cuts,
    defect("see-no-divergence-of-the-quorum"): Scenario.generate_power_cuts,
    defect("acknowledge-metadata-before-the-flush"): Scenario.generate_power_cuts,
    defect("never-resign"): Scenario.generate_silences,
    drop_the_log_before_the_snapshot: Scenario.generate_installations,
    defect("keep-the-log-under-a-snapshot"): Scenario.generate_power_cuts,
}
