"""Update of a file of expectations: entries are added or removed, and all other entries keep their exact text."""

from pathlib import Path

import pytest

from conformance.expectations import parse_expectations
from conformance.expectations_update import TODO, update
from linearizability.finding import Finding
from linearizability.judgement import Verdict

FILE = Path("known.toml")
KNOWN = frozenset({"a/one", "a/two", "b/three", "c/four"})
TWO = """[[violation]]
link = "https://example.org/2"  # tracked
requirement = "a/two"
reason = '''not yet,
[[violation]] is no head here'''"""
THREE = '[[violation]]\nrequirement = "b/three"\nreason = "three"\nlink = ""'


def found(requirement, verdict=Verdict.VIOLATION, reason="step 2: wrong", **fields):
    return Finding(verdict, reason, requirement=requirement, target="mine", **fields)


def updated(text, *findings, known=KNOWN):
    result = update(text, parse_expectations(text, FILE), findings, known, title="Known violations of mine.")
    assert set(parse_expectations(result.text, FILE)) == {*result.kept, *result.added}
    return result


def test_a_new_file_has_the_violations_in_order():
    result = updated("", found("c/four"), found("a/one", reason="step 1: one\nmore"), found("a/two", Verdict.OK))
    entries = parse_expectations(result.text, FILE)
    assert {name: entry.reason for name, entry in entries.items()} == {
        "a/one": f"{TODO}step 1: one",
        "c/four": f"{TODO}step 2: wrong",
    }
    assert list(entries) == ["a/one", "c/four"]
    assert result.text.startswith("# Known violations of mine.\n\n[[violation]]\nrequirement = ")
    assert result.added == {name: entry.reason for name, entry in entries.items()}


@pytest.mark.parametrize("verdict", [Verdict.VIOLATION, Verdict.UNKNOWN, Verdict.NOT_APPLICABLE])
def test_an_entry_that_remains_keeps_its_text(verdict):
    text = f"# Head.\n\n{TWO}\n"
    result = updated(text, found("a/two", verdict))
    assert result.text == text
    assert result.kept == ("a/two",)


def test_requirements_that_were_not_judged_do_not_change():
    text = f"{THREE}\n"
    assert updated(text, found("a/one", Verdict.OK)).text == text


def test_an_entry_that_is_ok_is_removed_with_the_comment_above_it():
    text = f"# Head.\n\n{TWO}\n\n# why three\n{THREE}\n\n# why four\n{THREE.replace('b/three', 'c/four')}\n"
    result = updated(text, found("b/three", Verdict.OK), found("a/one"))
    assert "why three" not in result.text
    assert "# why four\n[[violation]]" in result.text
    assert TWO in result.text
    assert result.removed == {"b/three": "it is ok now"}
    assert list(parse_expectations(result.text, FILE)) == ["a/one", "a/two", "c/four"]


def test_a_requirement_that_no_longer_exists_is_removed():
    result = updated(f"{THREE}\n", known=KNOWN - {"b/three"})
    assert result.removed == {"b/three": "there is no such requirement"}
    assert parse_expectations(result.text, FILE) == {}


def test_a_file_without_entries_has_a_note_and_can_grow_again():
    empty = updated(f"# Head.\n{THREE}\n", found("b/three", Verdict.OK)).text
    assert empty == "# Head.\n\nviolation = []\n"
    grown = updated(empty, found("a/one")).text
    assert grown.startswith("# Head.\n\n[[violation]]\n")


def test_a_flaky_violation_is_not_added_but_kept():
    assert updated("", found("a/one", flaky=True)).flaky == ("a/one",)
    assert updated(f"{THREE}\n", found("b/three", flaky=True)).kept == ("b/three",)


def test_an_array_in_one_line_is_written_as_tables():
    text = '# Head.\nviolation = [{requirement = "b/three", reason = "three", link = ""}]\n'
    assert updated(text, found("b/three")).text == f"# Head.\n\n{THREE}\n"


def test_text_of_a_broker_is_quoted():
    result = updated("", found("a/one", reason='"""\\ \x7f\x1b[31m\u202e\n[[violation]]'))
    (entry,) = parse_expectations(result.text, FILE).values()
    assert entry.reason == f'{TODO}"""\\ \\x7f\\x1b[31m\\u202e'


def test_the_second_update_changes_nothing():
    findings = (found("c/four"), found("a/one"), found("b/three", Verdict.OK))
    once = updated(f"# Head.\n\n{TWO}\n\n# why\n{THREE}\n", *findings).text
    assert updated(once, *findings).text == once
