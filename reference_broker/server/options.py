"""The command line of a node's process.

    python -m reference_broker.server --node-id 1 --data DIR --set listeners=CLIENT://127.0.0.1:9092,CONTROLLER://…
        --set controller.quorum.voters=1@b1:9093,… --set process.roles=broker,controller …

`--listener HOST:PORT` is short for a node alone: a listener for clients there, one for its controller at any free port
beside it, no other voter, and one replica of committed offsets, as in the `server.properties` that Kafka comes with.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS
from reference_broker.core.connection import DEFAULT_LISTENER
from reference_broker.core.layout import CONTROLLER_LISTENER
from reference_broker.server.errors import UsageError


@dataclass(frozen=True, slots=True)
class Options:
    """What a node is started with.

    :param properties: Kafka's broker properties, those that this broker heeds.
    :param unheeded: names of properties that were given and mean nothing to this broker.
    """

    node_id: int
    data: Path
    hosts_file: Path | None
    clock_file: Path | None
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
    parser.add_argument("--listener", type=_address, metavar="HOST:PORT", help="of a node alone; port 0: any free one")
    parser.add_argument("--advertised", type=_address, metavar="HOST:PORT", help="what its clients are told instead")
    parser.add_argument("--hosts-file", type=Path, metavar="FILE", help="names to addresses, before the system's own")
    parser.add_argument("--clock-file", type=Path, metavar="FILE", help="how wrong its clocks are, for tests")
    parser.add_argument("--cluster-id", help="22 characters of base64; made at the first start where not given")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PROPERTY=VALUE", type=_property, dest="properties"
    )
    parser.add_argument("--exit-with-stdin", action="store_true", help="stop when standard input reaches its end")
    parsed = parser.parse_args(arguments)
    given = {**_alone(parsed.listener, parsed.advertised), **dict(parsed.properties)}
    return Options(
        node_id=parsed.node_id,
        data=parsed.data,
        hosts_file=parsed.hosts_file,
        clock_file=parsed.clock_file,
        cluster_id=parsed.cluster_id,
        properties=_checked({name: value for name, value in given.items() if name in BROKER_CONFIG_KEYS}),
        unheeded=tuple(name for name in given if name not in BROKER_CONFIG_KEYS),
        exit_with_stdin=parsed.exit_with_stdin,
    )


def _alone(listener: str | None, advertised: str | None) -> dict[str, str]:
    """The properties that `--listener` and `--advertised` are short for."""
    if listener is None:
        return {}
    host = listener.rpartition(":")[0]
    properties = {
        "listeners": f"{DEFAULT_LISTENER}://{listener},{CONTROLLER_LISTENER}://{host}:0",
        "controller.listener.names": CONTROLLER_LISTENER,
        "offsets.topic.replication.factor": "1",
    }
    return (
        properties
        if advertised is None
        else {**properties, "advertised.listeners": f"{DEFAULT_LISTENER}://{advertised}"}
    )


def _checked(properties: dict[str, str]) -> dict[str, str]:
    if "listeners" not in properties:
        raise UsageError("--listener HOST:PORT or --set listeners=NAME://HOST:PORT,… is needed (see --help)")
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


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 2**16):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return text


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not PROPERTY=VALUE")
    return name, value
