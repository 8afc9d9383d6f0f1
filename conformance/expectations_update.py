"""Update of a file of expectations from the findings of a run. Pure.

- A violation that the file does not list is added. Its reason is `TODO: ` and the cause that the run found. A flaky
  violation is not added: an entry whose violation does not occur in a run fails that run.
- An entry is removed if its requirement is ok now, or no longer exists.
- Every other entry keeps its text and comments, even if the run has not judged its requirement. But if an entry has
  another form than a `[[violation]]` table, all entries are rewritten.
- Entries are in the order of their ids, so that the same findings give the same file.
"""

import json
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from conformance.expectations import ExpectedViolation
from linearizability.finding import Finding
from linearizability.judgement import Verdict
from linearizability.printable import one_line

TODO: Final = "TODO: "
"""Beginning of the reason of a new entry."""
_REASON_MAX: Final = 300
_HEAD: Final = re.compile(r"^[ \t]*\[\[[ \t]*violation[ \t]*\]\]", re.MULTILINE)
_EMPTY: Final = re.compile(r"^[ \t]*violation[ \t]*=[ \t]*\[[ \t]*\][ \t]*(#.*)?\n?", re.MULTILINE)
_TRAILING_COMMENTS: Final = re.compile(r"(?:^[ \t]*(?:#.*)?(?:\n|\Z))+\Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Update:
    """The new text, and the changes by requirement id."""

    text: str
    added: Mapping[str, str]
    """Reasons of new entries."""
    removed: Mapping[str, str]
    """Why an entry was removed."""
    kept: tuple[str, ...]
    flaky: tuple[str, ...]
    """Violations that were not added, because they did not recur."""


def update(
    text: str,
    entries: Mapping[str, ExpectedViolation],
    findings: Sequence[Finding],
    known: Collection[str],
    *,
    title: str,
) -> Update:
    """Return the new text of a file of expectations, and the changes.

    :param text: the file as it is; empty for a new one.
    :param entries: the entries in `text`.
    :param findings: findings of one target.
    :param known: ids of all requirements.
    :param title: the comment at the top of a new file.
    """
    found = {finding.requirement: finding for finding in findings}
    removed = {name: why for name in entries if (why := _why_removed(name, found.get(name), known))}
    violated = {name: each for name, each in found.items() if each.verdict is Verdict.VIOLATION and name not in entries}
    added = {name: ExpectedViolation(name, _reason(each), "") for name, each in violated.items() if not each.flaky}
    kept = tuple(sorted(entries.keys() - removed.keys()))
    head, blocks = _split(text, entries) if text else (f"# {one_line(title)}", {})
    blocks = {name: blocks[name] for name in kept} | {name: _block(entry) for name, entry in added.items()}
    parts = [head.strip(), *(blocks[name] for name in sorted(blocks))] if blocks else [head.strip(), "violation = []"]
    return Update(
        "\n\n".join(filter(None, parts)) + "\n",
        {name: added[name].reason for name in sorted(added)},
        {name: removed[name] for name in sorted(removed)},
        kept,
        tuple(sorted(violated.keys() - added.keys())),
    )


def _why_removed(name: str, finding: Finding | None, known: Collection[str]) -> str:
    if finding is not None and finding.verdict is Verdict.OK:
        return "it is ok now"
    return "" if finding is not None or name in known else "there is no such requirement"


def _reason(finding: Finding) -> str:
    text = next(filter(None, (finding.reason, finding.actual)), "")
    return one_line(TODO + text.strip().partition("\n")[0], _REASON_MAX)


def _block(entry: ExpectedViolation) -> str:
    return "[[violation]]\n" + "\n".join(f"{name} = {_toml(text)}" for name, text in asdict(entry).items())


def _toml(text: str) -> str:
    """Return a basic string of TOML: the JSON string, in which DEL is escaped, too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _split(text: str, entries: Mapping[str, ExpectedViolation]) -> tuple[str, dict[str, str]]:
    """Return what precedes the first entry, and the text of each entry with the comments above it.

    If one of the entries has another form, such as an array in one line, all entries are rewritten as tables.
    """
    starts = [found.start() for found in _HEAD.finditer(text)]
    chunks = _chunks(text, starts)
    if [_parsed(chunk) for chunk in chunks] != [{"violation": [asdict(entry)]} for entry in entries.values()]:
        comments = re.match(r"(?:[ \t]*(?:#.*)?(?:\n|\Z))*", text)
        return comments[0] if comments else "", {name: _block(entry) for name, entry in entries.items()}
    blocks: dict[str, str] = {}
    above = ""
    for name, chunk in zip(entries, chunks, strict=True):
        own, below = (chunk, "") if chunk is chunks[-1] else _without_comments_below(chunk)
        blocks[name] = f"{above}{own.strip()}"
        above = f"{below}\n" if below else ""
    return _EMPTY.sub("", text[: starts[0]] if starts else text), blocks


def _chunks(text: str, starts: Sequence[int]) -> list[str]:
    """Return the text of each entry, from its `[[violation]]` line to the next one.

    Such a line inside a multi-line string does not begin an entry.

    :param starts: positions of all `[[violation]]` lines.
    """
    chunks = []
    begin = starts[0] if starts else len(text)
    for end in [*starts[1:], len(text)]:
        if _parsed(text[begin:end]):
            chunks.append(text[begin:end])
            begin = end
    return chunks


def _without_comments_below(chunk: str) -> tuple[str, str]:
    """Return an entry, and the comments between it and the next one."""
    found = _TRAILING_COMMENTS.search(chunk)
    own = chunk[: found.start()] if found else chunk
    return (own, found[0].strip()) if found and _parsed(own) == _parsed(chunk) else (chunk, "")


def _parsed(text: str) -> Mapping[str, object]:
    """Return the content of a TOML text; empty if the text is not valid TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
