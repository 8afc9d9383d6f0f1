"""How many generated histories a test takes: some whenever it runs, very many at night."""

import pytest

HOURS_S = 36_000


def takes(short: int, nightly: int) -> pytest.MarkDecorator:
    """Parametrise `count` with both; the other is `nightly`."""
    marks = (pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(HOURS_S))
    return pytest.mark.parametrize("count", [short, pytest.param(nightly, marks=marks)])
