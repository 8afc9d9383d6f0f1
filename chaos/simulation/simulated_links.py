"""Links of the target `simulation`: `LinkControl` over the simulated network."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from chaos.simulation.transport import PLACE
from fixtures.targets.controls import Listener, Lost
from reference_broker.simulation.cluster import CONTROLLER, REPLICATION
from reference_broker.simulation.links import Condition, Cut, Link
from reference_broker.simulation.network import Network

_LISTENERS: Final = {Listener.REPLICATION: REPLICATION, Listener.CONTROLLER: CONTROLLER}


class SimulatedLinks:
    """Links between the nodes of one simulated cluster, and from clients to nodes."""

    def __init__(self, network: Callable[[], Network]) -> None:
        """Take what returns the network of the started cluster."""
        self._network = network

    @contextmanager
    def cut(
        self, source: int | str, destination: int, listener: Listener | None = None, lost: Lost = Lost.REQUESTS
    ) -> Iterator[None]:
        """Lose one direction of the connections that `source` opens to `destination`.

        No connection is opened meanwhile: that takes both directions.
        """
        opener = PLACE if source == "client" else str(source)
        ends = (opener, str(destination)) if lost is Lost.REQUESTS else (str(destination), opener)
        link = Link(*ends, listener=None if listener is None else _LISTENERS[listener], opener=opener)
        lossy = Condition(cut=Cut.LOSE)
        network = self._network()
        network.set(link, lossy)
        try:
            yield
        finally:
            network.heal(link, lossy)
