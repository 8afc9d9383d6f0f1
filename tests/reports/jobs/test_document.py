"""`docs/report-tables.md`, which `python -m reports.jobs.document` generates from the definitions of the tables."""

from pathlib import Path

from reports.jobs.document import page


def test_page_of_the_documentation_is_up_to_date():
    committed = Path(__file__).parents[3] / "docs" / "report-tables.md"
    assert committed.read_text(encoding="utf-8") == page()
