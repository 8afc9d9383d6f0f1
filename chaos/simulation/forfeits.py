"""Writes down which elections have cost what was promised though nobody is to blame.

They were unclean, as a setting permits or somebody asked for. Or a replica that lost content while it was in sync is in
sync still, as far as the controller knows, until its broker registers again; without KIP-966 it may lead before that,
or be the last that can. The invariants see such an election (`Ledger.void_below_epoch`); the history's own checkers
learn of it here.
"""

from linearizability.history.recorder import Recorder
from reference_broker.simulation.invariants import Invariants
from reference_broker.simulation.invariants.watch import Before, Observer, PartitionKey, Replica, Watched


class Forfeits(Observer):
    """Observes behind the invariants."""

    def __init__(self, invariants: Invariants, recorder: Recorder) -> None:
        self._ledgers = invariants.partitions.ledgers
        self._recorder = recorder
        self._known: dict[PartitionKey, int] = {}
        invariants.watch.observers.append(self)

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """A replica has changed: it may lead."""
        ledger = self._ledgers.get(replica.key)
        if ledger is None or ledger.void_below_epoch == self._known.get(replica.key, 0):
            return
        self._known[replica.key] = ledger.void_below_epoch
        with self._recorder.fault("election", replica.name[0], "unclean: the new leader may lack what was promised"):
            pass
