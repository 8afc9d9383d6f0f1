"""Generator of docs/kafka-classes.md: modules of the reference broker, and the Java classes and KIPs that they follow.

A module's docstring has the line `Follows: CLASS, CLASS (KIP-N, KIP-N).`, which may be wrapped. `make docs` writes the
page.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "kafka-classes.md"
PACKAGE = "reference_broker"
_FOLLOWS = re.compile(r"^Follows: (.+?)\.$", re.MULTILINE | re.DOTALL)
_KIPS = re.compile(r"\((KIP-\d+(?:,\s+KIP-\d+)*)\)")
_CLASS_NAME = re.compile(r"(?:[a-z_][a-z0-9_]*\.)+[A-Z]\w*(?:\$[A-Z]\w*)?")
"""A fully qualified name of a Java or Scala class."""
_HEADER = """\
# The reference broker beside Apache Kafka

This page is generated from the module headers by `make docs`. It lists the modules of the
[reference broker](../reference_broker) with the classes of Apache Kafka 4.3 that they follow, and with the KIPs that
specify the behaviour.

| Module | Implements | Class in Apache Kafka | KIPs |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A module, the first line of its docstring, and what it follows."""

    module: str
    summary: str
    classes: tuple[str, ...]
    kips: tuple[str, ...]


def rows(root: Path) -> Iterator[Row]:
    """Yield a row for each module that names the classes it follows.

    Raises:
        ValueError: a line `Follows:` does not have the form that the docstring of this file describes.
    """
    for path in sorted((root / PACKAGE).rglob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        module = path.relative_to(root).as_posix()
        found = _FOLLOWS.findall(docstring)
        if docstring.count("Follows:") != len(found):
            raise ValueError(f"{module}: the line must be 'Follows: CLASS, CLASS (KIP-N, KIP-N).'")
        if found:
            yield _row(module, docstring.splitlines()[0], ", ".join(found))


def _row(module: str, summary: str, follows: str) -> Row:
    kips = {kip for group in _KIPS.findall(follows) for kip in re.split(r",\s+", group)}
    classes = re.split(r",\s+", re.sub(r"\s+", " ", _KIPS.sub("", follows)).strip())
    names = tuple(dict.fromkeys(name.strip() for name in classes))
    if invalid := [name for name in names if not _CLASS_NAME.fullmatch(name)]:
        raise ValueError(f"{module}: not the fully qualified name of a class: {', '.join(invalid)}")
    return Row(module, summary.rstrip("."), names, tuple(sorted(kips, key=lambda kip: int(kip.partition("-")[2]))))


def page(root: Path) -> str:
    """Return the text of the page."""
    lines = (
        f"| [{row.module.removeprefix(f'{PACKAGE}/')}](../{row.module}) | {row.summary.replace('|', '&#124;')} "
        f"| {'<br>'.join(f'`{name}`' for name in row.classes)} | {', '.join(row.kips)} |\n"
        for row in rows(root)
    )
    return _HEADER + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(ROOT), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
