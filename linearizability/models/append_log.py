"""Model of a partition's log with its high watermark: records are appended at the end and visible below the watermark.

Inputs: `("append", partition, values)` -> the base offset; `("read", partition, offset)` -> (values from that offset
on, high watermark). Values are tuples, and those of an append get consecutive offsets. A producer may have several
appends in flight.

A read returns a watermark that is not below those of earlier reads, and not above the end of the log. In Kafka the
watermark reaches the end of the log after a while. With `linearizable=True` it always equals the end: a read after an
acknowledged append must return a watermark above the appended records. The state holds the whole log, so this model is
for histories of a few hundred records.
"""

from typing import Any

from linearizability.model import Model, Rejected
from linearizability.models.call import describe_call, no_such_operation, whole_from_zero
from linearizability.operation import UNKNOWN

_OTHER_BASE = Rejected("the end of the log is at another offset than the one acknowledged")
_ABOVE_END = Rejected("the watermark read is above the end of the log")
_WENT_BACK = Rejected("the watermark read is below one that was read before")
_BEHIND = Rejected("the watermark read is below the end of the log")
_PAST = Rejected("the read returns records at or above its watermark")
_OTHER_VALUES = Rejected("the log holds other records there")

State = tuple[tuple[Any, ...], int]
"""The records, and the highest watermark that was read."""


def _append(state: State, values: tuple[Any, ...], output: Any) -> State | Rejected:
    records, watermark = state
    if output not in (UNKNOWN, len(records)):
        return _OTHER_BASE
    return records + values, watermark


def _read(state: State, offset: int, output: Any, *, linearizable: bool) -> State | Rejected:
    if output is UNKNOWN:
        return state
    records, watermark = state
    values, seen = output
    whole_from_zero("the offset read from", offset)
    if seen > len(records):
        return _ABOVE_END
    if seen < watermark:
        return _WENT_BACK
    if linearizable and seen != len(records):
        return _BEHIND
    if values and offset + len(values) > seen:
        return _PAST
    if records[offset : offset + len(values)] != values:
        return _OTHER_VALUES
    return records, watermark if linearizable else seen


def append_log(*, linearizable: bool = False) -> Model:
    """Return the model. Each partition is independent of the others and initially empty."""

    def step(state: State, given: tuple[Any, ...], output: Any) -> State | Rejected:
        if given[0] == "append":
            return _append(state, given[2], output)
        if given[0] == "read":
            return _read(state, given[2], output, linearizable=linearizable)
        raise no_such_operation(given, "append", "read")

    return Model(
        name="append-log",
        init=lambda: ((), 0),
        step=step,
        # A read that shows a watermark for the first time restricts what later reads may show.
        pure=lambda given, output: bool(given[0] == "read" and (linearizable or output is UNKNOWN)),
        partition=lambda given: given[1],
        pipelined=lambda given: bool(given[0] == "append"),
        describe_operation=describe_call,
        describe_state=lambda state: f"{len(state[0])} records, watermark {state[1]}",
    )
