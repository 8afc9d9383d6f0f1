"""Faults of the network: links that are cut or slow, connections that are reset."""

from collections.abc import Sequence

from chaos.fault_rows import Heal, begun
from chaos.faults import Cut, HalfOpen, Isolate, Keeps, Listener, Reset, Ring, Slow, Split
from chaos.links import CLIENT, End, end_of, pairs_of
from chaos.simulation.roles import Roles
from linearizability.history.recorder import Recorder
from reference_broker.simulation.cluster import CLIENT as CLIENT_LISTENER
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.links import Condition, Link
from reference_broker.simulation.links import Cut as NetworkCut

_CUTS = {Keeps.BYTES: NetworkCut.HOLD, Keeps.NOTHING: NetworkCut.LOSE}
_LISTENERS = {None: None, Listener.REPLICATION: "REPLICATION", Listener.CONTROLLER: "CONTROLLER"}


class NetworkFaults:
    """Those of one run.

    :param clients: where they stand.
    """

    def __init__(self, cluster: SimulatedCluster, roles: Roles, recorder: Recorder, clients: Sequence[str]) -> None:
        self._cluster = cluster
        self._network = cluster.network
        self._roles = roles
        self._recorder = recorder
        self._places = clients

    def degrade(self, fault: Cut | Isolate | Split | Ring | Slow) -> Heal | None:
        """Cut links, or make them slow; null where none was found."""
        found = pairs_of(fault, list(self._cluster.machines), self._roles.node)
        pairs = [(str(one), str(other)) for one, other in found]
        if not pairs:
            return None
        listener = None
        if isinstance(fault, Slow):
            condition = Condition(None, fault.delay_ms, fault.jitter_ms, fault.bytes_per_ms)
        else:
            condition = Condition(_CUTS[fault.keeps])
            if isinstance(fault, Cut | Isolate):
                listener = _LISTENERS[fault.listener]
        links = [_link(pair, listener) for pair in pairs]
        over = begun(self._recorder, fault, ",".join(f"{source}->{destination}" for source, destination in pairs))
        for link in links:
            self._network.set(link, condition)

        def heal() -> None:
            for link in links:
                self._network.heal(link, condition)
            over.close()

        return heal

    def reset(self, fault: Reset | HalfOpen) -> Heal | None:
        """End connections; null where two ends were not found."""
        one, other = end_of(fault.one, self._roles.node), end_of(fault.other, self._roles.node)
        if one is None or other is None or one == other:
            return None
        over = begun(self._recorder, fault, f"{one}->{other}")
        tells = isinstance(fault, Reset), True
        for first in self._places_of(one):
            for second in self._places_of(other):
                self._network.reset(first, second, tells=tells)
        return over.close

    def _places_of(self, end: End) -> Sequence[str]:
        return self._places if end == CLIENT else [str(end)]


def _link(pair: tuple[str, str], listener: str | None) -> Link:
    """What goes from one end to the other; only clients connect to the listener for clients."""
    if CLIENT not in pair:
        return Link(*pair, listener)
    source, destination = (None if end == CLIENT else end for end in pair)
    return Link(source, destination, CLIENT_LISTENER)
