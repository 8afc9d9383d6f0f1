"""The check of names and prose: hits, exceptions, budgets."""

import re

import pytest

from tools.language import ROOT, Language, Word, excess, hits_in, hits_in_tree, read_language, tightened

LANGUAGE = Language(
    [Word(re.compile(r"\bgoes\b"), "continues"), Word(re.compile(r"_oddly\b"), "strangely")],
    [("docs/", re.compile("it goes without saying"))],
    {"docs": 1},
)


def test_a_line_has_a_hit_for_each_word_that_it_matches():
    hits = list(hits_in("a/b.py", "plain\nit goes, goes and goes_oddly\n", LANGUAGE))
    assert [(hit.line, hit.word.instead, hit.folder) for hit in hits] == [(2, "continues", "a"), (2, "strangely", "a")]


@pytest.mark.parametrize(("path", "hits"), [("docs/a.md", 0), ("tests/a.md", 1)])
def test_an_exception_holds_in_its_folder(path, hits):
    assert len(list(hits_in(path, "it goes without saying", LANGUAGE))) == hits


def test_a_capital_letter_is_a_hit_too(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text(
        "[tool.language]\nwords = [{ pattern = '\\bgoes\\b', instead = 'continues' }]\nexceptions = []\n"
        "[tool.language.budgets]\n"
    )
    assert len(list(hits_in("a.py", '"""Goes."""\n', read_language(path)))) == 1


def test_folders_above_their_budget_are_reported():
    hits = [hit for path in ("docs/a.md", "new/a.py") for hit in hits_in(path, "it goes\nit goes", LANGUAGE)]
    assert excess(hits, LANGUAGE.budgets) == {"docs": 1, "new": 2}
    assert excess(hits[:1], LANGUAGE.budgets) == {}


def test_budgets_only_fall():
    hits = list(hits_in("docs/a.md", "it goes\nit goes", LANGUAGE))
    text = '[tool.language.budgets]\n"docs" = 1\n"tests" = 5\n'
    assert tightened(text, hits, {"docs": 1, "tests": 5}) == '[tool.language.budgets]\n"docs" = 1\n"tests" = 0\n'


def test_every_exception_is_used_and_has_a_reason():
    language = read_language(ROOT / "pyproject.toml")
    for path, pattern in language.exceptions:
        files = (
            [ROOT / path] if (ROOT / path).is_file() else [*(ROOT / path).rglob("*.py"), *(ROOT / path).rglob("*.md")]
        )
        matches = [match for file in files for match in pattern.finditer(file.read_text(encoding="utf-8"))]
        assert any(word.pattern.search(match[0]) for match in matches for word in language.words), (path, pattern)


def test_the_tree_is_read_without_hidden_and_built_folders(tmp_path):
    for path in ("a.md", "docs/b.md", "docs/c.png", "build/d.md", ".venv/e.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("it goes\n")
    assert [(hit.path, hit.folder) for hit in hits_in_tree(tmp_path, LANGUAGE)] == [
        ("a.md", "."),
        ("docs/b.md", "docs"),
    ]
