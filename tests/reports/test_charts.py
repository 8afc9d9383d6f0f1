"""Charts: a bounded number of points inside the plane, with gaps where there is no value."""

import re

from hypothesis import given
from hypothesis import strategies as st

from reports.charts import PLANE_HEIGHT, PLANE_WIDTH, POINTS_MAX, TimeAxis, chart, figure, span

SERIES = st.dictionaries(st.integers(0, 400_000), st.floats(0, 1e12), max_size=300)


@given(SERIES, st.booleans(), st.floats(1, 400_000))
def test_every_line_is_inside_and_has_few_points(points, log, seconds):
    axis = TimeAxis(seconds)
    binned = axis.binned([(at, value) for at, value in sorted(points.items()) if at <= seconds], max)
    drawn = chart("t", "n", "u", axis, {"one": binned}, log=log)
    if not binned:
        assert drawn is None
        return
    (line,) = drawn.lines
    coordinates = [(float(x), float(y)) for x, y in re.findall(r"[ML](\S+) (\S+?)(?=[ML]|$)", line.path)]
    assert len(coordinates) == len(binned) <= POINTS_MAX
    assert all(0 <= x <= PLANE_WIDTH and 0 <= y <= PLANE_HEIGHT for x, y in coordinates)
    assert coordinates == sorted(coordinates, key=lambda coordinate: coordinate[0])
    assert line.path.count("M") == sum(at - 1 not in binned for at in binned)
    assert 1 <= len(drawn.ticks) <= 7
    assert all(0 <= tick.at <= PLANE_HEIGHT for tick in drawn.ticks)
    assert 1 <= len(axis.ticks) <= 12


def test_second_without_neighbours_is_a_dot():
    drawn = chart("t", "", "u", TimeAxis(10), {"one": {1: 5.0, 4: 2.0, 5: 10.0}})
    (line,) = drawn.lines
    assert line.path.count("M") == 2
    assert line.dots == ((TimeAxis(10).x(1.5), PLANE_HEIGHT / 2),)


def test_seconds_of_a_bin_are_combined():
    axis = TimeAxis(2 * POINTS_MAX - 1)
    assert axis.bin_s == 2
    assert axis.binned([(0, 1.0), (1, 5.0), (2, 3.0)], max) == {0: 5.0, 1: 3.0}


def test_span_is_visible_and_has_its_label_if_it_fits():
    axis = TimeAxis(100)
    assert span(axis, 50, 50, label="b1", title="").width > 1
    assert span(axis, 50, 50, label="b1", title="").label == ""
    assert span(axis, -5, 200, label="b1", title="").label == "b1"
    assert span(axis, -5, 200, label="b1", title="").width == PLANE_WIDTH


def test_figures_as_text():
    numbers = (None, 0.0, 0.1234, 12.345, 1234.0, 12_345_678.0, 234_567_890.0, 1_234_567_890.0, 5e10)
    texts = ["-", "0", "0.123", "12.3", "1,234", "12.3M", "235M", "1,235M", "50G"]
    assert [figure(value) for value in numbers] == texts
