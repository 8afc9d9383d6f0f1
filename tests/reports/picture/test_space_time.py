"""Space-time diagrams: earlier events are above later events, and the page is self-contained."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from linearizability.picture.space_time import Mark, MarkKind, Message, Moment, SpaceTime, Stretch
from reports.picture.space_time import lay_out_space_time, space_time_page

LANES = ("client 1", "node 1", "node 2")


@st.composite
def diagrams(draw):
    count = draw(st.integers(1, 30))
    times = sorted(draw(st.lists(st.integers(0, 100_000), min_size=count, max_size=count)))
    indexes, lanes = st.integers(0, count - 1), st.sampled_from(LANES)

    def at_or_after(index):
        """Return the index of a later moment or of the same one, or None."""
        return draw(st.none() | st.integers(index, count - 1))

    def stretches(lane):
        return tuple(Stretch(lane, index, at_or_after(index), "fault") for index in draw(st.lists(indexes, max_size=4)))

    sent = draw(st.lists(indexes, max_size=20))
    return SpaceTime(
        title="t",
        statement="s",
        facts=(("Digest", "d"),),
        lanes=LANES,
        moments=tuple(Moment(at_ms, draw(st.sampled_from((0, 0, 7)))) for at_ms in times),
        messages=tuple(
            Message(draw(lanes), draw(lanes), index, at_or_after(index), "Fetch", draw(st.booleans())) for index in sent
        ),
        marks=tuple(Mark(draw(lanes), draw(indexes), "x" * 300, kind) for kind in MarkKind),
        faults=stretches(None),
        downs=stretches("node 1"),
    )


@given(diagrams())
def test_time_runs_downwards_and_everything_is_inside(diagram):
    plane = lay_out_space_time(diagram)
    for arrow in plane.arrows:
        assert plane.head <= arrow.y1 <= arrow.y2 <= plane.height
        assert plane.left <= min(arrow.x1, arrow.x2) <= max(arrow.x1, arrow.x2) <= plane.width
    y_by_moment = {arrow.message.sent_at: arrow.y1 for arrow in plane.arrows}
    for (one, above), (other, below) in pairwise(sorted(y_by_moment.items())):
        assert one < other
        assert above < below
    for bar in (*plane.faults, *plane.downs):
        assert bar.y1 <= bar.y2 <= plane.height


@given(diagrams())
def test_overlapping_faults_are_side_by_side(diagram):
    bars = lay_out_space_time(diagram).faults
    for one in bars:
        for other in bars:
            if one is not other and one.x == other.x:
                assert one.y2 < other.y1 or other.y2 < one.y1


def test_page_is_self_contained_and_escapes_text():
    diagram = SpaceTime(
        title="lost-write",
        statement="<script>alert(1)</script>",
        facts=(),
        lanes=LANES,
        moments=(Moment(0), Moment(5)),
        messages=(
            Message("client 1", "node 1", 0, 1, "Produce", False),
            Message("node 1", "node 2", 1, None, "<b>", True),
        ),
        marks=(Mark("node 2", 1, "leads a-0 in epoch 3", MarkKind.ELECTION),),
        faults=(Stretch(None, 0, None, "Kill(node=1)"),),
        program="script = Script()  # \x1b[31m",
        notes=("3 of 5 messages",),
    )
    page = space_time_page(diagram)
    assert "<script" not in page
    assert "<b>" not in page.split("</style>")[1].replace('<b aria-hidden="true">', "")
    assert not re.search(r"(src|href)=|@import|url\((?!#)", page)
    for word in (
        "Produce",
        "leads a-0 in epoch 3",
        "Kill(node=1)",
        "script = Script()  # \\x1b[31m",
        "3 of 5 messages",
    ):
        assert word in page
