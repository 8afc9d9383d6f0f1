"""Generator of requests: request n of a seed is the same in every session on a target, except for ids of the cluster.

A cycle contains every API and version that kio (the library of Kafka's messages) has, on every listener, in random
order; those that a listener advertises occur several times. A request is generated well-formed. Most are then changed
by one to three mutations of the body; the header and the size are mutated rarely. If `protection` does not permit a
request, it is generated again (at most `_ATTEMPTS_MAX` attempts), so that no request number is skipped.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from conformance.fuzz.mutations import BODY_MUTATIONS, mutated_header, mutated_size
from conformance.fuzz.protection import is_permitted
from conformance.fuzz.values import Values
from conformance.fuzz.wire import HEADER, FieldChoices, Part, encode, known_apis, request_struct
from conformance.fuzz.world import Port, World
from fixtures.clients.messages import api_name

SERVED_OCCURRENCES: Final = 6
"""Occurrences in a cycle of an API and version that a listener advertises; others occur once."""
CLIENT_ID: Final = b"fuzz"
_INTACT_SHARE: Final = 0.3
_HEADER_SHARE: Final = 0.05
_SIZE_SHARE: Final = 0.02
_MUTATIONS_MAX: Final = 3
_ATTEMPTS_MAX: Final = 50
_QUORUM_KEYS: Final = frozenset({52, 53, 54, 55, 59, 80, 81, 82})
_ENVELOPE: Final = 58


@dataclass(frozen=True, slots=True)
class FuzzRequest:
    """One request with its destination.

    :ivar node: id of the node to send it to.
    :ivar data: the bytes to send, the size of the frame included.
    :ivar notes: descriptions of the mutations; empty if it is well-formed.
    """

    number: int
    node: int
    port: Port
    api_key: int
    version: int
    data: bytes
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """A description for reports."""
        broken = f"; {', '.join(self.notes)}" if self.notes else ""
        api = f"{api_name(self.api_key)} v{self.version}"
        return f"request {self.number}: {api} to the {self.port} listener of node {self.node}{broken}"


class Generator:
    """The requests of one seed for one cluster."""

    def __init__(self, seed: int, world: World) -> None:
        self._seed = seed
        self._world = world
        self._apis = [
            (port, key, version)
            for port in Port
            for key, version in known_apis()
            for _ in range(SERVED_OCCURRENCES if self._is_served(port, key, version) else 1)
        ]
        self._cycle = (-1, self._apis)

    @property
    def cycle_size(self) -> int:
        """The number of requests after which every API and version was sent to every listener."""
        return len(self._apis)

    def request(self, number: int) -> FuzzRequest:
        """Generate the request with this number; the same number gives the same request."""
        cycle, place = divmod(number, len(self._apis))
        port, api_key, version = self._ordered(cycle)[place]
        for attempt in range(_ATTEMPTS_MAX):
            rng = random.Random(f"{self._seed}/{number}/{attempt}")
            node = rng.choice(self._world.nodes)
            frame, notes = self._frame(rng, api_key, version, number)
            if is_permitted(frame, self._world):
                return FuzzRequest(number, node, port, api_key, version, *_with_size(rng, frame, notes))
        raise AssertionError(f"no permitted request of {api_name(api_key)} v{version} in {_ATTEMPTS_MAX} attempts")

    def requests(self) -> Iterator[FuzzRequest]:
        """Generate all requests, indefinitely."""
        return map(self.request, itertools.count())

    def _is_served(self, port: Port, key: int, version: int) -> bool:
        lowest, highest = self._world.served.get(port, {}).get(key, (0, -1))
        return lowest <= version <= highest

    def _ordered(self, cycle: int) -> Sequence[tuple[Port, int, int]]:
        if self._cycle[0] != cycle:
            order = random.Random(f"{self._seed}/{cycle}").sample(self._apis, len(self._apis))
            self._cycle = (cycle, order)
        return self._cycle[1]

    def _frame(self, rng: random.Random, key: int, version: int, number: int) -> tuple[bytes, tuple[str, ...]]:
        """Generate a frame without its size, with the descriptions of its mutations."""
        parts = self._parts(rng, key, version)
        notes: list[str] = []
        if rng.random() > _INTACT_SHARE:
            notes += [rng.choice(BODY_MUTATIONS)(rng, parts) for _ in range(rng.randint(1, _MUTATIONS_MAX))]
        frame = _header(key, version, number) + b"".join(part.data for part in parts)
        if rng.random() < _HEADER_SHARE:
            frame, note = mutated_header(rng, frame)
            notes.append(note)
        return frame, tuple(filter(None, notes))

    def _parts(self, rng: random.Random, key: int, version: int) -> list[Part]:
        values = Values(rng, self._world, key in _QUORUM_KEYS, lambda: self._enveloped(rng))
        return list(encode(request_struct(key, version), FieldChoices(values.choose, values.count, values.is_present)))

    def _enveloped(self, rng: random.Random) -> bytes:
        served = self._world.served.get(Port.CONTROLLER, {})
        apis = [(key, version) for key, version in known_apis() if key in served and key != _ENVELOPE]
        key, version = rng.choice(apis or known_apis())
        return self._frame(rng, key, version, 0)[0] if key != _ENVELOPE else b""


def _header(key: int, version: int, number: int) -> bytes:
    """Return a request header of version 1 or 2 (KIP-482)."""
    client_id = len(CLIENT_ID).to_bytes(2, "big") + CLIENT_ID
    tags = b"\x00" if request_struct(key, version).is_flexible else b""
    return HEADER.pack(key, version, number & 0x7FFFFFFF) + client_id + tags


def _with_size(rng: random.Random, frame: bytes, notes: tuple[str, ...]) -> tuple[bytes, tuple[str, ...]]:
    """Prepend the size of the frame; in a few cases a wrong one."""
    if rng.random() >= _SIZE_SHARE:
        return len(frame).to_bytes(4, "big") + frame, notes
    data, note = mutated_size(rng, frame)
    return data, (*notes, note)
