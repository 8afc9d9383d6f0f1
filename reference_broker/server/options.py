"""Command line of a node's process.

    python -m reference_broker.server --node-id 1 --data DIR --set listeners=CLIENT://127.0.0.1:9092,CONTROLLER://…
        --set controller.quorum.voters=1@b1:9093,… --set process.roles=broker,controller …

`--listener HOST:PORT` configures a cluster of one node: a listener for clients at this address, and a listener for the
controller on any free port of the same host. As in Kafka's `server.properties`, `__consumer_offsets` has one replica.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.configuration.keys import BROKER_CONFIG_KEYS
from reference_broker.core.connection import CONTROLLER_LISTENER, DEFAULT_LISTENER
from reference_broker.server.errors import UsageError


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a node.

    :param data: the log directory.
    :param hosts_file: null to resolve host names with the system only.
    :param clock_file: null to use the clocks of the machine.
    :param cluster_id: null to use the id in the log directory, or to generate one at the first start.
    :param properties: the given broker properties of Kafka that this broker implements.
    :param ignored: names of the given properties that this broker does not implement.
    """

    node_id: int
    data: Path
    hosts_file: Path | None
    clock_file: Path | None
    cluster_id: str | None
    properties: dict[str, str]
    ignored: tuple[str, ...]
    exit_with_stdin: bool


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see --help)")


def parse_options(arguments: Sequence[str]) -> Options:
    """Read the command line. Raises `UsageError`."""
    parser = _Parser(prog="python -m reference_broker.server", description="Run one node of the reference broker.")
    add = parser.add_argument
    add("--node-id", type=_node_id, required=True, help="Id of the node: 0 or more.")
    add("--data", type=Path, required=True, metavar="DIR", help="Log directory; created if it does not exist.")
    add("--listener", type=_address, metavar="HOST:PORT", help="Listener of a cluster of one node; port 0: any free.")
    add("--advertised", type=_address, metavar="HOST:PORT", help="Advertised address, if it is not the listener's.")
    add("--hosts-file", type=Path, metavar="FILE", help="Host names and addresses that precede the system's.")
    add("--clock-file", type=Path, metavar="FILE", help="Settings of shifted clocks, for tests.")
    add("--cluster-id", help="Cluster id: 22 characters of base64 (default: generated at the first start).")
    add(
        "--set",
        action="append",
        default=[],
        metavar="PROPERTY=VALUE",
        type=_property,
        dest="properties",
        help="Broker property of Kafka; may be repeated.",
    )
    add("--exit-with-stdin", action="store_true", help="Shut down when standard input ends.")
    parsed = parser.parse_args(arguments)
    given = {**_single_node_properties(parsed.listener, parsed.advertised), **dict(parsed.properties)}
    return Options(
        node_id=parsed.node_id,
        data=parsed.data,
        hosts_file=parsed.hosts_file,
        clock_file=parsed.clock_file,
        cluster_id=parsed.cluster_id,
        properties=_checked({name: value for name, value in given.items() if name in BROKER_CONFIG_KEYS}),
        ignored=tuple(name for name in given if name not in BROKER_CONFIG_KEYS),
        exit_with_stdin=parsed.exit_with_stdin,
    )


def _single_node_properties(listener: str | None, advertised: str | None) -> dict[str, str]:
    """Return the properties that `--listener` and `--advertised` set."""
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
        raise UsageError("--listener HOST:PORT or --set listeners=NAME://HOST:PORT,… is required (see --help)")
    try:
        for name, value in properties.items():
            BROKER_CONFIG_KEYS[name].parse(value)
    except InvalidConfigError as error:
        raise UsageError(f"--set: {error}") from error
    return properties


def _node_id(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a node id: a number from 0 to {2**31 - 1}")
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
