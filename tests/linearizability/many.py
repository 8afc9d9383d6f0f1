"""Tests with generated histories: a few histories in every run, many in the nightly run, on all processors."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from hypothesis import HealthCheck, settings

HOURS_S = 36_000
"""Timeout of a nightly test."""
CHUNK = 250
"""The number of seeds that a worker process judges in one task."""


def parametrize_count(short: int, nightly: int) -> pytest.MarkDecorator:
    """Parametrise the argument `count` of a test with both numbers; the second case is a nightly test."""
    marks = (pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(HOURS_S))
    return pytest.mark.parametrize("count", [short, pytest.param(nightly, marks=marks)])


def examples(count: int) -> settings:
    """Return Hypothesis settings with this number of examples, which permit fixtures that all examples share."""
    return settings(
        max_examples=count, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    )


def failing(judge: Callable[[int], str], seeds: range) -> list[str]:
    """Call `judge` with each seed in worker processes; return its results that are not empty. `judge` is picklable."""
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    # Threads of Arrow do not survive a fork.
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
        failures: Iterator[Iterable[str]] = processes.map(_failures, [judge] * len(chunks), chunks)
        return [text for texts in failures for text in texts]


def _failures(judge: Callable[[int], str], seeds: range) -> list[str]:
    return [text for seed in seeds if (text := judge(seed))]
