"""Generator of the page `docs/anomalies.md` from the definitions.

`python -m linearizability.anomalies.document` prints it.
"""

import inspect
import sys

from linearizability.anomalies import absence, group_offsets, loss, promise, transactions
from linearizability.anomalies.catalogue import DEFINITIONS
from linearizability.anomalies.cycles import classes, edges, graph

_INTRODUCTION = """# Anomalies

This page has a section for each anomaly that `kafkatrial check` looks for in a history. The verdict of an anomaly is
*violation*, *permitted* or *unknown*. A permitted anomaly is counted and shown, but never fails a check. The
definitions are independent of each other: one record may show several anomalies. This page is generated from the
modules of `linearizability/anomalies` (`python -m linearizability.anomalies.document`).

- A *partition* is identified by its number and the id of its topic, or the name of the topic if there is no id.
- A *record* is identified by its value or, if it is a tombstone, by its key and offset. Its *offset* is the lowest
  offset at which it was read or, if no read returned it, the acknowledged offset.
- A record is *committed* if it was acknowledged or read, and its transaction, if it has one, is committed.
- A record is *promised* while Kafka keeps it according to the [promise table](#what-kafka-promises).
- A record *must be present* in a read if there is no [valid reason for its absence](#when-a-record-may-be-absent).
- A read *covers* an offset if its [positions](history-format.md#positions) include this offset.
- A request is *after healing* if it was sent after the last fault of the run had ended.
- The *lowest* of several operations is the one with the lowest `op_id`.
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
        ("Which commits explain a group offset", group_offsets),
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
