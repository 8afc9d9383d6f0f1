"""Generator of the page `docs/anomalies.md` from the definitions.

`python -m linearizability.anomalies.document` prints it.
"""

import inspect
import sys

from linearizability.anomalies import absence, loss, promise, transactions
from linearizability.anomalies.catalogue import DEFINITIONS
from linearizability.anomalies.cycles import classes, edges, graph

_INTRODUCTION = """# Anomalies

This page has a section for each anomaly that `kafkatrial check` looks for in a history. The verdict of an anomaly is
*violation*, *permitted* or *unknown*. A permitted anomaly is counted and shown, but never fails a check. The
definitions are independent of each other: one record may show several anomalies. This page is generated from the
modules of `linearizability/anomalies` (`python -m linearizability.anomalies.document`).

A *partition* is a topic id (the name where there is none) and a partition number. A *record* is a value or, for a
tombstone, a key at an offset. Its *offset* is the lowest at which it was read, otherwise the acknowledged one. It is
*committed* if it was acknowledged or read and its transaction, if it has one, is committed. It is *promised* if
Kafka keeps it according to the promise table below.
"""


def page() -> str:
    """Return the whole page as Markdown."""
    parts, described = [_INTRODUCTION], set[str]()
    for anomaly in DEFINITIONS:
        parts.append(
            f"## `{anomaly.name}`\n\n{anomaly.text}\n\n- Level: {anomaly.levels}\n"
            f"- Counted: {anomaly.counted}.\n- `op_ids` of its evidence: {anomaly.evidence}.\n"
        )
        module = anomaly.find.__module__
        if module not in described:  # Definitions that share a module are adjacent.
            parts.extend(notes + "\n" for notes in (_prose(sys.modules[module]),) if notes)
            described.add(module)
    for title, source in (
        ("What Kafka promises", promise),
        ("When a record may be absent", absence),
        ("When a read is evidence", loss),
        ("How a transaction ended", transactions),
        ("Dependencies between transactions", edges),
        ("Real-time order of transactions", graph),
        ("Which cycles are reported", classes),
    ):
        parts.append(f"## {title}\n\n{inspect.getdoc(source) or ''}\n")
    return "\n".join(parts)


def _prose(module: object) -> str:
    """Return a module's docstring after its first paragraph."""
    return (inspect.getdoc(module) or "").partition("\n\n")[2].strip()


if __name__ == "__main__":
    sys.stdout.write(page())
