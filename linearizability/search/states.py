"""States by numbers, so that a search compares and stores small ints; and what the states weigh."""

import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from linearizability.model import Model, ModelError, Refused, State

STATE_BITS = 32
"""A state's number fits in so many bits: more states than memory holds."""


@dataclass(slots=True)
class OperationClass:
    """Operations of one timeline that nothing but their times tells apart."""

    input: Any
    output: Any
    pure: bool
    moves: dict[int, tuple[int, ...]]
    """From the number of a state to the numbers of the states after, as far as they were asked for."""
    latest_unknown: int = -1
    """The latest unknown operation among them."""


class States:
    """Every state of a timeline that was reached, each once, numbered from 0."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.states: list[State] = []
        self._numbers: dict[State, int] = {}
        self.first = self.numbers(model.first_states())

    def numbers(self, states: tuple[State, ...]) -> tuple[int, ...]:
        """The numbers of some states, new ones where they are new."""
        return tuple([self._number(state) for state in states])

    def _number(self, state: State) -> int:
        number = self._numbers.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
        return number

    def possible(self, kinds: Iterable[tuple[int, OperationClass]], number: int) -> int:
        """The bits of those pure operations that are possible in a state."""
        model, state = self.model, self.states[number]
        if model.nondeterministic:
            return sum([bit for bit, kind in kinds if model.next_states(state, kind.input, kind.output, pure=True)])
        step, bits = model.step, 0
        kind = None
        try:
            for bit, kind in kinds:
                after = step(state, kind.input, kind.output)
                if after.__class__ is not Refused:
                    if after != state:
                        raise model.impure(state, kind.input, kind.output, after)
                    bits |= bit
        except ModelError:
            raise
        except Exception as error:
            assert kind is not None
            raise model.error(state, kind.input, kind.output, error) from error
        return bits

    def move(self, kind: OperationClass, number: int) -> tuple[int, ...]:
        """Where an operation that is not pure leads from a state; remembered with its class."""
        model, state = self.model, self.states[number]
        if model.nondeterministic:
            moves = self.numbers(model.next_states(state, kind.input, kind.output, pure=False))
        else:
            try:
                after = model.step(state, kind.input, kind.output)
                moves = () if after.__class__ is Refused else (self._number(after),)
            except Exception as error:
                raise model.error(state, kind.input, kind.output, error) from error
        kind.moves[number] = moves
        return moves

    def bytes(self) -> int:
        """About what they occupy, judged by the newest."""
        return len(self.states) * (120 + weight_bytes(self.states[-1])) if self.states else 0


def weight_bytes(state: Hashable) -> int:
    """The bytes of a state with its tuples and sets; the values in these are the history's, and shared with it."""
    size = sys.getsizeof(state)
    if isinstance(state, tuple | frozenset):
        size += sum(weight_bytes(part) for part in state if isinstance(part, tuple | frozenset))
    return size
