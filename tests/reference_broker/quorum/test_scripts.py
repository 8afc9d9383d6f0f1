"""Quorum scripts in `scripts/`, whose output must not change.

`REWRITE_SCRIPTS=1` writes the current output into the scripts; commit only changes that you can explain.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference_broker.quorum.interaction import Interaction

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


def played(text: str) -> Iterator[str]:
    """Yield the paragraphs of the script with the current output of its commands."""
    quorum = Interaction()
    for paragraph in text.strip().split("\n\n"):
        comments = [line for line in paragraph.splitlines() if line.startswith("#")]
        command = next((line for line in paragraph.splitlines() if not line.startswith("#")), None)
        output = [command, "----", quorum.run(command)] if command else []
        yield "\n".join([*comments, *output])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_output_is_unchanged(path):
    text = path.read_text()
    current = "\n\n".join(played(text)) + "\n"
    if os.environ.get("REWRITE_SCRIPTS"):
        path.write_text(current)
    assert current == text


def test_scripts_are_found():
    assert len(SCRIPTS) > 5
