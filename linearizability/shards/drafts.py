"""Atomic files for tasks that Spark may run twice at the same time: each attempt writes its own draft."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield a draft path that is renamed to `path` at the end; after an error there is no file."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
