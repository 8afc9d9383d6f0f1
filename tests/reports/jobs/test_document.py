"""Page of the report's tables: generated from the definitions."""

from pathlib import Path

from reports.jobs.document import page


def test_page_of_the_documentation_is_up_to_date():
    written = Path(__file__).parents[3] / "docs" / "report-tables.md"
    assert written.read_text(encoding="utf-8") == page()
