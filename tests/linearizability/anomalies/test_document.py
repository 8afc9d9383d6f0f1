"""The page says what the modules say."""

from pathlib import Path

from linearizability.anomalies.document import page


def test_page_of_the_documentation_is_up_to_date():
    written = Path(__file__).parents[3] / "docs" / "anomalies.md"
    assert written.read_text(encoding="utf-8") == page()
