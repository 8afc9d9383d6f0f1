"""Clock faults of the simulation: they end with their context, and the newest of several drifts of a node applies."""

from types import SimpleNamespace

import pytest

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


def test_a_clock_is_set_back_after_an_exception_in_the_context():
    jumps_ms = []
    clocks = SimulatedClocks(SimpleNamespace(machines={1: SimpleNamespace(jump_clock=jumps_ms.append)}))
    with pytest.raises(TimeoutError), clocks.jump(1, 100):
        raise TimeoutError
    assert jumps_ms == [100, -100]
