"""Injector: applies the faults of a schedule to a simulated cluster in virtual time, and heals them."""

from collections.abc import Iterable

from fixtures.faults import Timed
from fixtures.faults.context import FaultContext
from reference_broker.simulation.cluster import SimulatedCluster


class Injector:
    """Injector of one run."""

    def __init__(self, cluster: SimulatedCluster, context: FaultContext) -> None:
        self._cluster = cluster
        self._context = context
        self._open = 0
        self.without_effect: list[Timed] = []
        """Faults that found nothing to break, or that the simulation does not support."""

    def schedule(self, schedule: Iterable[Timed]) -> None:
        """Schedule all faults. Their times are relative to the present time."""
        for timed in schedule:
            self._open += 1
            self._cluster.scheduler.after(timed.at_ms, lambda timed=timed: self._inject(timed))  # type: ignore[misc]

    @property
    def is_over(self) -> bool:
        """Whether the time of every scheduled fault is over."""
        return self._open == 0

    def start_all(self) -> None:
        """Start all nodes that do not run, as an operator would."""
        self._context.start_all()

    def _inject(self, timed: Timed) -> None:
        self._trace("fault", timed)
        heal = timed.fault.apply(self._context) if timed.fault.is_simulated else None
        if heal is None:
            self.without_effect.append(timed)

        def over() -> None:
            self._open -= 1
            if heal is not None:
                self._trace("heal", timed)
                heal()

        self._cluster.scheduler.after(timed.for_ms, over)

    def _trace(self, kind: str, timed: Timed) -> None:
        self._cluster.trace.add(self._cluster.scheduler.now_ms, kind, "schedule", text=repr(timed.fault))
