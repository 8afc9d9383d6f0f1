"""What a system should do, one operation after the other: the sequential specification that a history is held against.

A model is a handful of functions, none of which may change what it is given. States are immutable and hashable, and
two inputs that are equal are treated alike.

    counter = Model(
        name="counter",
        init=lambda: 0,
        step=lambda state, input, output: state + input if output in (UNKNOWN, state) else Refused("counted wrong"),
    )

A model whose system may go several ways says so with `nondeterministic=True`: `init` and `step` then return a tuple of
states. Two more facts make the search fast, and one of them a wrong answer if it is not true, so it is verified on the
way: an operation that is `pure` never changes a state, and operations of different `partition` keys have nothing to do
with each other.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

State = Hashable


@dataclass(frozen=True, slots=True)
class Refused:
    """The system cannot answer so in that state. Build it once, outside of `step`: a search is refused very often."""

    reason: str = "not possible in this state"


class ModelError(Exception):
    """A model that raised, or broke its own contract. Names the model, the state and the operation, in one line."""


def _never(_input: Any, _output: Any) -> bool:
    return False


def never_pipelined(_input: Any) -> bool:
    """The default of `Model.pipelined`."""
    return False


def _call(given: Any, output: Any) -> str:
    return f"{given!r} -> {output!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A sequential specification. Only `name`, `init` and `step` are needed.

    init: the first state. step: (state, input, output) -> the state after, or `Refused`. The output is `UNKNOWN` where
    nobody saw it: then give the effect, or refuse where there is none. pure: (input, output) -> True for what can never
    change a state (a read, a failed compare-and-set). partition: input -> the key of its subhistory. pipelined: input
    -> True for what one process may have several of in flight.
    """

    name: str
    init: Callable[[], Any]
    step: Callable[[Any, Any, Any], Any]
    nondeterministic: bool = False
    pure: Callable[[Any, Any], bool] = _never
    partition: Callable[[Any], Hashable] | None = None
    pipelined: Callable[[Any], bool] = never_pipelined
    describe_operation: Callable[[Any, Any], str] = _call
    describe_state: Callable[[Any], str] = repr

    def first_states(self) -> tuple[State, ...]:
        """The states a history may begin in: one, unless the model is nondeterministic."""
        try:
            first = self.init()
            states = tuple(first) if self.nondeterministic else (first,)
            hash(states)
        except Exception as error:
            raise ModelError(f"model {self.name}: init: {type(error).__name__}: {error}") from error
        return states

    def next_states(self, state: State, given: Any, output: Any, *, pure: bool) -> tuple[State, ...]:
        """Where the operation leads from a state; nowhere if it is refused."""
        try:
            answer = self.step(state, given, output)
            if answer.__class__ is Refused:
                return ()
            states = tuple(answer) if self.nondeterministic else (answer,)
            hash(states)
        except Exception as error:
            raise self.error(state, given, output, error) from error
        if pure:
            for after in states:
                if after != state:
                    raise self.impure(state, given, output, after)
        return states

    def reason(self, state: State, given: Any, output: Any) -> str | None:
        """Why the operation is refused in a state; None if it is not."""
        answer = self.step(state, given, output)
        if answer.__class__ is Refused:
            return str(answer.reason)
        return None if not self.nondeterministic or answer else Refused().reason

    def error(self, state: Any, given: Any, output: Any, error: Exception) -> ModelError:
        """The error to raise for one that `step` raised."""
        place = f"model {self.name}, state {_shown(self.describe_state, state)}"
        operation = _shown(self.describe_operation, given, output)
        return ModelError(f"{place}, operation {operation}: {type(error).__name__}: {_one_line(error)}")

    def impure(self, state: Any, given: Any, output: Any, after: Any) -> ModelError:
        """The error to raise for an operation that was said to be pure and changed the state."""
        place = f"model {self.name}, state {_shown(self.describe_state, state)}"
        operation = _shown(self.describe_operation, given, output)
        changed = _shown(self.describe_state, after)
        return ModelError(f"{place}, operation {operation}: said to be pure, and changed the state to {changed}")


def _shown(describe: Callable[..., str], *values: Any) -> str:
    """A description that is no second error: a model that raises may raise here too."""
    try:
        return describe(*values)
    except Exception:  # noqa: BLE001  anything may come from a model
        return ", ".join(repr(value) for value in values)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
