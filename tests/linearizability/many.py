"""How many generated histories a test takes: some whenever it runs, very many at night, over all processors."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

HOURS_S = 36_000
CHUNK = 250
"""Seeds that a process takes at a time."""


def takes(short: int, nightly: int) -> pytest.MarkDecorator:
    """Parametrise `count` with both; the other is `nightly`."""
    marks = (pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(HOURS_S))
    return pytest.mark.parametrize("count", [short, pytest.param(nightly, marks=marks)])


def failing(judge: Callable[[int], str], seeds: range) -> list[str]:
    """What `judge`, a module's own function, says is wrong with histories: of each seed a text, empty if nothing is."""
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    # Threads of Arrow do not survive a fork.
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
        told: Iterator[Iterable[str]] = processes.map(_tell, [judge] * len(chunks), chunks)
        return [text for texts in told for text in texts]


def _tell(judge: Callable[[int], str], seeds: range) -> list[str]:
    return [text for seed in seeds if (text := judge(seed))]
