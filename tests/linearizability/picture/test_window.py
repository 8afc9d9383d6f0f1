"""Window of a picture of a long history: the places that are selected, and the gaps between them.

The place of an operation is its index in the order of invocation.
"""

from hypothesis import given
from hypothesis import strategies as st

from linearizability.picture.window import around, gaps

counts = st.integers(1, 200)
places = st.lists(st.integers(0, 199), min_size=1, max_size=8)


def kept(count, focus, limit, beside=()):
    return around(count, [place % count for place in focus], limit, [place % count for place in beside])


def test_a_short_history_is_shown_whole():
    assert around(5, [2], 10) == [0, 1, 2, 3, 4]


def test_one_place_is_shown_with_equal_numbers_on_both_sides():
    assert around(1000, [500], 7) == [497, 498, 499, 500, 501, 502, 503]


def test_distant_places_are_shown_as_separate_ranges():
    assert around(1000, [10, 900], 6) == [9, 10, 11, 899, 900, 901]
    assert gaps([9, 10, 11, 899, 900, 901]) == [(3, 887)]


def test_the_first_places_are_kept_if_not_all_fit():
    assert around(1000, [700, 3, 5, 9], 2) == [3, 700]


@given(counts, places, st.integers(1, 60), places)
def test_the_limit_is_respected_and_the_first_places_are_kept(count, focus, limit, beside):
    shown = kept(count, focus, limit, beside)
    assert shown == sorted(set(shown))
    assert len(shown) <= max(limit, 1)
    assert set(shown) <= set(range(count))
    wanted = list(dict.fromkeys(place % count for place in focus))
    assert set(wanted[:limit]) <= set(shown)


@given(counts, places, st.integers(1, 60))
def test_gaps_count_the_places_that_are_not_shown(count, focus, limit):
    shown = kept(count, focus, limit)
    assert sum(skipped for _, skipped in gaps(shown)) == shown[-1] - shown[0] + 1 - len(shown)


@given(counts, st.integers(0, 199), st.integers(1, 60))
def test_around_one_place_there_is_no_gap(count, place, limit):
    assert gaps(kept(count, [place], limit)) == []
