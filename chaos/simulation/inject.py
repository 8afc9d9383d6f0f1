"""Turns the faults of a schedule into what a simulated cluster suffers, and back, and writes the table `faults`.

A fault's row begins before the fault does and ends when it is over. Kinds and words are those that the definitions of
anomalies know (`linearizability.anomalies.faults`): what lost content is `power`, `wipe`, or a `disk` fault whose words
say so. `network_faults` and `node_faults` break what their names say; here is what an administrator does.
"""

from collections.abc import Callable, Iterable

from chaos.fault_rows import Heal, begun, row
from chaos.faults import (
    AddBroker,
    Configure,
    Cut,
    Elect,
    Fault,
    HalfOpen,
    Isolate,
    PowerCut,
    Reassign,
    Reset,
    Ring,
    Slow,
    Split,
    Timed,
)
from chaos.live_faults import LiveFault
from chaos.simulation.clients.administration import Request, administer, elect
from chaos.simulation.clients.process import place_of
from chaos.simulation.clients.questions import alter_topic
from chaos.simulation.network_faults import NetworkFaults
from chaos.simulation.node_faults import Administer, NodeFaults
from chaos.simulation.roles import Roles
from chaos.trial import AlterTopicConfig, ReassignPartition
from fixtures.clients.recorded_admin import Election
from linearizability.history.recorder import Recorder
from reference_broker.simulation.cluster import SimulatedCluster


class Injector:
    """The faults of one run.

    :param clients: numbers of the processes that count as clients.
    :param lost: told of each node that has lost content.
    :param asked_for: told of each unclean election that is asked for.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        recorder: Recorder,
        roles: Roles,
        topic: str,
        *,
        clients: Iterable[int],
        administer: Administer,
        lost: Callable[[int], None],
        asked_for: Callable[[str, int], None],
    ) -> None:
        self._cluster = cluster
        self._roles = roles
        self._topic = topic
        self._administer = administer
        self._asked_for = asked_for
        self._recorder = recorder
        self._network = NetworkFaults(cluster, roles, recorder, [place_of(number) for number in clients])
        self._nodes = NodeFaults(cluster, roles, recorder, topic, administer=administer, lost=lost)
        self._open = 0
        self.without_effect: list[Timed] = []
        """Faults that found nothing to break."""

    def schedule(self, schedule: Iterable[Timed]) -> None:
        """Let all of it happen, from this moment on."""
        scheduler = self._cluster.scheduler
        for timed in schedule:
            self._open += 1
            scheduler.after(timed.at_ms, lambda timed=timed: self._inject(timed))  # type: ignore[misc]

    @property
    def is_over(self) -> bool:
        """Whether every fault has been healed."""
        return self._open == 0

    def start_all(self) -> None:
        """Start what does not run, as a person would who finds it so."""
        for node_id in self._cluster.machines:
            self._nodes.start(node_id)

    def _inject(self, timed: Timed) -> None:
        self._cluster.trace.add(self._cluster.scheduler.now_ms, "fault", "schedule", text=repr(timed.fault))
        heal = self._break(timed.fault)
        if heal is None:
            self.without_effect.append(timed)

        def over() -> None:
            self._open -= 1
            if heal is not None:
                self._cluster.trace.add(self._cluster.scheduler.now_ms, "heal", "schedule", text=repr(timed.fault))
                heal()

        self._cluster.scheduler.after(timed.for_ms, over)

    def _break(self, fault: Fault) -> Heal | None:
        """Inject a fault; what heals it, null where nothing was found to break."""
        match fault:
            case Cut() | Isolate() | Split() | Ring() | Slow():
                return self._network.degrade(fault)
            case Reset() | HalfOpen():
                return self._network.reset(fault)
            case PowerCut():
                return self._nodes.cut_power(fault)
            case Configure() | Elect() | Reassign():
                return self._ask(fault)
            case AddBroker():
                return self._add_broker(fault)
            case LiveFault():
                return None
            case _:
                node_id = self._roles.node(fault.node)
                return None if node_id is None else self._nodes.break_node(fault, self._cluster.machines[node_id])

    # The cluster

    def _add_broker(self, fault: AddBroker) -> Heal | None:
        if fault.node in self._cluster.machines:
            return None
        over = begun(self._recorder, fault, str(fault.node))
        self._cluster.add_broker(fault.node)
        return over.close

    def _ask(self, fault: Configure | Elect | Reassign) -> Heal | None:
        match fault:
            case Configure(name, value):
                over = begun(self._recorder, fault, self._topic)
                self._administer(administer(AlterTopicConfig(name, value, self._topic)))

                def heal() -> None:
                    question = alter_topic(self._topic, name, None)
                    taken_back = administer(AlterTopicConfig(name, value, self._topic))
                    self._administer(Request(taken_back.f, self._topic, None, question, taken_back.codes_of))
                    over.close()

                return heal
            case Elect(unclean):
                # Whether that came to an unclean one is for `forfeits` to write down.
                asked = "of any replica" if unclean else "preferred"
                over = row(self._recorder, "election", asked, f"{self._topic}-0")
                if unclean:
                    self._asked_for(self._topic, 0)
                self._administer(elect(self._topic, 0, Election.UNCLEAN if unclean else Election.PREFERRED))
            case Reassign(replicas):
                over = begun(self._recorder, fault, f"{self._topic}-0")
                self._administer(administer(ReassignPartition(replicas, self._topic)))
        return over.close
