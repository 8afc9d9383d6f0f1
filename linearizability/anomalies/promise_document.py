"""Generator of the page `docs/promises.md` from the rules by which histories are judged.

`python -m linearizability.anomalies.promise_document` prints it.
"""

import itertools
import sys
from collections.abc import Iterator
from typing import Final

from linearizability.anomalies.healing import SPARE_NS, TIMES_MS
from linearizability.anomalies.idempotence import CONDITIONS
from linearizability.anomalies.promise import ALL, READ, RULES, Stake, rule_of

_INTRODUCTION: Final = """# What Kafka promises

What must hold after a fault depends on how the topic is configured and on what the fault has done. A loss that this
table permits is counted and reported as *permitted*; any other loss is a violation. This page is generated from the
rules in `linearizability/anomalies/promise.py`, by which `check` and `chaos` judge every history
(`python -m linearizability.anomalies.promise_document`).

## What is kept

A record is committed if it was acknowledged or read. The first row that fits decides whether it is kept. A record that
was read is treated as if it were acknowledged with acks=all by a single replica: it must stay as long as no replica has
lost content. [Anomalies](anomalies.md#what-kafka-promises) describes when a promise ends, and which replicas count.

| when | committed records | why |
|---|---|---|
"""

_COMMITS: Final = {0: "0", 1: "1", ALL: "all", READ: "any, and read"}
_FAULTS: Final[dict[str, tuple[int, int, bool]]] = {
    "kill, pause, cut of any number": (0, 0, False),
    "power cut of one replica": (1, 0, False),
    "power cut of two": (2, 0, False),
    "power cut of all": (3, 0, False),
    "wipe of one replica": (0, 1, False),
    "wipe of the last in-sync replica": (0, 1, True),
}
"""By name: how many replicas lost power, how many lost content in another way, and whether the last in-sync one did."""

_IDEMPOTENCE: Final = """
## What idempotence does not cover

With `enable.idempotence` a record is in the log once, unless all conditions of this table hold together. Then the
anomaly `duplicate` is [permitted](anomalies.md#duplicate); in every other case it is a violation.

| condition | why it matters |
|---|---|
{conditions}
Kafka has the same gap without a restart. A follower that truncates its log also loads its last snapshot. If a segment
was rolled after several batches of a producer, the snapshot has only the last of them, and if that follower is then
elected, it does not recognise a retry of the others. A history does not show truncations, so `duplicate` is a violation
in this case. Transactional records have no such gap: a retry in a new epoch is fenced together with its transaction. A
consumer that must not process a record twice has to recognise the record by its content.
"""

_SERVING: Final = """
## When a partition must be available

| while | a produce with acks=all |
|---|---|
| a majority of the controllers, and as many in-sync replicas as `min.insync.replicas` requires, have no fault | is acknowledged, within the bound after a fault last began or ended |
| otherwise | may be rejected (`NOT_ENOUGH_REPLICAS`), held, or left without a response |
| after the last fault was healed | is acknowledged, and every ISR is full, within the bound |

The bound is {spare_s} s plus twice the sum of {times}.
It is generous on purpose: a machine under load is slow, and a cluster that does not recover exceeds any bound.
"""  # noqa: E501  rows of a table


def page() -> str:
    """Return the whole page as Markdown."""
    rules = "".join(
        f"| {rule.when} | {'kept' if rule.is_kept else '**may be lost**'} | {rule.why} ([source]({rule.source})) |\n"
        for rule in RULES
    )
    conditions = "".join(f"| {when} | {why} |\n" for when, why in CONDITIONS)
    times = ", ".join(f"`{name}`" for name in TIMES_MS)
    serving = _SERVING.format(times=times, spare_s=SPARE_NS // 10**9)
    return _INTRODUCTION + rules + _examples() + _IDEMPOTENCE.format(conditions=conditions) + serving


def _examples() -> str:
    head = "".join(f" {name} |" for name in _FAULTS)
    return (
        "\n## Examples with three replicas\n\n"
        "Each row is a configuration of a topic with three replicas. The last columns show whether a committed record\n"
        "is kept after a fault.\n\n"
        f"| acks | `min.insync.replicas` | unclean election | KIP-966 | `flush.messages` |{head}\n"
        f"|---|---|---|---|---|{'---|' * len(_FAULTS)}\n{''.join(_rows())}"
    )


def _rows() -> Iterator[str]:
    yield _row(0)
    yield _row(1)
    yield _row(READ)
    for least, unclean in itertools.product((1, 2), (True, False)):
        for flushes in (False, True) if not unclean else (False,):
            yield _row(ALL, least, unclean=unclean, flushes=flushes)
    yield _row(ALL, eligible=True)


def _row(acks: int, least: int = 2, *, unclean: bool = False, eligible: bool = False, flushes: bool = False) -> str:
    """Apply the rules to a configuration under each of the faults."""
    stakes = (
        Stake(acks, least, lossy + (0 if flushes else powerless), unclean, last and not eligible)
        for powerless, lossy, last in _FAULTS.values()
    )
    cells = (
        _COMMITS[acks],
        str(least),
        "on" if unclean else "off",
        "on" if eligible else "off",
        "1" if flushes else "default",
        *("kept" if rule_of(stake).is_kept else "**lost**" for stake in stakes),
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
