"""Content of `run.json`: what ran, with which settings, and whether it ended on its own.

It is written when a run starts, with `complete` false, and replaced atomically afterwards, so that a killed run is
never mistaken for a finished one. Other tools may omit members that do not affect verdicts (seed, versions). A value
of the wrong type is an error.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from linearizability.history.errors import HistoryError, NotARunError
from linearizability.history.files import read_bounded
from linearizability.history.schema import FORMAT
from linearizability.printable import printable

RUN_FILE: Final = "run.json"

Properties = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The contents of `run.json`; docs/history-format.md defines them."""

    run_id: str
    seed: int | None = None
    target: str | None = None
    versions: Properties = field(default_factory=dict)
    topics: Mapping[str, Properties] = field(default_factory=dict)
    """The Kafka properties that were set on each topic itself, by topic name."""
    cluster: Properties = field(default_factory=dict)
    """Kafka properties for topics that do not set them."""
    clients: Mapping[int, Properties] = field(default_factory=dict)
    """The properties of each client, by process."""
    complete: bool = False
    """True only if the run ended on its own."""
    format: int = FORMAT

    @classmethod
    def read(cls, run_dir: Path) -> "RunInfo":
        """Read `run_dir/run.json`.

        Raises NotARunError if the file does not exist or has another `format`, HistoryError if it is invalid.
        """
        path = run_dir / RUN_FILE
        document = _load(run_dir, path)
        return cls.of(path, {**document, "run_id": document.get("run_id") or printable(run_dir.resolve().name)})

    @classmethod
    def of(cls, path: Path, document: Mapping[str, Any]) -> "RunInfo":
        """Return the contents of a document from `path`. Raises as `read` does."""
        version = document.get("format")
        if type(version) is not int or version != FORMAT:
            raise NotARunError(f"{path}: format is {json.dumps(version)}, this version reads format {FORMAT}")
        read = _Fields(path, document)
        return cls(
            run_id=read.text("run_id") or path.name,
            seed=read.integer("seed"),
            target=read.text("target"),
            versions=read.properties("versions"),
            topics=read.nested("topics"),
            cluster=read.properties("cluster"),
            clients={read.process(name): values for name, values in read.nested("clients").items()},
            complete=read.flag("complete"),
        )

    @property
    def unfinished_reasons(self) -> tuple[str, ...]:
        """The reasons why a history of this run cannot have the verdict ok; empty if the run ended on its own.

        A violation in an unfinished history is real. The absence of violations proves nothing, because later reads and
        acknowledgements are missing.
        """
        return () if self.complete else ("the history is unfinished: the run did not end on its own (`complete`)",)

    def document(self) -> dict[str, Any]:
        """Return the members of `run.json`, for `json.dumps`."""
        fields = asdict(self)
        return {"format": fields.pop("format"), **fields}

    def write(self, run_dir: Path) -> None:
        """Replace `run_dir/run.json` atomically. Raises OSError."""
        path = run_dir / RUN_FILE
        draft = path.with_name(f".{RUN_FILE}.tmp")
        draft.write_text(json.dumps(self.document(), indent=1) + "\n", encoding="utf-8")
        draft.replace(path)


def _load(run_dir: Path, path: Path) -> dict[str, Any]:
    if not run_dir.is_dir():
        raise NotARunError(f"{run_dir}: no such directory" if not run_dir.exists() else f"{run_dir}: not a directory")
    if not os.path.lexists(path):
        raise NotARunError(f"{run_dir}: not a run directory: it has no {RUN_FILE}")
    try:
        document = json.loads(read_bounded(path).decode())
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise HistoryError(f"{path}: holds a JSON {type(document).__name__}, not an object")
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise HistoryError(f"{path}: holds half of a surrogate pair, which is not valid text") from None
    return document


@dataclass(frozen=True, slots=True)
class _Fields:
    """Typed access to the members of the document. For an absent member or null: None, False or an empty mapping."""

    path: Path
    document: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        value = self.document.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, value, "a string")
        return value

    def integer(self, name: str) -> int | None:
        value = self.document.get(name)
        if value is not None and type(value) is not int:
            raise self._wrong(name, value, "an integer")
        return value

    def flag(self, name: str) -> bool:
        value = self.document.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value is True

    def properties(self, name: str) -> dict[str, str]:
        return self._properties(name, self.document.get(name))

    def nested(self, name: str) -> dict[str, dict[str, str]]:
        value = self.document.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(name, value, "an object")
        return {key: self._properties(f"{name}.{key}", values) for key, values in value.items()}

    def process(self, name: str) -> int:
        try:
            return int(name)
        except ValueError:
            raise HistoryError(f"{self.path}: clients: {name!r} is not a process number") from None

    def _properties(self, name: str, value: Any) -> dict[str, str]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(name, value, "an object")
        return {key: self._property(f"{name}.{key}", setting) for key, setting in value.items()}

    def _property(self, name: str, value: Any) -> str:
        """Return a JSON value as a Kafka property, which is a string: numbers and booleans as Kafka spells them."""
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return json.dumps(value)
        raise self._wrong(name, value, "a string")

    def _wrong(self, name: str, value: Any, wanted: str) -> HistoryError:
        shown = json.dumps(value)
        return HistoryError(f"{self.path}: {name} is {shown if len(shown) < 60 else shown[:60] + '…'}, not {wanted}")
