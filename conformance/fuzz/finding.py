"""Findings of fuzzing sessions: a symptom of a node and the requests that cause it, saved so that they can be replayed.

A saved finding is one JSON file. It has the frame of each request in hexadecimal, with the destination (node and
listener). It also has the ids of the cluster, which a replay replaces in the frames by the ids of a new cluster.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from conformance.fuzz.generator import FuzzRequest
from conformance.fuzz.world import Port, World
from linearizability.history.errors import HistoryError
from linearizability.history.files import read_bounded

_FORMAT: Final = 1


class Symptom(StrEnum):
    """Symptom of a failure that no request may cause on a node."""

    NODE_ENDED = "node-ended"
    HANG = "hang"
    LATE_RESPONSE = "late-response"
    MEMORY = "memory"
    TRACEBACK = "traceback"
    NO_CONTROLLER = "no-controller"
    """No topic is created before the timeout: the quorum has no leader, or its leader does not respond."""


class NotAFindingError(Exception):
    """File that contains no finding. The message is one line."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A symptom that was observed.

    :ivar began_s: start of the late probe, or else the time of the observation, on the monotonic clock.
    """

    symptom: Symptom
    node: int
    text: str
    began_s: float

    @property
    def signature(self) -> tuple[Symptom, str]:
        """Key by which repeated symptoms are recognised.

        It is the symptom and, for a traceback or an ended node, the error without its numbers, such as node ids. So
        every other symptom is reported once.
        """
        has_error = self.symptom in {Symptom.TRACEBACK, Symptom.NODE_ENDED}
        return self.symptom, re.sub(r"\d+", "0", self.text) if has_error else ""


@dataclass(frozen=True, slots=True)
class FuzzFinding:
    """A symptom and the requests that cause it.

    :ivar requests: the smallest known set of requests that causes the symptom; before shrinking, all that were sent
        shortly before it.
    :ivar is_confirmed: whether the requests reproduced the symptom on a new cluster; None if that was not tried.
    :ivar world: metadata of the cluster that the requests were generated for.
    """

    target: str
    seed: int
    symptom: Symptom
    text: str
    requests: tuple[FuzzRequest, ...]
    world: World
    is_confirmed: bool | None = None

    @property
    def is_violation(self) -> bool:
        """Whether the symptom is a violation: always, except a late response that was not reproduced on a new cluster.

        A busy machine may delay a response.
        """
        return bool(self.is_confirmed) or self.symptom is not Symptom.LATE_RESPONSE


def save(path: Path, finding: FuzzFinding) -> None:
    """Write a finding to a file."""
    data = {
        "format": _FORMAT,
        "target": finding.target,
        "seed": finding.seed,
        "symptom": str(finding.symptom),
        "text": finding.text,
        "is_confirmed": finding.is_confirmed,
        "requests": [{"title": each.title, **asdict(each), "data": each.data.hex()} for each in finding.requests],
        "cluster": finding.world.as_json(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> FuzzFinding:
    """Read a finding from a file. Raises `NotAFindingError`."""
    try:
        data: Mapping[str, Any] = json.loads(read_bounded(path))
        if data["format"] != _FORMAT:
            raise NotAFindingError(f"{path}: format {data['format']}, this version reads {_FORMAT}")
        return FuzzFinding(
            target=str(data["target"]),
            seed=int(data["seed"]),
            symptom=Symptom(data["symptom"]),
            text=str(data["text"]),
            requests=tuple(map(_request, data["requests"])),
            world=World.from_json(data["cluster"]),
            is_confirmed=data["is_confirmed"],
        )
    except HistoryError as error:
        raise NotAFindingError(str(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotAFindingError(f"{path}: no finding of kafkatrial fuzz ({type(error).__name__}: {error})") from error


def _request(data: Mapping[str, Any]) -> FuzzRequest:
    return FuzzRequest(
        number=int(data["number"]),
        node=int(data["node"]),
        port=Port(data["port"]),
        api_key=int(data["api_key"]),
        version=int(data["version"]),
        data=bytes.fromhex(data["data"]),
        notes=tuple(map(str, data["notes"])),
    )
