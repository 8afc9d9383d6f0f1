"""Which operations of a long history a picture shows.

Places are those in the order of invocation. What must be seen may lie far apart: a write at the beginning and, an hour
later, the read that misses it. So the window is a stretch around each of them, all of one width, as wide as the limit
allows; stretches that meet become one.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise


def around(count: int, focus: Sequence[int], limit: int, beside: Iterable[int] = ()) -> list[int]:
    """At most `limit` of the places below `count`, ascending: those in focus, then some `beside`, then neighbours.

    Where the limit is below their number, the first ones in `focus` go before the later, and a quarter of what is left
    at most goes to those beside, in their order.
    """
    if count <= limit:
        return list(range(count))
    kept = list(dict.fromkeys(focus))[:limit]
    others = [place for place in dict.fromkeys(beside) if place not in kept][: (limit - len(kept)) // 4]
    width = _widest(count, kept, limit - len(others))
    return sorted({*others, *_stretches(count, kept, width)})


def gaps(places: Sequence[int]) -> list[tuple[int, int]]:
    """Where ascending places skip some: the index of the one after the gap, and how many were skipped."""
    return [
        (index, after - before - 1)
        for index, (before, after) in enumerate(pairwise(places), start=1)
        if after > before + 1
    ]


def _widest(count: int, focus: Sequence[int], limit: int) -> int:
    """The widest stretch to either side that keeps to the limit, found by halving."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if len(_stretches(count, focus, middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def _stretches(count: int, focus: Iterable[int], width: int) -> set[int]:
    return {place for centre in focus for place in range(max(0, centre - width), min(count, centre + width + 1))}
