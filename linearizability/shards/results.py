"""Stored results of shards, beside their files: an unchanged history is not judged twice.

A result is valid as long as its *key* is the same: a hash of the history's fingerprint and of the source code of this
package. A judgement depends on nothing else. A result is JSON and Arrow, so that reading it executes no code. An
unreadable result is ignored.
"""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from importlib.abc import Traversable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from linearizability.anomalies.catalogue import FACTS, ShardJudgement
from linearizability.drafts import draft_of
from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded
from linearizability.judgement import Anomaly, Evidence, Verdict
from linearizability.shards.manifest import Layout

RESULT: Final = "judgement.json"


@dataclass(frozen=True, slots=True)
class Keeping:
    """A task that judges a shard and stores the result."""

    judge: Callable[[], ShardJudgement]
    path: Path
    key: str

    def __call__(self) -> ShardJudgement:
        """Judge the shard and store the result."""
        judgement = self.judge()
        with draft_of(self.path) as draft:
            draft.write_text(json.dumps({"key": self.key, **_document(judgement)}))
        return judgement


def result_file(layout: Layout, shard: int) -> Path:
    """Return the file of a shard's result."""
    return layout.shard_folder(shard) / RESULT


def kept_result(layout: Layout, shard: int, key: str) -> ShardJudgement | None:
    """Return the stored result of a shard; None if there is none, or if it is not valid any more."""
    try:
        document = json.loads(read_bounded(result_file(layout, shard)))
        if document["key"] != key:
            return None
        findings = tuple(_finding(one) for one in document["findings"])
        facts = {kind.name: _table(document["facts"][kind.name]) for kind in FACTS}
        has_schemas = all(facts[kind.name].schema == kind.schema for kind in FACTS)
        return ShardJudgement(findings, facts) if has_schemas else None
    except (HistoryError, OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return None


def key_of(layout: Layout) -> str:
    """Return the key of results for a layout."""
    return hashlib.sha256(f"{layout.fingerprint} {_code()}".encode()).hexdigest()


@cache
def _code() -> str:
    """Return a hash of this package's source."""
    digest = hashlib.sha256()

    def add(folder: Traversable) -> None:
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir() and entry.name != "__pycache__":
                add(entry)
            elif entry.name.endswith(".py"):
                digest.update(entry.read_bytes())

    add(resources.files("linearizability"))
    return digest.hexdigest()


def _document(judgement: ShardJudgement) -> dict[str, Any]:
    return {
        "findings": [asdict(finding) for finding in judgement.findings],
        "facts": {name: _bytes(table) for name, table in judgement.facts.items()},
    }


def _finding(document: dict[str, Any]) -> Anomaly:
    evidence = tuple(Evidence(**{**one, "op_ids": tuple(one["op_ids"])}) for one in document["evidence"])
    return Anomaly(document["name"], Verdict(document["verdict"]), document["count"], evidence)


def _bytes(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode()


def _table(text: str) -> pa.Table:
    return pa.ipc.open_stream(base64.b64decode(text)).read_all()
