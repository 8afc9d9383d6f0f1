"""What Kafka promises to keep, by how a topic is set and what has happened to its replicas; and when it must serve.

A loss outside of the promise is *permitted*: it is counted and shown, and is no failure. A loss inside is a violation.
The rules stand in an order, and the first that fits decides. The checkers hold the same table over the rows of a
history (`linearizability.anomalies.promise`), with the times at which a promise begins and ends; a test holds the two
against each other. `python -m chaos.promises` prints the page of the documentation.
"""

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from linearizability.anomalies.healing import TIMES_MS

ALL: Final = -1
_ACKS = {0: "0", 1: "1", ALL: "all"}
_KIP_966 = "https://cwiki.apache.org/confluence/display/KAFKA/KIP-966%3A+Eligible+Leader+Replicas"


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a topic and its writer are set to. Names are Kafka's.

    :ivar eligible_leader_replicas: KIP-966, on in new clusters since Kafka 4.1.
    :ivar flushes_each_message: `flush.messages=1`.
    """

    acks: int = ALL
    replication_factor: int = 3
    min_insync_replicas: int = 2
    unclean_leader_election: bool = False
    eligible_leader_replicas: bool = False
    flushes_each_message: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """What has happened to the replicas since the ISR was last full.

    :ivar any_fault: a replica was killed, paused, cut off, slow, or refused by its disk.
    :ivar powerless: how many have lost their power, and so what they had not flushed.
    :ivar lossy: how many have lost content otherwise: wiped, damaged at rest, a bit flipped.
    :ivar last_in_sync_is_lossy: one of them is all that is left of the ISR.
    """

    any_fault: bool = False
    powerless: int = 0
    lossy: int = 0
    last_in_sync_is_lossy: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    :ivar when: in words.
    :ivar is_kept: whether a record that was acknowledged must be there.
    """

    when: str
    fits: Callable[[Configuration, Trouble], bool]
    is_kept: bool
    why: str
    source: str


def lost_content(configuration: Configuration, trouble: Trouble) -> int:
    """How many replicas have lost acknowledged content: none by power where each message is flushed."""
    return trouble.lossy + (0 if configuration.flushes_each_message else trouble.powerless)


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry of an idempotent producer, which is sent since the response to the first attempt did not arrive.

    :ivar leader_restarted: the leader that gets it has loaded its log since the first attempt was appended.
    :ivar several_in_flight: the client may have more than one request in flight.
    :ivar unacknowledged: the record was not acknowledged when that leader ended.
    :ivar epoch_bumped: the client has bumped its producer epoch.
    """

    leader_restarted: bool = False
    several_in_flight: bool = True
    unacknowledged: bool = True
    epoch_bumped: bool = True


def covers(retry: Retry) -> bool:
    """Whether idempotence covers a retry: then the record stands in the log once."""
    return not (retry.leader_restarted and retry.several_in_flight and retry.unacknowledged and retry.epoch_bumped)


RULES: Final = (
    Rule(
        "`acks=0`",
        lambda configuration, _: configuration.acks == 0,
        False,
        "Nobody answers, so that nothing is acknowledged; a record that the broker refuses is gone as well.",
        "https://kafka.apache.org/documentation/#producerconfigs_acks",
    ),
    Rule(
        "`acks=1`",
        lambda configuration, _: configuration.acks == 1,
        False,
        "The leader alone has it. When another replica leads before it has fetched the record, that is truncated; so is"
        " what a deposed leader acknowledges. Once it was read it is as good as acknowledged by all.",
        "https://kafka.apache.org/documentation/#producerconfigs_acks",
    ),
    Rule(
        "`unclean.leader.election.enable`, or an unclean election asked for, and any fault of a replica",
        lambda configuration, trouble: configuration.unclean_leader_election and _is_any(trouble),
        False,
        "A replica that was out of sync may lead, and what it lacks is truncated everywhere.",
        "https://kafka.apache.org/documentation/#topicconfigs_unclean.leader.election.enable",
    ),
    Rule(
        "the last in-sync replica has lost content, without eligible leader replicas",
        lambda configuration, trouble: (
            trouble.last_in_sync_is_lossy
            and lost_content(configuration, trouble) > 0
            and not configuration.eligible_leader_replicas
        ),
        False,
        "It leads again, whatever it lost: the controller does not know. With KIP-966 a replica whose shutdown was not"
        " clean leaves the ISR and the eligible ones when it registers again.",
        _KIP_966,
    ),
    Rule(
        "`min.insync.replicas` or more replicas have lost content since the ISR was last full",
        lambda configuration, trouble: lost_content(configuration, trouble) >= configuration.min_insync_replicas,
        False,
        "No more replicas need to have had the record. Power takes what was not flushed, and by default Kafka leaves"
        " that to the operating system: it counts on replication, and on faults that are independent.",
        "https://kafka.apache.org/documentation/#design_replicatedlog",
    ),
    Rule(
        "any other: kills, pauses, cuts, delays, clocks, disks that refuse, of any number of nodes",
        lambda *_: True,
        True,
        "An acknowledged record is in every in-sync replica, of which one that keeps its log leads next. Where none is"
        " there, nobody leads until one comes back.",
        "https://kafka.apache.org/documentation/#design_replicatedlog",
    ),
)
"""In order: the first that fits decides."""


def _is_any(trouble: Trouble) -> bool:
    return trouble.any_fault or trouble.powerless > 0 or trouble.lossy > 0


def promise(configuration: Configuration, trouble: Trouble) -> Rule:
    """The rule that decides whether a record acknowledged before the trouble must still be there."""
    return next(rule for rule in RULES if rule.fits(configuration, trouble))


def must_serve(voters: frozenset[int], isr: frozenset[int], min_insync_replicas: int, struck: frozenset[int]) -> bool:
    """Whether acks=all has to be acknowledged, within `bound_ms` after every change, while faults strike some nodes.

    :param isr: when nothing was struck; those of it that are not must be enough.
    """
    return 2 * len(voters - struck) > len(voters) and len(isr - struck) >= max(1, min_insync_replicas)


def bound_ms(properties: dict[str, str]) -> int:
    """How long a cluster may take after each change, and after healing: then every ISR has to be full."""
    return 30_000 + 2 * sum(int(properties.get(name, default)) for name, default in TIMES_MS.items())


# --- the page

_INTRODUCTION = """# What Kafka promises

What must hold after a fault depends on how the topic is configured and on what the fault has done. A loss that this
table permits is counted, and told as *permitted loss*; any other loss is a violation. This page is made from the table
in `chaos/promises.py` (`python -m chaos.promises`), and a test holds it against the one that judges histories.

## What is kept

The first row that fits decides over a record that was acknowledged. A record that somebody has read is held like one
acknowledged with acks=all by as many replicas as have it: it must stay while no replica has lost content.

| when | acknowledged records | why |
|---|---|---|
"""

_TROUBLES: Final = {
    "kill, pause, cut of any number": Trouble(any_fault=True),
    "power cut of one replica": Trouble(any_fault=True, powerless=1),
    "power cut of two": Trouble(any_fault=True, powerless=2),
    "power cut of all": Trouble(any_fault=True, powerless=3),
    "one wiped": Trouble(any_fault=True, lossy=1),
    "the last in-sync one wiped": Trouble(any_fault=True, lossy=1, last_in_sync_is_lossy=True),
}

_IDEMPOTENCE = """
## What idempotence does not cover

With `enable.idempotence` a record stands in the log once, except where the first four rows hold together; `duplicate` is
then [permitted](anomalies.md#duplicate), and in every other case a violation.

| to be permitted | because |
|---|---|
| the leader of the further copy has restarted while the record was in flight, by a kill or by a clean stop | a broker remembers the last five batches of a producer; whenever it loads a log it begins with a producer snapshot, which holds the last batch of each producer alone. A clean stop takes one at the end, and so does recovery after a crash: no segment needs to have been rolled |
| several requests were in flight (`max.in.flight.requests.per.connection` is above 1) | with one, the batch that is sent again is the last one |
| the record was not acknowledged before the restart | what was acknowledged is not sent again |
| the client bumped its producer epoch | the retry in its own epoch gets OUT_OF_ORDER_SEQUENCE_NUMBER. Java's producer bumps its epoch then and sends all again (KIP-360); librdkafka ends with a fatal error, or, where the batch before failed otherwise, bumps its epoch |
| each further copy is of a higher leader epoch than the one before | a leader remembers what it appended since it began to lead |

A follower that truncates loads the last snapshot as well. That, with a segment rolled in between and the same follower
elected, is the same gap in Kafka without any restart; a history does not show truncations, and `duplicate` stays a
violation there. Transactions are not concerned: their retry in a new epoch is fenced with the transaction. A consumer that
must not see a record twice has to recognise it by something in the record.
"""  # noqa: E501  rows of a table

_SERVING = """
## When it must serve

| while | a produce with acks=all |
|---|---|
| a majority of the controllers, and as many in-sync replicas as `min.insync.replicas` asks for, are not struck by a fault | is acknowledged, within the bound after the last change |
| otherwise | may be refused (`NOT_ENOUGH_REPLICAS`), held, or not answered |
| after the last fault was healed | is acknowledged, and every ISR is full, within the bound |

The bound is 30 s and twice the sum of {times}. It is generous on purpose: a machine under load is slow, and what does
not come back never does.
"""  # noqa: E501  rows of a table


def page() -> str:
    """The whole page as Markdown."""
    rules = "".join(
        f"| {rule.when} | {'kept' if rule.is_kept else '**may be lost**'} | {rule.why} ([source]({rule.source})) |\n"
        for rule in RULES
    )
    times = ", ".join(f"`{name}`" for name in TIMES_MS)
    return _INTRODUCTION + rules + _examples() + _IDEMPOTENCE + _SERVING.format(times=times)


def _examples() -> str:
    head = "".join(f" {name} |" for name in _TROUBLES)
    rows = "".join(_row(configuration) for configuration in _configurations())
    return (
        "\n## Three replicas, by example\n\n"
        f"| acks | `min.insync.replicas` | unclean election | KIP-966 | `flush.messages` |{head}\n"
        f"|---|---|---|---|---|{'---|' * len(_TROUBLES)}\n{rows}"
    )


def _configurations() -> Iterator[Configuration]:
    yield Configuration(acks=0)
    yield Configuration(acks=1)
    for least, unclean in itertools.product((1, 2), (True, False)):
        for flushes in (False, True) if not unclean else (False,):
            yield Configuration(ALL, 3, least, unclean, eligible_leader_replicas=False, flushes_each_message=flushes)
    yield Configuration(eligible_leader_replicas=True)


def _row(configuration: Configuration) -> str:
    cells = (
        _ACKS[configuration.acks],
        str(configuration.min_insync_replicas),
        "on" if configuration.unclean_leader_election else "off",
        "on" if configuration.eligible_leader_replicas else "off",
        "1" if configuration.flushes_each_message else "default",
        *("kept" if promise(configuration, trouble).is_kept else "**lost**" for trouble in _TROUBLES.values()),
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
