"""The page `docs/anomalies.md`, made from the definitions so that it cannot say anything else.

`python -m linearizability.anomalies.document` prints it.
"""

import inspect
import sys

from linearizability.anomalies import absence, loss, promise, transactions
from linearizability.anomalies.catalogue import ANOMALIES, RUN_ANOMALIES
from linearizability.anomalies.cycles import classes, edges, graph
from linearizability.anomalies.definition import Definition
from linearizability.anomalies.whole_run import RunDefinition

_INTRODUCTION = """# Anomalies

What `kafkatrial check` looks for in a history, one section each. An anomaly is a *violation*; or *permitted*: counted
and shown, never a failure; or *unknown*. The definitions are independent of each other: one record may have several
names. This page is made from the modules of `linearizability/anomalies`
(`python -m linearizability.anomalies.document`).

A *partition* is a topic id (the name where there is none) and a partition number. A *record* is a value, or, where it
is a tombstone, a key at an offset. Its *offset* is the lowest at which it was read, else the one acknowledged. It is
*committed* if it was acknowledged or read, and, if it belongs to a transaction, that is committed. It is *promised* if
the promise table below keeps it.
"""


def page() -> str:
    """The whole page as Markdown."""
    parts, told = [_INTRODUCTION], set[str]()
    anomalies: tuple[Definition | RunDefinition, ...] = (*ANOMALIES, *RUN_ANOMALIES)
    for anomaly in anomalies:
        parts.append(
            f"## `{anomaly.name}`\n\n{anomaly.text}\n\n- Level: {anomaly.levels}\n"
            f"- Counted: {anomaly.counted}.\n- `op_ids` of its evidence: {anomaly.evidence}.\n"
        )
        module = anomaly.find.__module__
        if module not in told:  # Definitions that share one come one after the other.
            parts.extend(notes + "\n" for notes in (_prose(sys.modules[module]),) if notes)
            told.add(module)
    for title, source in (
        ("What Kafka promises", promise),
        ("When a record may be absent", absence),
        ("When a read is evidence", loss),
        ("How a transaction ended", transactions),
        ("What transactions depend on each other by", edges),
        ("What real time adds", graph),
        ("Which cycles are told", classes),
    ):
        parts.append(f"## {title}\n\n{inspect.getdoc(source) or ''}\n")
    return "\n".join(parts)


def _prose(module: object) -> str:
    """What a module says of itself after its first line."""
    return (inspect.getdoc(module) or "").partition("\n\n")[2].strip()


if __name__ == "__main__":
    sys.stdout.write(page())
