"""docs/anomalies.md is the page that `linearizability.anomalies.document` generates."""

from pathlib import Path

from linearizability.anomalies.document import page


def test_document_is_up_to_date():
    written = Path(__file__).parents[3] / "docs" / "anomalies.md"
    assert written.read_text(encoding="utf-8") == page()
