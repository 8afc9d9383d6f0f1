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
from typing import Any, NoReturn, final

State = Hashable


@final
@dataclass(frozen=True, slots=True)
class Refused:
    """The system cannot answer so in that state. Build it once, outside of `step`: a search is refused very often.

    It has no subclasses: a search asks for the very class, and would take an instance of another for a state.
    """

    reason: str = "not possible in this state"

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError(f"{cls.__name__}: Refused has no subclasses; tell them apart by its reason")


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
            states = self._states(first)
            hash(states)
        except Exception as error:
            raise ModelError(f"model {self.name}: init: {_told(error)}") from error
        if not states:
            raise ModelError(f"model {self.name}: init: it gave no state to begin in")
        slip = _slip(None, *states)
        if slip:
            raise ModelError(f"model {self.name}: init: it gave {slip}")
        return states

    def next_states(self, state: State, given: Any, output: Any, *, pure: bool) -> tuple[State, ...]:
        """Where the operation leads from a state; nowhere if it is refused."""
        try:
            answer = self.step(state, given, output)
            if answer.__class__ is Refused:
                return ()
            states = self._states(answer)
            hash(states)
            changed = [after for after in states if after != state] if pure else []
        except Exception as error:
            raise self.error(state, given, output, error) from error
        self.refuse_slip(state, given, output, *states)
        if changed:
            raise self.impure(state, given, output, changed[0])
        return states

    def _states(self, answer: Any) -> tuple[State, ...]:
        if not self.nondeterministic:
            return (answer,)
        if isinstance(answer, str | bytes):
            raise TypeError("a nondeterministic model gives a tuple of states, not a text")
        return tuple(answer)

    def refuse_slip(self, state: State, given: Any, output: Any, *after: Any) -> None:
        """Raise ModelError if what `step` answered was surely not meant to be a state."""
        slip = _slip(state, *after)
        if slip:
            raise self._wrong(state, given, output, f"step gave {slip}")

    def may_overlap(self, given: Any) -> bool:
        """What `pipelined` says of an input."""
        try:
            return bool(self.pipelined(given))
        except Exception as error:
            raise ModelError(f"model {self.name}: pipelined: input {_shown(repr, given)}: {_told(error)}") from error

    def tell_operation(self, given: Any, output: Any) -> str:
        """What `describe_operation` says; where it raises, the values: a verdict is not lost for want of words."""
        return _shown(self.describe_operation, given, output)

    def tell_state(self, state: Any) -> str:
        """What `describe_state` says, or else the state itself."""
        return _shown(self.describe_state, state)

    def reason(self, state: State, given: Any, output: Any) -> str | None:
        """Why the operation is refused in a state; None if it is not."""
        try:
            answer = self.step(state, given, output)
            if answer.__class__ is Refused:
                return str(answer.reason)
            return None if not self.nondeterministic or tuple(answer) else Refused().reason
        except Exception as error:
            raise self.error(state, given, output, error) from error

    def error(self, state: Any, given: Any, output: Any, error: Exception) -> ModelError:
        """The error to raise for one that `step` raised."""
        return self._wrong(state, given, output, _told(error))

    def impure(self, state: Any, given: Any, output: Any, after: Any) -> ModelError:
        """The error to raise for an operation that was said to be pure and changed the state."""
        slip = _slip(state, after)
        changed = f"said to be pure, and changed the state to {self.tell_state(after)}"
        return self._wrong(state, given, output, f"step gave {slip}" if slip else changed)

    def _wrong(self, state: Any, given: Any, output: Any, what: str) -> ModelError:
        place = f"model {self.name}, state {self.tell_state(state)}"
        return ModelError(f"{place}, operation {self.tell_operation(given, output)}: {what}")


def _slip(before: Any, *states: Any) -> str:
    """What was given instead of a state, by one who has another checker's ways in mind; empty if nothing was.

    `(False, before)` is how a step refuses in porcupine. As a state it would be a list of answers, of which the state
    before is none yet: that one may be.
    """
    for state in states:
        if state is Refused:
            return "the class Refused; give an instance, Refused(...)"
        if state.__class__ is Refused:
            return f"{state!r} as a state; give it alone, and from step"
        if state.__class__ is tuple and len(state) == 2 and state[0] is False and _is_kept(before, state[1]):
            return "(False, the state before); to refuse give Refused(...), else the state after and nothing with it"
    return ""


def _is_kept(before: Any, inside: Any) -> bool:
    is_list = before.__class__ is tuple and (not before or before[0].__class__ is bool)
    return inside is before and before is not None and not is_list


def _shown(describe: Callable[..., str], *values: Any) -> str:
    """A description that is no second error: a model that raises may raise here too."""
    try:
        return str(describe(*values))
    except Exception:  # noqa: BLE001  anything may come from a model
        return ", ".join(_repr(value) for value in values)


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  as above
        return object.__repr__(value)


def _told(error: Exception) -> str:
    """An error of the model's in one line, whatever its own text does."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  as above
        text = "its text cannot be told"
    return f"{type(error).__name__}: {text}"
