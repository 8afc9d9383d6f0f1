"""Each saved counterexample detects its defect quickly, and has no violation on the clean broker."""

import pytest

from chaos.defects.document import page
from chaos.defects.hunt import run_again
from chaos.defects.registry import DEFECTS
from chaos.defects.saved import COUNTEREXAMPLES, keep, saved_counterexample
from chaos.sensitivity import broken_requirement

pytestmark = pytest.mark.sampled(6)

SAVED = sorted(path.stem for path in COUNTEREXAMPLES.glob("*.json"))
REQUIRED = sorted(set(DEFECTS) - set(SAVED))
DOCUMENT = COUNTEREXAMPLES.parents[2] / "docs" / "defects.md"


@pytest.mark.parametrize("name", SAVED)
def test_a_counterexample_detects_its_defect_and_nothing_on_the_clean_broker(name: str):
    saved = saved_counterexample(name)
    assert saved is not None
    assert run_again(saved) is not None, f"python -m chaos.defects.hunt {name}"


@pytest.mark.parametrize("name", REQUIRED)
def test_a_defect_without_a_counterexample_breaks_its_requirement(name: str):
    required = [expected for expected in DEFECTS[name].expected if "/" in expected]
    assert broken_requirement(DEFECTS[name], required) is not None


def test_a_saved_counterexample_is_read_unchanged(tmp_path, monkeypatch):
    saved = saved_counterexample(SAVED[0])
    monkeypatch.setattr("chaos.defects.saved.COUNTEREXAMPLES", tmp_path)
    assert saved is not None
    assert saved_counterexample(SAVED[0]) is None
    keep(saved)
    assert saved_counterexample(SAVED[0]) == saved


def test_the_page_of_the_documentation_is_up_to_date():
    assert DOCUMENT.read_text(encoding="utf-8") == page(), "python -m chaos.defects.document > docs/defects.md"
