"""Each script in `scripts/` prints what stands in it. `REWRITE_SCRIPTS=1` writes what it prints now; commit only what
you can explain."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference_broker.quorum.interaction import Interaction

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


def played(text: str) -> Iterator[str]:
    """The script with what its commands print now; a paragraph of comments, or a command and its output, at a time."""
    quorum = Interaction()
    for paragraph in text.strip().split("\n\n"):
        comments = [line for line in paragraph.splitlines() if line.startswith("#")]
        command = next((line for line in paragraph.splitlines() if not line.startswith("#")), None)
        output = [command, "----", quorum.run(command)] if command else []
        yield "\n".join([*comments, *output])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script(path):
    text = path.read_text()
    now = "\n\n".join(played(text)) + "\n"
    if os.environ.get("REWRITE_SCRIPTS"):
        path.write_text(now)
    assert now == text


def test_there_are_scripts():
    assert len(SCRIPTS) > 5
