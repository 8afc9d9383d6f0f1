"""Strategies that choose: `chosen` draws from one of several strategies, `some` draws several of the given values.

A strategy that is passed to `chosen` twice is drawn twice as often. Hypothesis's `st.one_of` is not used, because it
removes duplicates, and because it inspects all its strategies each time it is created.
"""

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def chosen(*strategies: SearchStrategy[T]) -> SearchStrategy[T]:
    """Return a strategy that draws from one of these strategies. It shrinks towards the first of them."""
    return _chosen(strategies)


@st.composite
def _chosen(draw: st.DrawFn, strategies: Sequence[SearchStrategy[T]]) -> T:
    return draw(strategies[draw(_below(len(strategies)))])


@cache
def _below(count: int) -> SearchStrategy[int]:
    return st.integers(0, count - 1)


def some(values: tuple[T, ...], least: int, most: int) -> SearchStrategy[tuple[T, ...]]:
    """Return a strategy for tuples of different values.

    :param least: minimum number of values in a tuple.
    :param most: maximum number. If fewer values are given, a tuple has at most all of them.
    """
    drawn = st.lists(st.sampled_from(values), min_size=least, max_size=min(most, len(values)), unique=True)
    return drawn.map(tuple)
