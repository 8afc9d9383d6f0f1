"""The layout of a history by topic partition, in `history/_shards/`: derived data that is not part of the history.

A *shard* is a folder with all rows of several small topic partitions, or of one large topic partition. Its records are
in *parts*: a shard of several partitions has one part, a large partition has one part for each range of offsets.
`layout.json` has the version of the layout, a fingerprint of the source files, the shards and the parts. If the version
or a source file has changed, or a file of the layout is missing, the layout is stale and is created again. The folder
appears atomically, and may be deleted at any time.

The layout of a run that is in progress or was killed is not kept.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from linearizability.anomalies.arrow import Place
from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded
from linearizability.history.layout import HISTORY_FOLDER, has_journal
from linearizability.history.reader import History
from linearizability.history.schema import SCHEMAS

VERSION: Final = 3
SHARDS_FOLDER: Final = "_shards"
MANIFEST: Final = "layout.json"
_TAIL_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Part:
    """The records of a split shard that have an offset in [begin, end), or all records of a shard that is not split."""

    begin: int
    end: int
    rows: int
    """The approximate number of rows."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Logs whose rows are in one folder."""

    logs: tuple[int, ...]
    """Indexes into `Layout.places`."""
    parts: tuple[Part, ...]

    @property
    def is_cut(self) -> bool:
        """Whether the shard is one log, split into several ranges of offsets."""
        return len(self.parts) > 1


@dataclass(frozen=True, slots=True)
class Layout:
    """The content of `layout.json`, and its folder."""

    folder: Path
    fingerprint: str
    places: tuple[Place, ...]
    shards: tuple[Shard, ...]
    records: int
    reads: int
    positions: int

    def shard_folder(self, shard: int) -> Path:
        """Return the folder of a shard."""
        return self.folder / f"{shard:05d}"

    def part_file(self, shard: int, part: int, name: str) -> Path:
        """Return the file of `sends`, `reads` or `operations` of a part."""
        return self.shard_folder(shard) / f"{name}-{part:04d}.parquet"

    def small_file(self, shard: int, name: str) -> Path:
        """Return the file of a shard for a small table, or for rows of `sends` or `operations` that belong to no part.

        Only a split shard has such rows: the sends without an acknowledged offset, and the operations of these sends
        and of the rows of the small tables. The file is absent if it would have no rows.
        """
        return self.shard_folder(shard) / f"{name}.parquet"

    def write(self) -> None:
        """Write `layout.json`, which marks the layout as complete."""
        document = {"version": VERSION, "files": _sizes(self.folder), **asdict(self)}
        del document["folder"]
        (self.folder / MANIFEST).write_text(json.dumps(document))


def layout_folder(history: History) -> Path:
    """Return the folder for the layout of a history."""
    return history.run_dir / HISTORY_FOLDER / SHARDS_FOLDER


def current_layout(history: History) -> Layout | None:
    """Return the layout of a history; None if it has none, a stale one, or an unreadable one."""
    folder = layout_folder(history)
    if has_journal(folder.parent):
        return None
    try:
        document = json.loads(read_bounded(folder / MANIFEST))
        if document.pop("version") != VERSION or document["fingerprint"] != fingerprint_of(history):
            return None
        if any((folder / name).stat().st_size != size for name, size in document.pop("files").items()):
            return None
        places = tuple((str(topic), topic_id, int(partition)) for topic, topic_id, partition in document.pop("places"))
        shards = tuple(
            Shard(tuple(shard["logs"]), tuple(Part(**part) for part in shard["parts"]))
            for shard in document.pop("shards")
        )
        return Layout(folder, places=places, shards=shards, **document)
    except (HistoryError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _sizes(folder: Path) -> dict[str, int]:
    """Return the sizes of all Parquet files by path, without the drafts of killed tasks."""
    return {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*.parquet")}


def fingerprint_of(history: History) -> str:
    """Return a hash of `run.json` and of the names, sizes, modification times and last bytes of the files."""
    digest = hashlib.sha256(json.dumps(history.run.document(), sort_keys=True).encode())
    for name in SCHEMAS:
        for path in history.files(name):
            status = path.stat()
            digest.update(f"{name} {path.name} {status.st_size} {status.st_mtime_ns} ".encode())
            with path.open("rb") as file:
                file.seek(max(0, status.st_size - _TAIL_BYTES))
                digest.update(file.read())
    return digest.hexdigest()
