"""The page `docs/defects.md`, generated from the registry and the saved counterexamples.

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
from conformance.trial.source import printed

_SHOWN = ("truncate-to-high-watermark", "see-no-divergence", "let-the-last-in-sync-go")
"""Defects whose counterexamples the page prints in full."""

_INTRODUCTION = """# Defects

A test suite is as good as the bugs that it detects. So bugs are seeded into the reference broker, one at a time, each
by replacing one function from outside (`chaos/defects`; the broker's own code has no trace of them). `kafkatrial
sensitivity` shows which of them the suite detects, by which check, and after how many trials. `kafkatrial simulate
--defect NAME` searches for a failing trial of one defect, shrinks it and draws it. This page is generated from the
registry (`python -m chaos.defects.document`).

{count} defects; {real} of them are known from Kafka or another broker, as their sources show. The others are plausible
bugs. Most defects have a saved counterexample: the smallest failing trial that was found. Tests run each counterexample
again. *Detected by* names the check that the counterexample violates, and the seed of the trial before shrinking. A
name with a `/` is a requirement that detects the defect on the target `simulation`.

There are no defects of features that the broker does not implement yet: transactions, group members, fetch sessions and
compaction.
"""


_LIVE_INTRODUCTION = """## On real processes

The simulation has its own network, disk and clocks, so it does not test the server around the core: its files, sockets,
signals and clocks. So there are also defects of the server. The target `defective:NAME` is the reference cluster with a
defect, of the core or of the server, in each of its processes. Every command accepts it: `kafkatrial chaos --target
defective:flush-no-directory --minutes 10` generates rounds for at most ten minutes, until one detects the defect.
{count} defects, of which {new} are defects of the server, have a saved round (`chaos/defects/live/rounds.py`).
`python -m chaos.defects.live` runs each round with its defect and without it; without it, there must be no violation.
Rounds with a power cut run on FUSE disks, which lose unflushed data. The checks are those of all rounds
([chaos](chaos.md)); no check is specific to a defect. *Detected by* is the check that should detect the defect.

"""


def page() -> str:
    """Return the page as Markdown."""
    defects = tuple(DEFECTS.values())
    real = sum(bool(each.sources) for each in defects)
    parts = [_INTRODUCTION.format(count=len(defects), real=real)]
    for area, found in groupby(defects, key=lambda each: each.area):
        parts.append(f"## {area.value.capitalize()}\n\n" + _table(list(found)))
    parts += [_LIVE_INTRODUCTION.format(count=len(ROUNDS), new=len(LIVE_DEFECTS)) + _live_tables()]
    parts += [_example(name) for name in _SHOWN if saved_counterexample(name) is not None]
    parts.append(_detecting_checks(defects))
    return "\n".join(parts)


def _live_tables() -> str:
    rows = "".join(
        f"| `{each.name}` | {each.story} {_sources(each)}| `{each.expected[0]}` |\n" for each in LIVE_DEFECTS.values()
    )
    core = ", ".join(f"`{name}`" for name in ROUNDS if name not in LIVE_DEFECTS)
    return (
        f"| name | bug, and its effect for a user | detected by |\n|---|---|---|\n{rows}\n"
        f"These defects of the core, listed above, also have a saved round: {core}.\n"
    )


def _table(defects: list[Defect]) -> str:
    rows = "".join(f"| `{each.name}` | {each.story} {_sources(each)}| {_found(each)} |\n" for each in defects)
    return f"| name | bug, and its effect for a user | detected by |\n|---|---|---|\n{rows}"


def _sources(each: Defect) -> str:
    links = [f"[{_short(source)}]({address(source)})" for source in each.sources]
    return f"*{', '.join(links)}* " if links else ""


def _short(source: str) -> str:
    return source.removeprefix("https://").rstrip("/") if source.startswith("https://") else source


def address(source: str) -> str:
    """Return the address of a ticket, a KIP or a report."""
    if source.startswith("KAFKA-"):
        return f"https://issues.apache.org/jira/browse/{source}"
    if source.startswith("KIP-"):
        return f"https://cwiki.apache.org/confluence/display/KAFKA/{source}"
    return source


def _found(each: Defect) -> str:
    saved = saved_counterexample(each.name)
    if saved is not None:
        origin = "a trial written by hand" if saved.seed is None else f"seed {saved.seed}"
        return f"`{saved.name}`, {origin}"
    return ", ".join(f"`{name}`" for name in each.expected if "/" in name)


def _example(name: str) -> str:
    saved = saved_counterexample(name)
    assert saved is not None
    return (
        f"## A counterexample: `{name}`\n\n{saved.text}\n\nShrunk to {saved.size}, from seed {saved.seed}; it fails "
        f"{saved.at_ms} virtual milliseconds after the start of the cluster.\n\n"
        f"```python\n{printed(saved.trial)}\n```\n"
    )


def _detecting_checks(defects: tuple[Defect, ...]) -> str:
    found = [saved.name for each in defects if (saved := saved_counterexample(each.name)) is not None]
    counts = sorted(Counter(found).items(), key=lambda count: (-count[1], count[0]))
    listed = ", ".join(f"`{name}` {count}" for name, count in counts)
    return f"## Checks that detect the defects\n\nNumber of saved counterexamples by check: {listed}.\n"


if __name__ == "__main__":
    sys.stdout.write(page())
