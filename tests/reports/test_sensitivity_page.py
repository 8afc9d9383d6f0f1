"""Page of seeded defects: detected and missed defects, false alarms, and escaped texts of brokers."""

from dataclasses import replace

from reports.sensitivity import DefectRow, FalseAlarmRow, Sensitivity, render_sensitivity, write_sensitivity
from tests.reports.page import Page

CAUGHT = DefectRow(
    name="acknowledge-early",
    area="replication",
    story="A produce with acks=all is acknowledged at once. Records are lost.",
    sources=("KAFKA-353",),
    place="replication.partition.Partition.check_enough_replicas_reach_offset",
    expected=("lost-write",),
    caught_by="lost-write",
    text="value <7> is \x1b[31mgone",
    is_expected=True,
    seed=41,
    scripts=3,
    seconds=0.42,
    program="script = Script()\n",
    reproduce="kafkatrial simulate --seeds 41 --defect acknowledge-early",
)
MISSED = DefectRow(
    name="never-shrink",
    area="isr",
    story="The ISR never shrinks. Writes time out.",
    sources=(),
    place="replication.partition.Partition.maybe_shrink_isr",
    expected=("unavailable",),
    caught_by="",
    text="",
    is_expected=False,
    seed=None,
    scripts=512,
    seconds=60.1,
)


def results(*rows: DefectRow, **fields: object) -> Sensitivity:
    return Sensitivity("0.1.0", 0, 60.0, 2, len(rows), rows=list(rows), complete=True, **fields)


def test_page_has_detected_and_missed_defects():
    page = render_sensitivity(results(CAUGHT, MISSED, clean_scripts=515))
    assert "1 of 2 defects detected" in page
    assert "kafkatrial simulate --seeds 41 --defect acknowledge-early" in page
    assert page.count("missed</span>") == 2  # in the summary and in the row of the defect
    assert "not expected" not in page


def test_defect_detected_by_an_unexpected_anomaly_is_marked():
    other = replace(CAUGHT, caught_by="exception", is_expected=False)
    assert "not expected" in render_sensitivity(results(other))


def test_false_alarms_have_a_section():
    page = render_sensitivity(results(CAUGHT, false_alarms=[FalseAlarmRow(3, "phantom-read", "value 9")]))
    assert 'id="false-alarms"' in page
    assert 'id="false-alarms"' not in render_sensitivity(results(CAUGHT))


def test_text_is_escaped_and_printable():
    page = render_sensitivity(results(CAUGHT))
    assert "value &lt;7&gt; is \\x1b[31mgone" in page


def test_a_long_program_is_whole():
    page = render_sensitivity(results(replace(CAUGHT, program="x = 1\n" * 1_000 + "print(x)\n")))
    assert "more characters" not in page
    assert '<span class="nb">print</span>' in page


def test_nothing_is_fetched_and_every_element_is_closed():
    page = Page(render_sensitivity(results(CAUGHT, MISSED)))
    assert page.open == []
    assert page.fetched == []


def test_page_is_written_into_a_new_directory(tmp_path):
    path = write_sensitivity(results(CAUGHT), tmp_path / "new" / "one")
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_json_has_every_row_and_the_names_of_missed_defects():
    document = results(CAUGHT, MISSED).as_json()
    assert (document["caught"], document["missed"]) == (1, ["never-shrink"])
    assert document["rows"][0]["caught_by"] == "lost-write"
