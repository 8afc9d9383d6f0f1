"""States of a model by number, so that a search compares and stores small ints, and an estimate of their memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from linearizability.model import Model, ModelError, Rejected, State
from linearizability.search.weight import Weight

STATE_BITS = 32
"""Size of a state's number in bits. Memory cannot hold more states than that."""
ENTRY_BYTES = 120
"""Estimated memory of one state besides its value: its entries in the list and the dictionary, and its number."""


@dataclass(slots=True)
class OperationClass:
    """Operations of one timeline with the same input and output."""

    input: Any
    output: Any
    pure: bool
    moves: dict[int, tuple[int, ...]]
    """Cache: the numbers of the next states, by the number of a state."""
    latest_unknown: int = -1
    """The number of the latest unknown operation of this class; -1 if there is none."""


class States:
    """The states that a search of one timeline has reached, numbered from 0."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.states: list[State] = []
        self._numbers: dict[State, int] = {}
        self._weight = Weight()
        self.first = self.numbers(model.first_states())

    def numbers(self, states: tuple[State, ...]) -> tuple[int, ...]:
        """Return the numbers of some states. New states are added."""
        return tuple([self._number(state) for state in states])

    def _number(self, state: State) -> int:
        number = self._numbers.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
        return number

    def possible(self, kinds: Iterable[tuple[int, OperationClass]], number: int) -> int:
        """Return the bits of the pure operations that are possible in a state.

        :param kinds: bit and class of each operation.
        :param number: the state's number.
        """
        model, state = self.model, self.states[number]
        if model.nondeterministic:
            return sum([bit for bit, kind in kinds if model.next_states(state, kind.input, kind.output, pure=True)])
        step, bits = model.step, 0
        kind = None
        try:
            for bit, kind in kinds:
                after = step(state, kind.input, kind.output)
                if after.__class__ is not Rejected:
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
        """Return the numbers of the next states after an operation that is not pure, and cache them in its class.

        :param number: the number of the state before the operation.
        """
        model, state = self.model, self.states[number]
        before = len(self.states)
        try:
            if model.nondeterministic:
                moves = self.numbers(model.next_states(state, kind.input, kind.output, pure=False))
            else:
                after = model.step(state, kind.input, kind.output)
                moves = () if after.__class__ is Rejected else (self._number(after),)
        except ModelError:
            raise
        except Exception as error:
            raise model.error(state, kind.input, kind.output, error) from error
        if len(self.states) > before:
            self._look_at_new(before, state, kind)
        kind.moves[number] = moves
        return moves

    def _look_at_new(self, first: int, before: State, kind: OperationClass) -> None:
        for number in range(first, len(self.states)):
            after = self.states[number]
            self.model.check_states(before, kind.input, kind.output, after)
            if number >= self._weight.look_at:
                self._weight.look(number, after, before, kind.input, kind.output)

    def bytes(self) -> int:
        """Return the estimated memory of the states."""
        return len(self.states) * ENTRY_BYTES + self._weight.bytes(len(self.states))
