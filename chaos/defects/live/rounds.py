"""For each defect a round that shows it on real processes: some clients, and the faults under which it hurts.

A round is a plain value that means the same on every target, and knows nothing of defects. On the clean broker each of
them must show nothing: `python -m chaos.defects.live` runs both. The rounds of `kafkatrial chaos`, drawn from seeds,
run with a defect as well: `kafkatrial chaos --target defective:NAME --minutes 10`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from chaos.faults import (
    ClockJump,
    DiskError,
    Isolate,
    Keeps,
    Kill,
    Operation,
    PowerCut,
    Reassign,
    Reset,
    Role,
    ShutDown,
    SlowFlush,
    Timed,
)
from chaos.live.round import Cluster, LeaderReader, OneByOne, Pipelined, Round, Tail, Topic
from chaos.live.strategies import SOON_MISSED

_NODES: Final = (1, 2, 3)
_LOAD: Final = (OneByOne(pause_ms=20), Pipelined(), Tail())
_QUICK: Final = (
    *SOON_MISSED,
    ("broker.session.timeout.ms", "2000"),
    ("replica.lag.time.max.ms", "3000"),
    ("controller.quorum.fetch.timeout.ms", "1000"),
)
"""With these what does not come back is known not to after three quarters of a minute."""


def _round(*schedule: Timed, flushes: bool = False, rolls: bool = False, load: tuple = _LOAD) -> Round:
    properties = [("min.insync.replicas", "2")]
    if flushes:
        properties.append(("flush.messages", "1"))
    if rolls:
        properties.append(("segment.ms", "300"))
    return Round(
        cluster=Cluster(properties=tuple(dict(_QUICK).items())),
        topic=Topic(properties=tuple(properties)),
        workloads=load,
        schedule=schedule,
        steady_ms=1_000,
        healed_ms=500,
    )


BLACKOUT: Final = _round(Timed(2_000, PowerCut(), 500), flushes=True)
"""The power goes everywhere at once, and the topic pays for a flush of each batch."""
BLACKOUT_OF_SEGMENTS: Final = _round(Timed(2_000, PowerCut(), 500), flushes=True, rolls=True)
"""The same with a new segment three times a second."""
ROUNDS: Final[Mapping[str, Round]] = MappingProxyType(
    {
        "take-a-write-for-durable": BLACKOUT,
        "flush-no-directory": BLACKOUT_OF_SEGMENTS,
    }
)
