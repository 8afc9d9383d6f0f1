"""Periods of faults: compared with the faults in force at every moment, and cut into time slots."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reports.jobs.definition import SECOND_NS
from reports.jobs.in_force import NONE, SLOTS_MAX, Fault, fault_slots, label_within, periods_of, slot_seconds

END = 20
FAULTS = st.lists(
    st.builds(
        lambda kind, begin, took: Fault(kind, begin, None if took is None else begin + took),
        st.sampled_from(["kill", "cut", "pause"]),
        st.integers(-5, END + 3),
        st.none() | st.integers(0, 15),
    ),
    max_size=6,
)


def in_force(faults, moment):
    return {f.kind for f in faults if f.begin_ns <= moment and (f.end_ns is None or moment < f.end_ns)}


@given(FAULTS)
def test_periods_have_the_kinds_in_force_at_each_moment(faults):
    periods = periods_of(faults, END)
    for moment in range(END + 1):
        found = [period.kinds for period in periods if period.begin_ns <= moment < period.end_ns]
        assert [set(kinds) for kinds in found] == [kinds for kinds in [in_force(faults, moment)] if kinds]
    assert all(0 <= period.begin_ns < period.end_ns <= END + 1 for period in periods)
    assert all(a.end_ns < b.begin_ns or a.kinds != b.kinds for a, b in pairwise(periods))


@given(FAULTS, st.integers(0, END), st.integers(1, END))
def test_label_of_an_interval_has_the_kinds_of_all_its_moments(faults, begin, took):
    kinds = set().union(*(in_force(faults, moment) for moment in range(begin, min(begin + took, END + 1))))
    assert label_within(periods_of(faults, END), begin, begin + took) == ("+".join(sorted(kinds)) or NONE)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4 * SECOND_NS)), max_size=4), st.integers(1, 3))
def test_slots_are_the_periods_cut_at_slot_bounds(lengths, slot_s):
    faults, at = [], 0
    for gap, took in lengths:
        faults.append(Fault("kill", at + gap * SECOND_NS // 3, at + gap * SECOND_NS // 3 + took))
        at += gap * SECOND_NS // 3 + took + 1
    periods = periods_of(faults, at)
    rows = fault_slots(7, periods, slot_s).to_pylist()
    assert sum(row["end_ns"] - row["begin_ns"] for row in rows) == sum(p.end_ns - p.begin_ns for p in periods)
    for row in rows:
        assert row["run"] == 7
        assert row["slot"] == row["begin_ns"] // (slot_s * SECOND_NS) == (row["end_ns"] - 1) // (slot_s * SECOND_NS)
        assert label_within(periods, row["begin_ns"], row["end_ns"]) == row["faults"]


def test_run_of_a_century_has_a_bounded_number_of_slots():
    end = 2**62
    whole = periods_of([Fault("kill", 0, None)], end)
    slots = fault_slots(0, whole, slot_seconds(end))
    assert SLOTS_MAX / 2 < slots.num_rows <= SLOTS_MAX + 1
    assert pa.compute.sum(pa.compute.subtract(slots["end_ns"], slots["begin_ns"])).as_py() == end + 1


def test_label_of_a_long_fault_kind_is_truncated():
    periods = periods_of([Fault("k" * 1_000_000, 0, 10)], 20)
    assert len(periods[0].label) < 5_000
    assert label_within(periods, 0, 20) == periods[0].label
