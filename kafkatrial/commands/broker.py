"""`kafkatrial broker`: a cluster with a control interface that injects faults.

Tests start it in every run, and wait for its first line of output. So it has its own parser of options, and before it
prints that line it imports only what it needs.
"""

import argparse
import contextlib
import os
import re
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from kafkatrial.environment import CONTROL_TOKEN
from kafkatrial.errors import UsageError
from kafkatrial.exit_codes import ExitCode
from kafkatrial.recipes import TARGETS_HELP, use_recipes

SUMMARY = "Start a cluster for tests, with a control interface that injects faults."
_PORT_MAX = 65535
_PROPERTIES = {"auto.create.topics.enable": "true"}
"""Kafka's default, which applications rely on; the trials of the suite turn it off."""
_DESCRIPTION = """\
Start a cluster and keep it up until SIGTERM, Ctrl-C or POST /stop.

Once the cluster is ready, the first line of standard output is its bootstrap addresses. The second is "control URL",
the address of the interface that injects faults (docs/control-interface.md).
"""
EXAMPLES = (
    "kafkatrial broker",
    "kafkatrial broker --nodes 1 --port 9092 --data DIR",
    "kafkatrial broker --target apache-kafka:4.3.1",
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (try: {self.prog} --help)")

    def print_help(self, _file: object = None) -> None:
        """Print the help on standard output. Raises `OSError`, unlike `argparse`, which ignores a full disk."""
        sys.stdout.write(self.format_help())
        sys.stdout.flush()


def run_broker(arguments: Sequence[str]) -> ExitCode:
    """Start a cluster, and keep it up until it is stopped; return the exit code."""
    options = _parser().parse_args(arguments)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is a usual way to end a broker, and interrupts no work
        _keep_up(options)
    return ExitCode.OK


def _keep_up(options: argparse.Namespace) -> None:
    token = _control_token(options)
    from chaos.campaign.interruption import interruptible
    from fixtures.targets.catalogue import parse_target
    from fixtures.targets.cluster import Cluster

    use_recipes(options.targets)
    if options.target == "simulation":
        raise UsageError("simulation: it runs inside one process and has no address; use --target reference")
    target = parse_target(
        options.target, options.nodes, preferred=_PROPERTIES, work_dir=options.data, port=options.port
    )
    if not isinstance(target, Cluster):
        raise UsageError(f"{options.target}: it has no nodes that can be stopped or cut off; use --target reference")
    # The imports of the control server take half a second; they run while the nodes start.
    threading.Thread(target=import_module, args=("kafkatrial.control_server",), daemon=True).start()
    with interruptible(), target as cluster, ExitStack() as ending:
        from kafkatrial.control import Control
        from kafkatrial.control_server import ControlServer

        control = Control(cluster)
        server = ControlServer(control, token)
        # At the end, these run in reverse order. The server is closed twice, because the stop of the cluster ends
        # actions in progress, and their responses are then sent, too.
        ending.callback(server.close)
        ending.callback(cluster.stop)  # also stops a node that a restart in progress has just launched
        ending.callback(server.close)
        ending.callback(control.close)
        sys.stdout.write(f"{cluster.bootstrap_servers}\ncontrol {server.url}\n")
        sys.stdout.flush()
        if options.exit_with_stdin:
            threading.Thread(target=_await_end_of_stdin, args=(control.stop_requested,), daemon=True).start()
        control.stop_requested.wait()


def _control_token(options: argparse.Namespace) -> str | None:
    """Return the token from the command line, else from the environment (which other users cannot read), else None."""
    token: str | None = options.control_token
    where = "--control-token"
    if token is None:
        token, where = os.environ.get(CONTROL_TOKEN), f"environment variable {CONTROL_TOKEN}"
    if token is not None and not re.fullmatch(r"[!-~]+", token):
        raise UsageError(f"{where}: a token is printable ASCII characters without spaces, at least one")
    return token


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="kafkatrial broker",
        description=_DESCRIPTION,
        epilog="\n  ".join(("Examples:", *EXAMPLES)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--target", default="reference", metavar="KIND[:VERSION]", help="Cluster to start (default: reference)."
    )
    parser.add_argument("--targets", type=Path, metavar="FILE", help=TARGETS_HELP)
    parser.add_argument("--nodes", type=_positive_number, metavar="N", help="Number of brokers (default: 3).")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="Directory for logs and data (default: a temporary directory)."
    )
    parser.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help="Port for clients of the first broker, at the printed address (default: a free port).",
    )
    parser.add_argument(
        "--control-token",
        metavar="TOKEN",
        help=f"Token that requests to the control interface must carry (default: ${CONTROL_TOKEN}, if set).",
    )
    parser.add_argument(
        "--exit-with-stdin", action="store_true", help="Stop when standard input ends, as when the parent process dies."
    )
    return parser


def _positive_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 1")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not a port number from 1 to {_PORT_MAX}")
    return int(text)


def _await_end_of_stdin(ended: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    ended.set()
