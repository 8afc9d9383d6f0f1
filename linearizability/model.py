"""Sequential specification of an object (`Model`): what a history is checked against.

A model is a handful of functions, none of which may change its arguments. States are immutable and hashable, and two
equal inputs are treated alike.

    WRONG = Rejected("counted wrong")
    counter = Model(
        name="counter",
        init=lambda: 0,
        step=lambda state, input, output: state + input if output in (UNKNOWN, state) else WRONG,
    )

A model with several possible next states sets `nondeterministic=True`; `init` and `step` then return a tuple of states.
Two more properties make the search fast: an operation that is `pure` never changes a state, and operations with
different `partition` keys are independent. A wrong `pure` would lead to a wrong result, so the search verifies it.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NoReturn, final

State = Hashable


@final
@dataclass(frozen=True, slots=True)
class Rejected:
    """Result of `step` for an operation that is not possible in a state.

    Build it once, outside of `step`: a search needs it very often.

    It has no subclasses: a search compares the class, and would take an instance of a subclass for a state.
    """

    reason: str = "not possible in this state"

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError(f"{cls.__name__}: Rejected has no subclasses; distinguish them by the reason")


class ModelError(Exception):
    """An error of a model, or a breach of its contract; one line with the model, the state and the operation."""


def _never(_input: Any, _output: Any) -> bool:
    return False


def never_pipelined(_input: Any) -> bool:
    """Return False: the default of `Model.pipelined`."""
    return False


def _call(given: Any, output: Any) -> str:
    return f"{given!r} -> {output!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A sequential specification. Only `name`, `init` and `step` are needed.

    init: the first state. step: (state, input, output) -> the state after, or `Rejected`. If the output was not
    observed, it is `UNKNOWN`: return the state after the effect, or reject if no effect is possible. pure: (input,
    output) -> True if the operation never changes a state (a read, a failed compare-and-set). partition: input -> the
    key of its subhistory. pipelined: input -> True if one process may have several such operations in flight.
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
        """Return the states in which a history may begin: one, unless the model is nondeterministic."""
        try:
            first = self.init()
            states = self._states(first)
            hash(states)
        except Exception as error:
            raise ModelError(f"model {self.name}: init: {_error_text(error)}") from error
        if not states:
            raise ModelError(f"model {self.name}: init: it returned no state")
        not_a_state = _not_a_state(None, *states)
        if not_a_state:
            raise ModelError(f"model {self.name}: init: it returned {not_a_state}")
        return states

    def next_states(self, state: State, given: Any, output: Any, *, pure: bool) -> tuple[State, ...]:
        """Return the states after the operation; none if the operation is rejected in this state.

        :param pure: whether the model declares the operation pure. Then the state must not change.
        """
        try:
            result = self.step(state, given, output)
            if result.__class__ is Rejected:
                return ()
            states = self._states(result)
            hash(states)
            changed = [after for after in states if after != state] if pure else []
        except Exception as error:
            raise self.error(state, given, output, error) from error
        self.check_states(state, given, output, *states)
        if changed:
            raise self.impure(state, given, output, changed[0])
        return states

    def _states(self, result: Any) -> tuple[State, ...]:
        if not self.nondeterministic:
            return (result,)
        if isinstance(result, str | bytes):
            raise TypeError("a nondeterministic model returns a tuple of states, not a string")
        return tuple(result)

    def check_states(self, state: State, given: Any, output: Any, *after: Any) -> None:
        """Raise ModelError if a result of `step` is certainly not a state."""
        not_a_state = _not_a_state(state, *after)
        if not_a_state:
            raise self._wrong(state, given, output, f"step returned {not_a_state}")

    def may_overlap(self, given: Any) -> bool:
        """Whether one process may have several such operations in flight (`pipelined`)."""
        try:
            return bool(self.pipelined(given))
        except Exception as error:
            place = f"model {self.name}: pipelined: input {_shown(repr, given)}"
            raise ModelError(f"{place}: {_error_text(error)}") from error

    def operation_text(self, given: Any, output: Any) -> str:
        """Return `describe_operation` of a call; if it raises, the values, so that the verdict is not lost."""
        return _shown(self.describe_operation, given, output)

    def state_text(self, state: Any) -> str:
        """Return `describe_state` of a state, or its repr if that raises."""
        return _shown(self.describe_state, state)

    def reason(self, state: State, given: Any, output: Any) -> str | None:
        """Return why the operation is rejected in a state; None if it is not."""
        try:
            result = self.step(state, given, output)
            if result.__class__ is Rejected:
                return str(result.reason)
            return None if not self.nondeterministic or tuple(result) else Rejected().reason
        except Exception as error:
            raise self.error(state, given, output, error) from error

    def error(self, state: Any, given: Any, output: Any, error: Exception) -> ModelError:
        """Return the error to raise for an error of `step`."""
        return self._wrong(state, given, output, _error_text(error))

    def impure(self, state: Any, given: Any, output: Any, after: Any) -> ModelError:
        """Return the error to raise for an operation that the model declares pure but that changed the state."""
        not_a_state = _not_a_state(state, after)
        changed = f"declared pure, but changed the state to {self.state_text(after)}"
        return self._wrong(state, given, output, f"step returned {not_a_state}" if not_a_state else changed)

    def _wrong(self, state: Any, given: Any, output: Any, what: str) -> ModelError:
        place = f"model {self.name}, state {self.state_text(state)}"
        return ModelError(f"{place}, operation {self.operation_text(given, output)}: {what}")


def _not_a_state(before: Any, *states: Any) -> str:
    """Return a description of the first result that is not a state but was meant as a rejection; empty if none is.

    A step in porcupine rejects by returning `(False, before)`. Here such a pair is a state only if `before` is None, an
    empty tuple, or a tuple that begins with a boolean.
    """
    for state in states:
        if state is Rejected:
            return "the class Rejected; return an instance, Rejected(...)"
        if state.__class__ is Rejected:
            return f"{state!r} as a state; return it alone, and from step"
        if state.__class__ is tuple and len(state) == 2 and state[0] is False and _is_kept(before, state[1]):
            return "(False, the state before); to reject return Rejected(...), otherwise only the state after"
    return ""


def _is_kept(before: Any, inside: Any) -> bool:
    is_list = before.__class__ is tuple and (not before or before[0].__class__ is bool)
    return inside is before and before is not None and not is_list


def _shown(describe: Callable[..., str], *values: Any) -> str:
    """Return a description, or the values if the model raises here too."""
    try:
        return str(describe(*values))
    except Exception:  # noqa: BLE001  a model may raise anything
        return ", ".join(_repr(value) for value in values)


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  as above
        return object.__repr__(value)


def _error_text(error: Exception) -> str:
    """Return an error of the model in one line, even if its own text cannot be formatted."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  as above
        text = "its text cannot be formatted"
    return f"{type(error).__name__}: {text}"
