"""Selection of the operations of a long history that a picture shows."""

from hypothesis import given
from hypothesis import strategies as st

from linearizability.picture.window import around, gaps

counts = st.integers(1, 200)
places = st.lists(st.integers(0, 199), min_size=1, max_size=8)


def kept(count, focus, limit, beside=()):
    return around(count, [place % count for place in focus], limit, [place % count for place in beside])


def test_a_short_history_is_shown_whole():
    assert around(5, [2], 10) == [0, 1, 2, 3, 4]


def test_one_place_is_shown_with_as_much_to_either_side():
    assert around(1000, [500], 7) == [497, 498, 499, 500, 501, 502, 503]


def test_places_far_apart_have_a_stretch_each():
    assert around(1000, [10, 900], 6) == [9, 10, 11, 899, 900, 901]
    assert gaps([9, 10, 11, 899, 900, 901]) == [(3, 887)]


def test_what_is_named_first_stays_where_there_is_no_room_for_all():
    assert around(1000, [700, 3, 5, 9], 2) == [3, 700]


@given(counts, places, st.integers(1, 60), places)
def test_it_keeps_to_the_limit_and_to_what_must_be_seen(count, focus, limit, beside):
    shown = kept(count, focus, limit, beside)
    assert shown == sorted(set(shown))
    assert len(shown) <= max(limit, 1)
    assert set(shown) <= set(range(count))
    wanted = list(dict.fromkeys(place % count for place in focus))
    assert set(wanted[:limit]) <= set(shown)


@given(counts, places, st.integers(1, 60))
def test_the_gaps_are_what_is_missing_between(count, focus, limit):
    shown = kept(count, focus, limit)
    assert sum(skipped for _, skipped in gaps(shown)) == shown[-1] - shown[0] + 1 - len(shown)


@given(counts, st.integers(0, 199), st.integers(1, 60))
def test_around_one_place_there_is_no_gap(count, place, limit):
    assert gaps(kept(count, [place], limit)) == []
