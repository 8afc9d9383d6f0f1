"""Parser of the URLs of Spark masters, and a check whether a master responds.

The check opens a socket, which fails within `CONNECT_TIMEOUT_S`. A driver with a wrong address retries for a minute or
more.
"""

import contextlib
import re
import socket
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from reports.spark.errors import EngineUnavailableError

CONNECT_PORT: Final = 15002
CONNECT_TIMEOUT_S: Final = 10.0


class MasterKind(StrEnum):
    """MasterKind of a master: the driver itself, a cluster manager, or a Spark Connect server."""

    LOCAL = "local"
    STANDALONE = "spark"
    KUBERNETES = "k8s"
    YARN = "yarn"
    CONNECT = "sc"


@dataclass(frozen=True, slots=True)
class Master:
    """The URL of a master, as a user gave it, and its parts."""

    url: str
    kind: MasterKind
    addresses: tuple[tuple[str, int], ...] = ()
    """The addresses on which it listens; empty for a local master, and for YARN, whose configuration has them."""

    @classmethod
    def of(cls, url: str) -> Self:
        """Parse a URL. Raises EngineUnavailableError for one that Spark does not support."""
        if re.fullmatch(r"local(-cluster)?(\[.*\])?", url):
            return cls(url, MasterKind.LOCAL)
        if url == "yarn":
            return cls(url, MasterKind.YARN)
        scheme, _, rest = url.partition("://")
        with contextlib.suppress(ValueError):
            match scheme:
                case "spark":
                    return cls(url, MasterKind.STANDALONE, tuple(_address(host, None) for host in rest.split(",")))
                case "sc":
                    return cls(url, MasterKind.CONNECT, (_address(rest.partition("/")[0], CONNECT_PORT),))
                case "k8s":
                    inner, _, host = rest.rpartition("://")
                    return cls(
                        url, MasterKind.KUBERNETES, (_address(host.partition("/")[0], 80 if inner == "http" else 443),)
                    )
        known = "local[*], spark://HOST:PORT, yarn, k8s://https://HOST:PORT, sc://HOST:PORT"
        raise EngineUnavailableError(f"{url}: not a Spark master; known are {known}")

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine, so that the driver need not listen on other addresses."""
        return self.kind is MasterKind.LOCAL or (
            bool(self.addresses) and all(re.match(r"127\.|localhost$|::1$", host) for host, _ in self.addresses)
        )

    def require_connection(self, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        """Try to connect to each of its addresses. Raises EngineUnavailableError if all connections fail."""
        reasons = [_connect_error(address, timeout_s) for address in self.addresses]
        if reasons and None not in reasons:
            raise EngineUnavailableError(
                f"{self.url}: the master does not respond: {reasons[-1]}; is it up, and is the port right?"
            )


def _address(text: str, default_port: int | None) -> tuple[str, int]:
    """Parse `HOST:PORT`, `HOST` or `[::1]:PORT`. Raises ValueError."""
    read = re.fullmatch(r"(\[[^\]]+\]|[^:\[\]]+)(?::(\d+))?", text)
    if read is None or (read[2] is None and default_port is None):
        raise ValueError(text)
    return read[1].strip("[]"), int(read[2] or default_port or 0)


def _connect_error(address: tuple[str, int], timeout_s: float) -> str | None:
    try:
        socket.create_connection(address, timeout_s).close()
    except OSError as error:
        return f"{address[0]}:{address[1]}: {error.strerror or error}"
    except UnicodeError:  # such as an empty label, as in `spark..local`
        return f"{address[0]}:{address[1]}: not a host name"
    return None
