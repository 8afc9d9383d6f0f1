"""Faults of the network: links that are cut or slow, connections that are reset."""

from collections.abc import Iterable, Sequence

from chaos.faults import Cut, Isolate, Keeps, Listener, Place, Ring, Role, Slow, Split
from chaos.simulation.fault_rows import FaultRows, Heal
from chaos.simulation.roles import Roles
from reference_broker.simulation.cluster import CLIENT, SimulatedCluster
from reference_broker.simulation.links import Condition, Link
from reference_broker.simulation.links import Cut as NetworkCut

_CUTS = {Keeps.BYTES: NetworkCut.HOLD, Keeps.NOTHING: NetworkCut.LOSE}
_LISTENERS = {None: None, Listener.REPLICATION: "REPLICATION", Listener.CONTROLLER: "CONTROLLER"}
_CLIENTS = "client"


class NetworkFaults:
    """Those of one run.

    :param clients: where they stand.
    """

    def __init__(self, cluster: SimulatedCluster, roles: Roles, rows: FaultRows, clients: Sequence[str]) -> None:
        self._cluster = cluster
        self._network = cluster.network
        self._roles = roles
        self._rows = rows
        self._places = clients

    @property
    def _nodes(self) -> list[int]:
        return list(self._cluster.machines)

    def degrade(self, fault: Cut | Isolate | Split | Ring | Slow) -> Heal | None:
        """Cut links, or make them slow; null where none was found."""
        pairs = list(dict.fromkeys(self._pairs(fault)))
        if not pairs:
            return None
        listener = None
        if isinstance(fault, Slow):
            condition = Condition(None, fault.delay_ms, fault.jitter_ms, fault.bytes_per_ms)
            kind, argument = "delay", f"{fault.delay_ms} ms, jitter {fault.jitter_ms} ms"
        else:
            condition = Condition(_CUTS[fault.keeps])
            kind, argument = "cut", f"keeps {fault.keeps}"
            if isinstance(fault, Cut | Isolate):
                listener = _LISTENERS[fault.listener]
        links = [_link(pair, listener) for pair in pairs]
        row = self._rows.row(kind, ",".join(f"{source}->{destination}" for source, destination in pairs), argument)
        for link in links:
            self._network.set(link, condition)

        def heal() -> None:
            for link in links:
                self._network.heal(link, condition)
            row.close()

        return heal

    def _pairs(self, fault: Cut | Isolate | Split | Ring | Slow) -> Iterable[tuple[str, str]]:
        """The directions that a fault is about."""
        nodes = self._nodes
        match fault:
            case Cut() | Slow():
                source, destination = self._end(fault.source), self._end(fault.destination)
                if source is not None and destination is not None and source != destination:
                    yield source, destination
                    if fault.both_ways:
                        yield destination, source
            case Isolate():
                node_id = self._roles.node(fault.node)
                others: list[str] = [str(other) for other in nodes if other != node_id]
                if node_id is not None:
                    yield from _both_ways([str(node_id)], others + [_CLIENTS] * fault.from_clients)
            case Split():
                side = {self._roles.node(name) for name in fault.side}
                yield from _both_ways(
                    [str(node) for node in nodes if node in side], [str(node) for node in nodes if node not in side]
                )
            case Ring():
                half = len(nodes) // 2
                for place, node in enumerate(nodes):
                    for step in range(half + 1, len(nodes)):
                        yield str(nodes[(place + step) % len(nodes)]), str(node)

    def _end(self, place: Place) -> str | None:
        if place is Role.CLIENTS:
            return _CLIENTS
        node_id = self._roles.node(place)
        return None if node_id is None else str(node_id)

    def reset(self, one: Place, other: Place, tells: tuple[bool, bool]) -> Heal | None:
        """End connections; `tells`: which of the ends hears of it. Null where two ends were not found."""
        source, destination = self._end(one), self._end(other)
        if source is None or destination is None or source == destination:
            return None
        row = self._rows.row("reset", f"{source}->{destination}", "both told" if all(tells) else "half open")
        for first in self._places if source == _CLIENTS else [source]:
            for second in self._places if destination == _CLIENTS else [destination]:
                self._network.reset(first, second, tells=tells)
        return row.close


def _link(pair: tuple[str, str], listener: str | None) -> Link:
    """What goes from one end to the other; only clients connect to the listener for clients."""
    source, destination = pair
    if _CLIENTS in pair:
        return Link(None if source == _CLIENTS else source, None if destination == _CLIENTS else destination, CLIENT)
    return Link(source, destination, listener)


def _both_ways(side: list[str], others: list[str]) -> Iterable[tuple[str, str]]:
    for one in side:
        for other in others:
            yield one, other
            yield other, one
