"""What a run has reached: a count of each state and transition that a campaign wants to see."""

from collections import Counter

from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.invariants.log_mirror import LogChange
from reference_broker.simulation.invariants.watch import Before, Replica, Watch, Watched


class Coverage:
    """Counts from now on.

    :param watch: of the invariants, if there are any: then each event is looked at once.
    """

    def __init__(self, cluster: SimulatedCluster, watch: Watch | None = None) -> None:
        self.counts: Counter[str] = Counter()
        (watch or Watch(cluster)).observers.append(self)

    def started(self, watched: Watched) -> None:
        """A node has started."""
        self.counts["node-started"] += 1

    def ended(self, watched: Watched) -> None:
        """A node has ended."""
        self.counts[f"node-ended:{watched.machine.ended_by}"] += 1

    def quorum_changed(self, watched: Watched) -> None:
        """The quorum."""

    def metadata_advanced(self, watched: Watched, from_offset: int) -> None:
        """The metadata."""

    def opened(self, watched: Watched, replica: Replica, log: LogChange) -> None:
        """A log was opened."""

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """A replica has changed."""

    def gone(self, watched: Watched, replica: Replica) -> None:
        """A replica is gone."""
