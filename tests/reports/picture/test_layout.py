"""Layout of a picture: everything is in the order of time, and nothing overlaps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearizability.operation import Outcome
from linearizability.picture.drawing import Band, Bar, Lane, LaneKind, Order, Picture, Step
from reports.picture.layout import CHARACTER, Clock, lay_out


@st.composite
def pictures(draw):
    count = draw(st.integers(1, 25))
    begins = sorted(draw(st.lists(st.integers(0, 10**6), min_size=count, max_size=count)))
    bars, lanes = [], {}
    for number, begin in enumerate(begins):
        end = draw(st.none() | st.integers(0, 10**5).map(lambda length, begin=begin: begin + length))
        label = "x" * draw(st.integers(0, 60))
        outcome = Outcome.OK if end is not None else Outcome.INFO
        bar = Bar(number=number, name=str(number), label=label, begin_ns=begin, end_ns=end, outcome=outcome)
        bars.append(bar)
        lanes.setdefault(draw(st.integers(0, 3)), []).append(bar)
    ends = [bar.end_ns for bar in bars if bar.end_ns is not None]
    order = Order("s", "r", count, tuple(Step(bar.number, bar.number + 1, "a", "b") for bar in bars))
    return Picture(
        title="t",
        statement="s",
        facts=(),
        origin_ns=0,
        begin_ns=begins[0],
        end_ns=max([*ends, begins[-1]]),
        lanes=tuple(Lane(f"process {name}", LaneKind.PROCESS, tuple(own)) for name, own in lanes.items()),
        bands=draw(st.sampled_from([(), (Band("cut 1->2", 0, None), Band("kill 1", -5, begins[-1] + 1))])),
        orders=draw(st.sampled_from([(), (order,)])),
    )


@given(pictures())
def test_time_runs_to_the_right(picture):
    shapes = lay_out(picture).bars
    for one in shapes:
        for other in shapes:
            if one.bar.begin_ns < other.bar.begin_ns:
                assert one.x < other.x
            ended = one.bar.end_ns
            if ended is not None and one.bar.begin_ns < ended < other.bar.begin_ns:
                assert one.x + one.width < other.x + 8


@given(pictures())
def test_bars_of_a_lane_do_not_overlap_and_are_inside(picture):
    plane = lay_out(picture)
    for row_number, row in enumerate(plane.rows):
        own = [shape for shape in plane.bars if shape.lane == row_number]
        for shape in own:
            assert row.y <= shape.y
            assert shape.y + 22 <= row.y + row.height
            assert shape.x + shape.width <= plane.width
            assert len(shape.text) * CHARACTER <= shape.width
        for one in own:
            assert not any(
                other is not one and other.y == one.y and one.x < other.x < one.x + one.width for other in own
            )
    for above, below in pairwise(plane.rows):
        assert above.y + above.height == pytest.approx(below.y)


@given(pictures())
def test_every_step_of_an_order_is_within_its_bar(picture):
    plane = lay_out(picture)
    shapes = {shape.bar.number: shape for shape in plane.bars}
    for order, dots in zip(picture.orders, plane.orders, strict=True):
        for step, dot in zip(order.steps, dots, strict=True):
            assert shapes[step.bar].x <= dot.x <= shapes[step.bar].x + shapes[step.bar].width


@pytest.mark.parametrize(
    ("span_ns", "time"),
    [(100, "1,234,567 ns"), (5_000, "1,234.567 µs"), (5_000_000, "1.235 ms"), (60 * 10**9, "0.001 s")],
)
def test_unit_of_times_fits_the_window(span_ns, time):
    picture = Picture(title="", statement="", facts=(), origin_ns=1_000, begin_ns=0, end_ns=span_ns, lanes=())
    assert Clock(picture).time(1_235_567) == time
