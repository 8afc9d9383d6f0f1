"""Files that appear whole, though Spark may run a task twice at a time: each attempt writes a draft of its own."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Where to write a file, which then takes its name. Left by an error, nothing is there."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
