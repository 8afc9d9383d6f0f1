"""Which directions a network fault means, from place to place: the same in the simulation and on real clusters."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from chaos.faults import Cut, Isolate, Node, Place, Ring, Role, Slice, Slow, Split

CLIENT = "client"
End = int | str
"""A node's id, or `CLIENT`."""
Pair = tuple[End, End]
"""Source and destination."""
Impairment = Cut | Isolate | Split | Ring | Slow | Slice
"""Faults of directions."""
FindNode = Callable[[Node], int | None]
"""Who plays a role by now; null where nobody does."""


def pairs_of(fault: Impairment, nodes: Sequence[int], find: FindNode) -> tuple[Pair, ...]:
    """The directions that a fault is about, each once; none where its nodes are not found."""
    return tuple(dict.fromkeys(_pairs(fault, nodes, find)))


def _pairs(fault: Impairment, nodes: Sequence[int], find: FindNode) -> Iterator[Pair]:
    match fault:
        case Cut() | Slow() | Slice():
            source, destination = end_of(fault.source, find), end_of(fault.destination, find)
            if source is not None and destination is not None and source != destination:
                yield source, destination
                if fault.both_ways:
                    yield destination, source
        case Isolate():
            node = find(fault.node)
            if node is not None:
                others: list[End] = [other for other in nodes if other != node]
                yield from _both_ways([node], others + [CLIENT] * fault.from_clients)
        case Split():
            side = {find(name) for name in fault.side}
            yield from _both_ways(
                [node for node in nodes if node in side], [node for node in nodes if node not in side]
            )
        case Ring():
            half = len(nodes) // 2
            for place, node in enumerate(nodes):
                for step in range(half + 1, len(nodes)):
                    yield nodes[(place + step) % len(nodes)], node


def end_of(place: Place, find: FindNode) -> End | None:
    """A node, or the clients; null where there is nobody of that role."""
    return CLIENT if place is Role.CLIENTS else find(place)


def _both_ways(side: Iterable[End], others: Sequence[End]) -> Iterator[Pair]:
    for one in side:
        for other in others:
            yield one, other
            yield other, one
