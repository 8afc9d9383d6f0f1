"""Atomic files: each writer has its own draft, since Spark may run a task twice at the same time."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield a draft path that is renamed to `path` at the end; after an error it is deleted and `path` is unchanged."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
