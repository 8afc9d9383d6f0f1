"""`FaultContext` of a simulated cluster: its controls, administrative requests, and nodes that have lost content."""

from collections.abc import Callable, Iterable

from chaos.simulation.damage import SimulatedFiles
from chaos.simulation.roles import Roles
from chaos.simulation.simulated_controls import SimulatedControls
from fixtures.clients.administration import AdminRequest
from fixtures.clients.core.admin_steps import ADMIN_TIMEOUT_MS
from fixtures.clients.core.process import place_of
from fixtures.faults.context import Administration, FaultContext, Losses, record_unclean_election
from linearizability.history.recorder import Recorder
from reference_broker.simulation.cluster import SimulatedCluster


def fault_context(
    cluster: SimulatedCluster,
    recorder: Recorder,
    roles: Roles,
    topic: str,
    *,
    clients: Iterable[int],
    administer: Callable[[AdminRequest], None],
    lost: Callable[[int], None],
    on_unclean_election: Callable[[str, int], None],
) -> FaultContext:
    """Return the context for the faults of one run.

    :param topic: the topic to whose first partition the roles of replicas refer.
    :param clients: numbers of the client processes whose links faults may break.
    :param administer: sends an administrative request, without waiting for the response.
    :param lost: called with the id of a node whenever it has lost content.
    :param on_unclean_election: called with topic and partition when an unclean election is requested.
    """
    return FaultContext(
        target=SimulatedControls(cluster, [place_of(number) for number in clients]),
        recorder=recorder,
        topic=topic,
        list_nodes=lambda: list(cluster.machines),
        find_node=roles.node,
        files=SimulatedFiles(cluster),
        administrator=SimulatedAdministration(cluster, topic, administer, on_unclean_election),
        losses=SimulatedLosses(roles, recorder, topic, lost),
    )


class SimulatedAdministration(Administration):
    """`Administration` of a simulated cluster. Unclean elections are recorded by `UncleanElections`.

    It does not wait for responses. A delayed UnregisterBroker may therefore remove a broker after its restart; `run`
    then restarts the broker again.
    """

    records_unclean_elections = True
    timeout_ms = ADMIN_TIMEOUT_MS

    def __init__(
        self,
        cluster: SimulatedCluster,
        topic: str,
        administer: Callable[[AdminRequest], None],
        on_unclean_election: Callable[[str, int], None],
    ) -> None:
        super().__init__(topic)
        self._cluster = cluster
        self._administer = administer
        self._on_unclean_election = on_unclean_election

    def elect(self, *, unclean: bool) -> None:
        """Send ElectLeaders for the first partition."""
        if unclean:
            self._on_unclean_election(self.topic, 0)
        super().elect(unclean=unclean)

    def send(self, request: AdminRequest, *, must_succeed: bool = False) -> Callable[[], object]:
        """Send a request once, without retries."""
        self._administer(request)
        return lambda: None

    def next_broker(self, wanted: int) -> int | None:
        """Return the wanted id; None if a node has it."""
        return None if wanted in self._cluster.machines else wanted

    def add_broker(self, node: int) -> None:
        """Add a machine and start its node."""
        self._cluster.add_broker(node)


class SimulatedLosses(Losses):
    """`Losses` of a simulated cluster. ISRs are read from the state of the simulation.

    :param lost: called with the id of a node whenever it has lost content.
    """

    def __init__(self, roles: Roles, recorder: Recorder, topic: str, lost: Callable[[int], None]) -> None:
        self._roles = roles
        self._recorder = recorder
        self._topic = topic
        self._lost = lost
        self._has_lost: set[int] = set()

    def note(self, node: int, topic: str | None = None) -> None:
        """Note that a node has lost content. `topic` is not used."""
        self._has_lost.add(node)
        self._lost(node)
        self.before_start(node)

    def note_power_cut(self, node: int) -> None:
        """Note that a power cut has lost the unflushed data of a node."""
        self.note(node)

    def before_start(self, node: int) -> None:
        """Record an unclean election if this node has lost content and is the only in-sync replica of a partition."""
        if node in self._has_lost and self._roles.is_alone_in_sync(node):
            record_unclean_election(self._recorder, self._topic)

    def after_start(self, node: int) -> None:
        """Forget the loss of a node: it has started, and may lead partitions with the records that it still has."""
        self._has_lost.discard(node)
