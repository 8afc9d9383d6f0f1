"""A target without brokers, and requirements with a given check, for tests of the engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from conformance.check_context import CheckContext
from conformance.requirements.requirement import Level, Requirement, Source
from conformance.sequential.scripted_check import ScriptedCheck
from fixtures.clients.stage import THREADS, Stage
from fixtures.clients.transport import SOCKETS, Transport
from fixtures.targets.target import Capability, Node, TargetError
from linearizability.finding import Finding


@dataclass
class FakeTarget:
    """A target that only counts its starts and stops."""

    name: str = "fake:4.3.1"
    capabilities: frozenset[Capability] = frozenset({Capability.TOPIC_ADMIN})
    nodes: tuple[Node, ...] = ()
    fails_to_start: bool = False
    starts: int = 0
    stops: int = 0
    transport: Transport = SOCKETS
    stage: Stage = THREADS
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.name.partition(":")[0]

    @property
    def version(self) -> str | None:
        return self.name.partition(":")[2] or None

    @property
    def node_count(self) -> int:
        return len(self.nodes)

    def start(self) -> None:
        if self.fails_to_start:
            raise TargetError(f"{self.name} did not start: no reason")
        self.starts += 1

    def stop(self) -> None:
        self.stops += 1


def requirement(
    check: Callable[[CheckContext], Mapping[str, Finding]], id_: str = "area/words", **fields: Any
) -> Requirement:
    fields = {"nodes_min": 0, **fields}
    return Requirement(id=id_, level=Level.MUST, text="It holds.", sources=(Source("KIP-0"),), check=check, **fields)


def finds(finding: Finding) -> Callable[[CheckContext], Mapping[str, Finding]]:
    """Return a check that has this finding for each target."""
    return lambda context: {target.name: finding for target in context.targets}


def shared(check: Callable[[CheckContext], Mapping[str, Finding]], id_: str, **fields: Any) -> Requirement:
    """Return a requirement that may be checked at the same time as others on one cluster."""
    return requirement(ScriptedCheck(check, st.nothing(), cost=1), id_, **fields)
