"""The page `docs/defects.md`, made from the registry and the saved counterexamples so that it cannot say anything else.

`python -m chaos.defects.document` prints it.
"""

import sys
from collections import Counter
from itertools import groupby

from chaos.defects.defect import Defect
from chaos.defects.live.registry import LIVE_DEFECTS
from chaos.defects.live.rounds import ROUNDS
from chaos.defects.registry import DEFECTS
from chaos.defects.saved import saved_counterexample
from chaos.trial.source import printed

_SHOWN = ("truncate-to-high-watermark", "see-no-divergence", "let-the-last-in-sync-go")
"""Defects of which the page prints the whole counterexample."""

_INTRODUCTION = """# Defects

A test suite is worth what it catches. So bugs are seeded into the reference broker, one at a time, each by replacing
one function from outside (`chaos/defects`; the broker's own code has no trace of them), and `kafkatrial sensitivity`
counts which of them the suite catches, by what, and after how many trials. `kafkatrial simulate --defect NAME` hunts
one of them, shrinks what it finds and draws it. This page is made from the registry
(`python -m chaos.defects.document`).

{count} defects; {real} of them really happened, in Kafka or in another broker, as their sources say. The others are
slips that somebody could make. *Found* is what the smallest trial violates that is saved for the defect, and the seed
of the trial that it was shrunk from; tests run each of these again. Where there is a requirement instead, that is what
catches the defect on the target `simulation`.

What the broker does not have yet cannot be broken: there are no defects of transactions, group members, fetch sessions
and compaction.
"""


_LIVE_INTRODUCTION = """## On real processes

The simulation has a network, a disk and clocks of its own, so it sees nothing of the server around the core: its files,
sockets, signals and clocks. Those have defects, too. The target `defective:NAME` is the reference cluster with one bug
in each of its processes, of these or of those above, and any command takes it: `kafkatrial chaos --target
defective:flush-no-directory --minutes 10` draws rounds until one shows it. For {count} of them a round is kept, of
which {new} are of the server (`chaos/defects/live/rounds.py`); `python -m chaos.defects.live` runs each on its defect,
with disks in FUSE that lose what was not flushed, and on the clean broker, which must show nothing. What catches them
is what catches everything in [chaos](chaos.md); no check knows of any defect. *Caught by* is what a round has shown.

"""


def page() -> str:
    """The whole page as Markdown."""
    defects = tuple(DEFECTS.values())
    real = sum(bool(each.sources) for each in defects)
    parts = [_INTRODUCTION.format(count=len(defects), real=real)]
    for area, found in groupby(defects, key=lambda each: each.area):
        parts.append(f"## {area.value.capitalize()}\n\n" + _table(list(found)))
    parts += [_LIVE_INTRODUCTION.format(count=len(ROUNDS), new=len(LIVE_DEFECTS)) + _live_tables()]
    parts += [_example(name) for name in _SHOWN if saved_counterexample(name) is not None]
    parts.append(_catchers(defects))
    return "\n".join(parts)


def _live_tables() -> str:
    rows = "".join(
        f"| `{each.name}` | {each.story} {_sources(each)}| `{each.expected[0]}` |\n" for each in LIVE_DEFECTS.values()
    )
    core = ", ".join(f"`{name}`" for name in ROUNDS if name not in LIVE_DEFECTS)
    return (
        f"| name | what is wrong, and what a user sees | caught by |\n|---|---|---|\n{rows}\nOf those above: {core}.\n"
    )


def _table(defects: list[Defect]) -> str:
    rows = "".join(f"| `{each.name}` | {each.story} {_sources(each)}| {_found(each)} |\n" for each in defects)
    return f"| name | what is wrong, and what a user sees | found |\n|---|---|---|\n{rows}"


def _sources(each: Defect) -> str:
    links = [f"[{_short(source)}]({address(source)})" for source in each.sources]
    return f"*{', '.join(links)}* " if links else ""


def _short(source: str) -> str:
    return source.removeprefix("https://").rstrip("/") if source.startswith("https://") else source


def address(source: str) -> str:
    """Where a ticket, a KIP or a report is."""
    if source.startswith("KAFKA-"):
        return f"https://issues.apache.org/jira/browse/{source}"
    if source.startswith("KIP-"):
        return f"https://cwiki.apache.org/confluence/display/KAFKA/{source}"
    return source


def _found(each: Defect) -> str:
    saved = saved_counterexample(each.name)
    if saved is not None:
        return f"`{saved.name}`, seed {saved.seed}"
    return ", ".join(f"`{name}`" for name in each.expected if "/" in name)


def _example(name: str) -> str:
    saved = saved_counterexample(name)
    assert saved is not None
    return (
        f"## A counterexample: `{name}`\n\n{saved.text}\n\nShrunk to {saved.size}, from seed {saved.seed}; it shows "
        f"{saved.at_ms} virtual milliseconds after the start of the cluster.\n\n"
        f"```python\n{printed(saved.trial)}\n```\n"
    )


def _catchers(defects: tuple[Defect, ...]) -> str:
    found = [saved.name for each in defects if (saved := saved_counterexample(each.name)) is not None]
    counts = sorted(Counter(found).items(), key=lambda count: (-count[1], count[0]))
    told = ", ".join(f"`{name}` {count}" for name, count in counts)
    return f"## What finds them\n\nBy saved counterexample: {told}.\n"


if __name__ == "__main__":
    sys.stdout.write(page())
