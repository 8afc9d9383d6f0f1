"""Check of names and prose against the word list of the project: `[tool.language]` in pyproject.toml.

Each top folder has a budget of hits, which may only become smaller: `python -m tools.language --tighten` lowers each
budget to the number of hits that are left. `--list FOLDER` lists the hits. An exception names a path, a pattern and the
reason.
"""

import argparse
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CONFIGURATION = "pyproject.toml"
_BUILT = ("build", "dist")
SUFFIXES = (".py", ".md", ".j2", ".toml", ".sql")


@dataclass(frozen=True, slots=True)
class Word:
    """A pattern that is forbidden in names and prose, in upper or lower case, and the text to use instead."""

    pattern: re.Pattern[str]
    instead: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A match of a word in a line of a file."""

    path: str
    line: int
    text: str
    word: Word

    @property
    def folder(self) -> str:
        """The top folder, or "." for a file of the root."""
        return self.path.partition("/")[0] if "/" in self.path else "."


@dataclass(frozen=True, slots=True)
class Language:
    """The word list, its exceptions by path, and the budgets by top folder."""

    words: Sequence[Word]
    exceptions: Sequence[tuple[str, re.Pattern[str]]]
    budgets: Mapping[str, int]


def read_language(path: Path) -> Language:
    """Read `[tool.language]` from a pyproject.toml."""
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))["tool"]["language"]
    return Language(
        [Word(re.compile(word["pattern"], re.IGNORECASE), word["instead"]) for word in table["words"]],
        [(each["path"], re.compile(each["pattern"])) for each in table["exceptions"] if each["reason"]],
        table["budgets"],
    )


def hits_in(path: str, text: str, language: Language) -> Iterator[Hit]:
    """Yield the hits in the text of a file: at most one per line and word."""
    exceptions = [pattern for excepted, pattern in language.exceptions if path.startswith(excepted)]
    for number, line in enumerate(text.splitlines(), 1):
        rest = line
        for pattern in exceptions:
            rest = pattern.sub("", rest)
        for word in language.words:
            if word.pattern.search(rest):
                yield Hit(path, number, line.strip(), word)


def hits_in_tree(root: Path, language: Language) -> list[Hit]:
    """Return the hits in the files of the tree with one of `SUFFIXES`, except in hidden and built folders."""
    folders = sorted(
        each for each in root.iterdir() if each.is_dir() and each.name not in _BUILT and each.name[0] != "."
    )
    files = [*root.iterdir(), *(path for folder in folders for path in sorted(folder.rglob("*")))]
    paths = [path.relative_to(root).as_posix() for path in files if path.suffix in SUFFIXES and path.is_file()]
    texts = ((path, (root / path).read_text(encoding="utf-8", errors="replace")) for path in paths)
    return [hit for path, text in texts for hit in hits_in(path, text, language)]


def excess(hits: Sequence[Hit], budgets: Mapping[str, int]) -> dict[str, int]:
    """Return by how many hits folders exceed their budgets. A folder without a budget has 0."""
    counts = Counter(hit.folder for hit in hits)
    return {
        folder: count - budgets.get(folder, 0) for folder, count in counts.items() if count > budgets.get(folder, 0)
    }


def tightened(text: str, hits: Sequence[Hit], budgets: Mapping[str, int]) -> str:
    """Return the text of pyproject.toml with every budget lowered to the hits that are left."""
    counts = Counter(hit.folder for hit in hits)
    head, table, rest = text.partition("[tool.language.budgets]\n")
    end = rest.find("\n[")
    lines = [f'"{folder}" = {min(budget, counts[folder])}\n' for folder, budget in sorted(budgets.items())]
    return head + table + "".join(lines) + ("" if end < 0 else rest[end:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the tree; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.language", description=__doc__)
    parser.add_argument("--tighten", action="store_true", help="Lower the budgets to the hits that are left.")
    parser.add_argument("--list", metavar="FOLDER", help="List the hits of a top folder instead of checking.")
    options = parser.parse_args(arguments)
    path = ROOT / CONFIGURATION
    language = read_language(path)
    hits = hits_in_tree(ROOT, language)
    if options.list:
        _print(hit for hit in hits if hit.folder == options.list)
        return 0
    if options.tighten:
        path.write_text(tightened(path.read_text(encoding="utf-8"), hits, language.budgets), encoding="utf-8")
        return 0
    exceeded = excess(hits, language.budgets)
    for folder, count in exceeded.items():
        sys.stdout.write(
            f"language: {folder}: {count} hits above the budget (python -m tools.language --list {folder})\n"
        )
    return 1 if exceeded else 0


def _print(hits: Iterator[Hit]) -> None:
    for hit in hits:
        sys.stdout.write(f"{hit.path}:{hit.line}: {hit.text[:120]}  (use: {hit.word.instead})\n")


if __name__ == "__main__":
    sys.exit(main())
