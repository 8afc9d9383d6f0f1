"""What an entry of an API table is."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from reference_broker.core.clock import Now
from reference_broker.core.request import Request

Handler = Callable[[Any, Request, Now], Any]
"""Takes the part of the node that the entry names; gives the response, kio's dataclass of the request's version, or an
`Outcome`."""


class Part(Enum):
    """Who answers: an attribute of the node, or the node itself."""

    BROKER = "broker"
    CONTROLLER = "controller"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Api:
    """An API that a listener has: its versions, and what answers it.

    :param advertised_min_version: told in ApiVersions in place of `min_version`.
    """

    key: int
    min_version: int
    max_version: int
    handle: Handler
    part: Part = Part.BROKER
    advertised_min_version: int | None = None

    @property
    def advertised(self) -> tuple[int, int]:
        """Lowest and highest version, as ApiVersions tells."""
        lowest = self.min_version if self.advertised_min_version is None else self.advertised_min_version
        return lowest, self.max_version
