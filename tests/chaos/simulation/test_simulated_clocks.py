"""Clock faults of the simulation: the newest of several drifts of one node applies, as on real processes."""

from types import SimpleNamespace

from chaos.simulation.simulated_controls import SimulatedClocks


def test_the_newest_drift_that_is_not_healed_applies():
    rates = []
    clocks = SimulatedClocks(SimpleNamespace(machines={1: SimpleNamespace(drift_clock=rates.append)}))
    first, second, third = (clocks.drift(1, rate_ppm) for rate_ppm in (100, 200, 100))
    for drift in (first, second, third):
        drift.__enter__()
    third.__exit__(None, None, None)
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert rates == [100, 200, 100, 200, 0]
