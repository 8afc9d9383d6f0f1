"""Record of elections that may validly lose acknowledged records.

There are two kinds. An unclean election is permitted by a setting or requested by an administrator. In the other kind,
a replica has lost content while it was in sync. The controller keeps that replica in the ISR until its broker registers
again. Without KIP-966, the replica may be elected before that, or it may be the only replica in the ISR.

The invariants detect both kinds (`Ledger.void_below_epoch`). This module records them in the history for the checkers.
"""

from linearizability.history.recorder import Recorder
from reference_broker.simulation.invariants import Invariants
from reference_broker.simulation.invariants.watch import Before, Observer, PartitionKey, Replica, Watched


class UncleanElections(Observer):
    """Observer that records elections that may lose records. The invariants run first and update the ledgers."""

    def __init__(self, invariants: Invariants, recorder: Recorder) -> None:
        self._ledgers = invariants.partitions.ledgers
        self._recorder = recorder
        self._known: dict[PartitionKey, int] = {}
        invariants.watch.observers.append(self)

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Record an election whose leader may lack acknowledged records."""
        ledger = self._ledgers.get(replica.key)
        if ledger is None or ledger.void_below_epoch == self._known.get(replica.key, 0):
            return
        self._known[replica.key] = ledger.void_below_epoch
        with self._recorder.fault("election", replica.name[0], "unclean: the new leader may lack acknowledged records"):
            pass
