"""Just-in-time search: one pass over the events that keeps every configuration in which the system may be.

A configuration is the set of open operations that have taken effect, and the resulting state. Operations are placed as
late as possible: when operation r completes, every configuration in which r has not taken effect is extended by open
operations, in every possible way, until r has taken effect. If no configuration is left, the history is not
linearizable, and r is the earliest completion that cannot be explained. The memory depends on the number of operations
that are open at the same time, not on the length of the history.

Three rules keep the set of configurations small, and none of them changes the verdict:

* When a configuration is extended, every pure operation that its state allows is placed in it at once: it does not
  change the state, so it does not restrict later operations.
* An unknown operation is optional. Identical unknown operations are used in the order of their invocations. An unknown
  operation that would not change the state is not used.
* If two configurations differ only in the sets of used unknown operations, and one set contains the other, only the
  configuration with the smaller set is kept. Configurations with smaller sets are extended first, so that the one with
  the larger set is never extended.

After "just-in-time linearization" in G. Lowe, Testing for linearizability (2017).
"""

from collections import defaultdict
from collections.abc import Generator, Iterable

from linearizability.search.engine import Path, Progress, SearchResult
from linearizability.search.states import STATE_BITS, OperationClass
from linearizability.search.timeline import Timeline

STATE_MASK = (1 << STATE_BITS) - 1
BITS_MAX = 600
"""Maximum number of bits for operations, since bits are not reused. Above it, open operations get new, lower bits."""
ENTRY_BYTES = 250
"""Estimated memory of one configuration: an int of several words, a dictionary entry, and the list of unknown sets."""

Exit = tuple[int, int, int, int, int]
"""An unknown operation that changes a state: `(number, bit, bit | earlier, earlier, after)`. `earlier` is the bit of
the identical operation that must be used before it, or 0, and `after` is the number of the state afterwards."""
NOTHING: tuple[int, list[Exit]] = (0, [])
"""The cached exits of a state for which no unknown operation was considered yet."""
Frontier = dict[int, list[int]]
"""Maps each configuration to the smallest sets of unknown operations that lead to it. The key is one int: the lowest
`STATE_BITS` bits are the number of the state, and above them each placed operation has one bit."""
Trail = dict[tuple[int, int], tuple[tuple[int, int] | None, Path]]
"""Maps each pair of a configuration and its set of unknown operations to the preceding pair, and to the operations that
were placed from the preceding configuration to this one."""


class FrontierSearch:
    """The search of one timeline. With a `trail`, paths can be reconstructed afterwards, at the cost of memory.

    With a trail, configurations keep the bits of all operations that have completed since the trail began. Therefore
    they become larger with every operation. In a long history the trail begins late, at the event with the index
    `trail_from`; each path then begins with one of the configurations before that event.
    """

    def __init__(
        self, timeline: Timeline, progress: Progress, trail: Trail | None = None, *, trail_from: int = 0
    ) -> None:
        self.states = timeline.states
        self.frontier: Frontier = {number: [0] for number in self.states.first}
        self.dead_ends: list[tuple[int, int]] = []
        self._timeline = timeline
        self._progress = progress
        self._trail = None if trail_from else trail
        self._late_trail, self._trail_from = trail, trail_from
        self._bits: dict[int, int] = {}
        self._open: dict[int, tuple[int, OperationClass]] = {}
        self._open_pure: dict[int, tuple[int, OperationClass]] = {}
        self._pures: list[tuple[int, OperationClass]] = []
        """All pure operations since the last renumbering, open or completed."""
        self._unknown: list[tuple[int, int, int, OperationClass]] = []
        """Each unknown operation: its number, its bit, and the bit of the identical operation before it, or 0."""
        self._closures: dict[int, tuple[int, int]] = {}
        """Cache by state: the number of elements of `_pures` that the closure takes into account, and the closure."""
        self._useful: dict[int, tuple[int, list[Exit]]] = {}
        """Cache by state: the number of elements of `_unknown` that the exits take into account, and the exits."""
        self._live = STATE_MASK
        """The bits of a configuration that still have a meaning: the state's and those of open operations."""
        self._next_bit = 1 << STATE_BITS

    def run(self) -> Generator[None, None, SearchResult]:
        """Search, yielding whenever the allowance is spent."""
        timeline, progress, trail = self._timeline, self._progress, self._trail
        classes, optional, bits = timeline.classes, timeline.optional, self._bits
        open_now, open_pure = self._open, self._open_pure
        twins = timeline.twins
        unknown_bits: dict[int, int] = {}
        bit = self._next_bit
        for index, event in enumerate(timeline.events):
            if index == self._trail_from and trail is not self._late_trail:
                bit, trail = self._renumber_bits(), self._late_trail
                self._trail = trail
            if event >= 0:
                kind = classes[event]
                if event in twins:
                    unknown_bits[event] = own = 1 << len(unknown_bits)
                    self._unknown.append((event, own, unknown_bits.get(twins[event], 0), kind))
                    continue
                bits[event] = bit
                self._live |= bit
                if kind.pure:
                    open_pure[event] = (bit, kind)
                    self._pures.append(open_pure[event])
                else:
                    open_now[event] = (bit, kind)
                bit <<= 1
                continue
            completed = ~event
            own = bits.pop(completed)
            kind = classes[completed]
            group = open_pure if kind.pure else open_now
            for key in self.frontier:
                if not key & own:
                    needs_no_change = kind.pure and trail is None and self._is_possible_everywhere(own)
                    break
            else:
                needs_no_change = True
            if needs_no_change:
                del group[completed]
                self._live ^= own
                continue
            without = self.frontier if completed in optional else {}
            yield from self._place(own)
            progress.events_done = index
            if without:
                self.frontier = _merge_optional(without, self.frontier, own)
            elif not self.frontier:
                self._report()
                return SearchResult(linearizable=False, blocked=completed)
            del group[completed]
            self._live ^= own
            if bit.bit_length() > BITS_MAX + STATE_BITS and trail is None:
                bit = self._renumber_bits()
        self._report()
        return SearchResult(linearizable=True)

    def _is_possible_everywhere(self, own: int) -> bool:
        """Whether a pure operation, which completes now, is placed in no configuration but is possible in each of them.

        Such an operation can be dropped: it takes effect in every configuration, and changes none.
        """
        return all(not key & own and self._closure(key & STATE_MASK) & own for key in self.frontier)

    def _place(self, own: int) -> Generator[None, None, None]:  # noqa: C901, PLR0912, PLR0915
        """Extend every configuration until the operation with the bit `own` has taken effect in it.

        It is one long function with repeated code, because the search spends most of its time here: a function call for
        each step would double that time.
        """
        settled: Frontier = {}
        levels: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        seen: Frontier = {}
        trail, progress = self._trail, self._progress
        # The bits of completed operations are dropped, unless a trail needs them.
        live = self._live if trail is None else -1
        closed_states: dict[int, int] = {}
        sets: list[int] | None
        for key, used_sets in self.frontier.items():
            state = key & STATE_MASK
            closed = closed_states.get(state)
            if closed is None:
                closed = closed_states[state] = (state | self._closure(state)) & live
            closed |= key & live
            for used in used_sets:
                if closed != key and trail is not None:
                    self._note(closed, used, key, used, ())
                if closed & own:
                    _add(settled, closed, used)
                else:
                    levels[used.bit_count()].append((closed, used))
        moving = [(number, bit, kind) for number, (bit, kind) in self._open.items()]
        known, useful = len(self._unknown), self._useful
        move, steps = self.states.move, progress.steps
        while levels:
            level = min(levels)
            todo, todo_next = levels[level], levels[level + 1]
            while todo:
                key, used = todo.pop()
                sets = seen.get(key)
                if sets is None:
                    seen[key] = [used]
                elif _covered(sets, used):
                    continue
                else:
                    sets.append(used)
                state = key & STATE_MASK
                rest = key ^ state
                for number, bit, kind in moving:
                    if rest & bit:
                        continue
                    steps += 1
                    moves = kind.moves.get(state)
                    if moves is None:
                        moves = move(kind, state)
                    for after in moves:
                        closed = closed_states.get(after)
                        if closed is None:
                            closed = closed_states[after] = (after | self._closure(after)) & live
                        reached = rest | bit | closed
                        if trail is not None:
                            self._note(reached, used, key, used, (number,))
                        if reached & own:
                            _add(settled, reached, used)
                            continue
                        sets = seen.get(reached)
                        if sets is None or not _covered(sets, used):
                            todo.append((reached, used))
                if known:
                    considered, exits = useful.get(state, NOTHING)
                    if considered < known:
                        steps += known - considered
                        exits = self._exits(state, considered, exits)
                    for number, bit, both, earlier, after in exits:
                        if used & both != earlier:
                            continue
                        closed = closed_states.get(after)
                        if closed is None:
                            closed = closed_states[after] = (after | self._closure(after)) & live
                        reached, using = rest | closed, used | bit
                        if trail is not None:
                            self._note(reached, using, key, used, (number,))
                        if reached & own:
                            _add(settled, reached, using)
                            continue
                        sets = seen.get(reached)
                        if sets is None or not _covered(sets, using):
                            todo_next.append((reached, using))
                if steps > progress.allowance:
                    progress.steps = steps
                    self._report(len(seen) + len(settled) + sum(map(len, levels.values())))
                    yield
            del levels[level]
            if not todo_next:
                del levels[level + 1]
        progress.steps = steps
        self.frontier = settled
        if not settled:
            self.dead_ends = [(key, used) for key, sets in seen.items() for used in sets]

    def _closure(self, state: int) -> int:
        """Return the bits of the open pure operations that are possible in a state, and of some completed ones."""
        considered, closure = self._closures.get(state, (0, 0))
        if considered < len(self._pures):
            new = self._pures[considered:] if considered else ()
            if 0 < len(new) < len(self._open_pure):
                closure |= self.states.possible(new, state)
            else:
                closure = self.states.possible(self._open_pure.values(), state)
            self._closures[state] = (len(self._pures), closure)
        return closure

    def _exits(self, state: int, considered: int, exits: list[Exit]) -> list[Exit]:
        """Return the unknown operations that change a state, each with the number of the state after it."""
        exits = list(exits)
        for number, bit, earlier, kind in self._unknown[considered:]:
            moves = kind.moves.get(state)
            if moves is None:
                moves = self.states.move(kind, state)
            exits += [(number, bit, bit | earlier, earlier, after) for after in moves if after != state]
        self._useful[state] = (len(self._unknown), exits)
        return exits

    def _renumber_bits(self) -> int:
        """Assign new bits to the open operations, starting with the lowest bit; return the next free bit."""
        self._closures.clear()
        bit = 1 << STATE_BITS
        self._live = STATE_MASK
        pairs: list[tuple[int, int]] = []
        for number, old in self._bits.items():
            pairs.append((old, bit))
            self._bits[number] = bit
            group = self._open if number in self._open else self._open_pure
            group[number] = (bit, group[number][1])
            self._live |= bit
            bit <<= 1
        self._pures = list(self._open_pure.values())
        renumbered: Frontier = {}
        for key, sets in self.frontier.items():
            small = key & STATE_MASK
            for old, new in pairs:
                if key & old:
                    small |= new
            for used in sets:
                _add(renumbered, small, used)
        self.frontier = renumbered
        return bit

    def _report(self, extra: int = 0) -> None:
        """Report the estimated memory of the frontier and `extra` further configurations, the states and the trail."""
        entries = len(self.frontier) + extra
        trail = 3 * ENTRY_BYTES * len(self._trail) if self._trail is not None else 0
        self._progress.hold(entries * (ENTRY_BYTES + len(self._unknown) // 8) + self.states.bytes() + trail)

    def _note(self, reached: int, using: int, key: int, used: int, path: Path) -> None:
        """Record how a configuration is first reached from `key`: by the operations in `path`, then by pure ones."""
        trail = self._trail
        if trail is None or (reached, using) in trail or (reached, using) == (key, used):
            return
        gained = reached & ~key
        pure = tuple(number for number, (bit, _) in self._open_pure.items() if gained & bit)
        trail[reached, using] = ((key, used), path + pure)


def _covered(sets: Iterable[int], used: int) -> bool:
    """Whether one of the sets is a subset of `used`."""
    for smaller in sets:  # noqa: SIM110  this is the innermost loop, and `any` costs three times as much
        if smaller & used == smaller:
            return True
    return False


def _add(frontier: Frontier, key: int, used: int) -> None:
    """Add a configuration unless a subset of `used` is present; remove the supersets of `used`."""
    sets = frontier.get(key)
    if sets is None:
        frontier[key] = [used]
    elif not _covered(sets, used):
        sets[:] = [other for other in sets if used & other != used]
        sets.append(used)


def _merge_optional(without: Frontier, placed: Frontier, own: int) -> Frontier:
    """Merge the configurations without and with an optional operation. Set its bit `own` in all of them."""
    merged: Frontier = {}
    for frontier in (without, placed):
        for key, sets in frontier.items():
            for used in sets:
                _add(merged, key | own, used)
    return merged
