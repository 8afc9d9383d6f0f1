"""Links of a simulated cluster: the controls of `fixtures.targets.controls` over the simulated network."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from chaos.simulation.transport import PLACE
from fixtures.faults.places import CLIENT
from fixtures.targets.controls import Barrier, Direction, LinkCondition, Listener, Lost
from fixtures.targets.target import TargetError
from reference_broker.simulation.cluster import CLIENT as CLIENT_LISTENER
from reference_broker.simulation.cluster import CONTROLLER, REPLICATION
from reference_broker.simulation.links import Condition, Cut, Link
from reference_broker.simulation.network import Network

_LISTENERS: Final = {None: None, Listener.REPLICATION: REPLICATION, Listener.CONTROLLER: CONTROLLER}
_CUTS: Final = {None: None, Barrier.HOLDS: Cut.HOLD, Barrier.LOSES: Cut.LOSE}


class SimulatedLinks:
    """Links between the nodes of one simulated cluster, and from clients to nodes."""

    def __init__(self, network: Callable[[], Network], clients: Sequence[str] = (PLACE,)) -> None:
        """Control the links of a network.

        :param network: returns the network of the started cluster.
        :param clients: places of the clients.
        """
        self._network = network
        self._clients = clients

    @contextmanager
    def cut(
        self, source: int | str, destination: int, listener: Listener | None = None, lost: Lost = Lost.REQUESTS
    ) -> Iterator[None]:
        """Inside the context, lose the requests or the responses on connections that `source` opens to `destination`.

        `source` cannot open new connections to `destination`, because that needs both directions.

        :param lost: whether the requests of `source` are lost, or the responses of `destination`.
        """
        links = []
        for opener in self._places_of(source):
            ends = (opener, str(destination)) if lost is Lost.REQUESTS else (str(destination), opener)
            links.append(Link(*ends, listener=_LISTENERS[listener], opener=opener))
        with self._set(links, Condition(cut=Cut.LOSE)):
            yield

    @contextmanager
    def impair(self, directions: Collection[Direction], condition: LinkCondition) -> Iterator[None]:
        """Apply a condition to directions inside the context. Raises `TargetError` if it has `slice_bytes`."""
        if condition.slice_bytes is not None:
            raise TargetError("the simulation delivers each message whole")
        simulated = Condition(_CUTS[condition.barrier], condition.delay_ms, condition.jitter_ms, condition.bytes_per_ms)
        with self._set([_link(direction) for direction in directions], simulated):
            yield

    def reject_connections(self, direction: Direction) -> AbstractContextManager[None]:
        """Raise `TargetError`."""
        raise TargetError("the simulation rejects no connections")

    def reset(self, one: int | str, other: int | str) -> None:
        """Reset every open connection between two places. Both ends are notified."""
        self._end(one, other, notifies=(True, True))

    @contextmanager
    def half_open(self, one: int | str, other: int | str) -> Iterator[None]:
        """Reset every open connection between two places. Only the end that accepted the connection is notified."""
        self._end(one, other, notifies=(False, True))
        yield

    @contextmanager
    def _set(self, links: Sequence[Link], condition: Condition) -> Iterator[None]:
        network = self._network()
        for link in links:
            network.set(link, condition)
        try:
            yield
        finally:
            for link in links:
                network.heal(link, condition)

    def _end(self, one: int | str, other: int | str, notifies: tuple[bool, bool]) -> None:
        for first in self._places_of(one):
            for second in self._places_of(other):
                self._network().reset(first, second, notifies=notifies)

    def _places_of(self, end: int | str) -> Sequence[str]:
        return self._clients if end == CLIENT else [str(end)]


def _link(direction: Direction) -> Link:
    """Return the link of a direction. Clients always use the listener for clients."""
    ends = direction.source, direction.destination
    if CLIENT not in ends:
        return Link(str(direction.source), str(direction.destination), _LISTENERS[direction.listener])
    source, destination = (None if end == CLIENT else str(end) for end in ends)
    return Link(source, destination, CLIENT_LISTENER)
