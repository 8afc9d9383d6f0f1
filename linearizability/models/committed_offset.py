"""Model of a group's committed offset of a partition: a fetch returns the last commit.

Inputs: `("commit", key, offset)` -> None; `("fetch", key)` -> the offset, or None. A key is any name of one committed
offset, such as (group, topic, partition). An offset may go back, because a consumer may seek.
"""

from typing import Any

from linearizability.model import Model, Rejected
from linearizability.models.call import brief, no_such_operation, whole_from_zero
from linearizability.operation import UNKNOWN

_OTHER = Rejected("another offset was committed last")


def _step(state: int | None, given: tuple[Any, ...], output: Any) -> Any:
    if given[0] == "fetch":
        if output is not UNKNOWN and output is not None:
            whole_from_zero("the offset fetched", output)
        return state if output == state or output is UNKNOWN else _OTHER
    if given[0] == "commit":
        whole_from_zero("the offset committed", given[2])
        return given[2]
    raise no_such_operation(given, "commit", "fetch")


def _describe(given: tuple[Any, ...], output: Any) -> str:
    """Return the text of a call; a fetch that returns None found no offset."""
    if given[0] == "commit":
        return f"commit({brief(given[1])}, {given[2]})"
    return f"fetch({brief(given[1])}) -> {'no offset' if output is None else output}"


def committed_offset() -> Model:
    """Return the model. Each key has an independent committed offset, initially none."""
    return Model(
        name="committed-offset",
        init=lambda: None,
        step=_step,
        pure=lambda given, _output: bool(given[0] == "fetch"),
        partition=lambda given: given[1],
        describe_operation=_describe,
        describe_state=lambda state: "no offset" if state is None else f"offset {state}",
    )
