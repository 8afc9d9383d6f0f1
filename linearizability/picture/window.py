"""Selection of the operations of a long history that a picture shows.

The *place* of an operation is its index in the order of invocation. The operations that must be shown may be far
apart: a write at the beginning and, an hour later, the read that misses it. Therefore the window consists of a stretch
of places around each of these operations. All stretches are equally wide, as wide as the limit permits. Stretches that
meet become one.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise


def around(count: int, focus: Sequence[int], limit: int, beside: Iterable[int] = ()) -> list[int]:
    """Return at most `limit` places, ascending: those in `focus`, some of those in `beside`, and neighbours of `focus`.

    If `focus` has more places than the limit, only its first places are returned. Otherwise at most a quarter of the
    remaining number are places of `beside`.

    :param count: number of operations: places are below it.
    """
    if count <= limit:
        return list(range(count))
    kept = list(dict.fromkeys(focus))[:limit]
    others = [place for place in dict.fromkeys(beside) if place not in kept][: (limit - len(kept)) // 4]
    width = _widest(count, kept, limit - len(others))
    return sorted({*others, *_stretches(count, kept, width)})


def gaps(places: Sequence[int]) -> list[tuple[int, int]]:
    """Return the gaps between ascending places: the index after each gap, and the number of skipped places."""
    return [
        (index, after - before - 1)
        for index, (before, after) in enumerate(pairwise(places), start=1)
        if after > before + 1
    ]


def _widest(count: int, focus: Sequence[int], limit: int) -> int:
    """Return the greatest width, to either side, for which the stretches have at most `limit` places; by bisection."""
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
