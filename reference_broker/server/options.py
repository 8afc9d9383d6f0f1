"""The command line of a broker process."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS
from reference_broker.server.errors import UsageError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Options:
    """What a broker is started with.

    :param advertised: what clients are told; null for the listener itself.
    :param properties: Kafka's broker properties, those that this broker heeds.
    :param unheeded: names of properties that were given and mean nothing to this broker.
    """

    node_id: int
    data: Path
    listener: Endpoint
    advertised: Endpoint | None
    hosts_file: Path | None
    cluster_id: str | None
    properties: dict[str, str]
    unheeded: tuple[str, ...]
    exit_with_stdin: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see --help)")


def parse_options(arguments: Sequence[str]) -> Options:
    """Read the command line. Raises `UsageError`."""
    parser = _Parser(prog="python -m reference_broker.server", description="Run one node of the reference broker.")
    parser.add_argument("--node-id", type=_node_id, required=True)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the log directory, made if need be")
    parser.add_argument("--listener", type=_endpoint, required=True, metavar="HOST:PORT", help="port 0: any free one")
    parser.add_argument("--advertised", type=_endpoint, metavar="HOST:PORT", help="what clients are told to connect to")
    parser.add_argument("--hosts-file", type=Path, metavar="FILE", help="names to addresses, before the system's own")
    parser.add_argument("--cluster-id", help="22 characters of base64; made at the first start where not given")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PROPERTY=VALUE", type=_property, dest="properties"
    )
    parser.add_argument("--exit-with-stdin", action="store_true", help="stop when standard input reaches its end")
    parsed = parser.parse_args(arguments)
    given = dict(parsed.properties)
    return Options(
        node_id=parsed.node_id,
        data=parsed.data,
        listener=parsed.listener,
        advertised=parsed.advertised,
        hosts_file=parsed.hosts_file,
        cluster_id=parsed.cluster_id,
        properties=_checked({name: value for name, value in given.items() if name in BROKER_CONFIG_KEYS}),
        unheeded=tuple(name for name in given if name not in BROKER_CONFIG_KEYS),
        exit_with_stdin=parsed.exit_with_stdin,
    )


def _checked(properties: dict[str, str]) -> dict[str, str]:
    try:
        for name, value in properties.items():
            BROKER_CONFIG_KEYS[name].parse(value)
    except InvalidConfigError as error:
        raise UsageError(f"--set: {error}") from error
    return properties


def _node_id(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is no node id; it is a number from 0 up")
    return int(text)


def _endpoint(text: str) -> Endpoint:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 2**16):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return Endpoint(host.strip("[]"), int(port))


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not PROPERTY=VALUE")
    return name, value
