"""Tests over many generated histories: a few in every run, many in the nightly run, on all processors."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from hypothesis import HealthCheck, settings

HOURS_S = 36_000
CHUNK = 250
"""Number of seeds in one task of a process."""


def parametrize_count(short: int, nightly: int) -> pytest.MarkDecorator:
    """Parametrise `count` with both numbers; the second one is marked `nightly`."""
    marks = (pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(HOURS_S))
    return pytest.mark.parametrize("count", [short, pytest.param(nightly, marks=marks)])


def examples(count: int) -> settings:
    """Return the settings of a test with this number of generated examples, each of which may use fixtures."""
    return settings(
        max_examples=count, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    )


def failing(judge: Callable[[int], str], seeds: range) -> list[str]:
    """Return the failures that `judge`, a module-level function, reports for the seeds; an empty text is no failure."""
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    # Threads of Arrow do not survive a fork.
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
        failures: Iterator[Iterable[str]] = processes.map(_failures, [judge] * len(chunks), chunks)
        return [text for texts in failures for text in texts]


def _failures(judge: Callable[[int], str], seeds: range) -> list[str]:
    return [text for seed in seeds if (text := judge(seed))]
