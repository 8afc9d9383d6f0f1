"""Paths and links in all documents, and names in ARCHITECTURE.md, exist in the tree."""

import re
import sys
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("kafkatrial", "chaos", "conformance", "fixtures", "linearizability", "reports", "reference_broker")
FOLDERS = (*PACKAGES, "tests", "docs", "bench", "examples", "tools")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "reference_broker" / "SKIPPED.md"])
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./*-]*)`")
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)(?:#[^)]*)?\)")
SPAN = re.compile(r"(?<!Kafka's )`([\w./]+)`")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")
"""A part of a path that stands for other text, such as VERSION."""
KNOWN = {*PACKAGES, *sys.stdlib_module_names}


def missing_from(document):
    """Return the paths and links of a document whose files do not exist."""
    text = document.read_text(encoding="utf-8")
    paths = [path for path in PATH.findall(text) if not PLACEHOLDER.search(path) and not any(ROOT.glob(path))]
    return paths + [link for link in LINK.findall(text) if not (document.parent / link).exists()]


def unknown_in(text, modules):
    """Yield the names in a text that are no module, class, function, field or string in the given modules."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in modules)
    paths = {f"/{path.relative_to(ROOT)}" for path in modules}
    paths |= {str(parent) for path in paths for parent in Path(path).parents}
    for span in SPAN.findall(text):
        if "/" in span or span.endswith(".py"):
            is_known = any(path.endswith(f"/{span.strip('/')}") for path in paths)
        else:
            names = span.split(".")
            is_known = all(re.search(rf"(?:class|def) {name}\b|^ *{name}:", source, re.MULTILINE) for name in names)
            is_known = is_known or span in KNOWN or f'"{span}"' in source  # such as a broker property
        if not is_known:
            yield span


def folders_of(map_text):
    """Yield the folders of the map in ARCHITECTURE.md. Indented ones are in the first of the last unindented line."""
    parent = Path()
    for line in map_text.splitlines():
        indent, names = re.match(r"( *)((?:\w+/(?:, | +))+)", line).groups()
        folders = [Path(name.strip(" /")) for name in names.split(",") if name.strip()]
        parent = parent if indent else folders[0]
        yield from ((parent / folder if indent else folder) for folder in folders)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paths_and_links_exist(document):
    assert missing_from(document) == []


def test_architecture_names_what_exists():
    before, map_text, after = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert sorted(unknown_in(before + after, modules)) == []
    folders = list(folders_of(map_text.strip("\n")))
    assert set(PACKAGES) <= set(map(str, folders))
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []


def test_what_does_not_exist_is_found(tmp_path):
    document = tmp_path / "page.md"
    document.write_text("`chaos/nothing.py` is like `chaos/replay.py`; see [this](none.md), `docs/NAME.md`")
    assert missing_from(document) == ["chaos/nothing.py", "none.md"]
    text = "`nothing.py`, `replay.py`, `Nothing`, `Trial`, `Partition.no_method`, Kafka's `LogValidator`"
    modules = list(chain((ROOT / "chaos").rglob("*.py"), (ROOT / "conformance").rglob("*.py")))
    assert list(unknown_in(text, modules)) == ["nothing.py", "Nothing", "Partition.no_method"]
    assert list(map(str, folders_of("chaos/   x\n  live/, none/  y"))) == ["chaos", "chaos/live", "chaos/none"]
