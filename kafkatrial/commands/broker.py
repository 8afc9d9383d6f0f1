"""`kafkatrial broker`: start a cluster, keep it up, and let it be broken on command.

Made to be started by tests: whoever waits for its first line waits in every test run. So it parses its own options, and
everything on the way to that line is imported only if it is needed.
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

SUMMARY = "Start a cluster and keep it up, with an interface to break it."
_PORT_MAX = 65535
_PROPERTIES = {"auto.create.topics.enable": "true"}
"""Kafka's own default, which people's programs are used to; the suite's own trials turn it off."""
_DESCRIPTION = """\
Start a cluster and keep it up until SIGTERM, Ctrl-C or POST /stop.

The first line of standard output, once the cluster is ready, is its bootstrap addresses; the second is "control URL",
the address of the interface that breaks it (docs/control-interface.md).
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (try: {self.prog} --help)")

    def print_help(self, _file: object = None) -> None:
        """Print the help on standard output. Raises `OSError`, unlike `argparse`, which ignores a full disk."""
        sys.stdout.write(self.format_help())
        sys.stdout.flush()


def run_broker(words: Sequence[str]) -> ExitCode:
    """Run `kafkatrial broker` with these words."""
    options = _parser().parse_args(words)
    with contextlib.suppress(KeyboardInterrupt):  # being told to stop is a broker's usual end, and interrupts no work
        _keep_up(options)
    return ExitCode.OK


def _keep_up(options: argparse.Namespace) -> None:
    token = _control_token(options)
    import chaos.targets  # noqa: F401 - registers the target `simulation`, so that it is not called unknown
    from chaos.campaign.interruption import interruptible
    from fixtures.targets.catalogue import parse_target

    if options.target == "simulation":
        raise UsageError("simulation: it has no address, being in the process that runs it; say reference")
    target = parse_target(
        options.target, options.nodes, properties=_PROPERTIES, work_dir=options.data, port=options.port
    )
    # Half a second of imports, while the nodes start.
    threading.Thread(target=import_module, args=("kafkatrial.control_server",), daemon=True).start()
    with interruptible(), target as cluster, ExitStack() as ending:
        from kafkatrial.control import Control
        from kafkatrial.control_server import ControlServer

        control = Control(cluster)
        server = ControlServer(control, token)
        ending.callback(server.close)
        ending.callback(cluster.stop)  # also a node that a restart under way has just launched
        ending.callback(server.close)
        ending.callback(control.close)
        sys.stdout.write(f"{cluster.bootstrap_servers}\ncontrol {server.url}\n")
        sys.stdout.flush()
        if options.exit_with_stdin:
            threading.Thread(target=_await_end_of_stdin, args=(control.stop_requested,), daemon=True).start()
        control.stop_requested.wait()


def _control_token(options: argparse.Namespace) -> str | None:
    """Return the token of the command line, or else of the environment, where other users cannot see it."""
    token: str | None = options.control_token
    where = "--control-token"
    if token is None:
        token, where = os.environ.get(CONTROL_TOKEN), f"environment variable {CONTROL_TOKEN}"
    if token is not None and not re.fullmatch(r"[!-~]+", token):
        raise UsageError(f"{where}: a token is printable ASCII characters without spaces, at least one")
    return token


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="kafkatrial broker", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default="reference", metavar="KIND[:VERSION]", help="which cluster [reference]")
    parser.add_argument("--nodes", type=_at_least_one, metavar="N", help="brokers [3]")
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep logs and data here [a temporary directory]")
    parser.add_argument("--port", type=_port, metavar="N", help="that clients connect to [a free one]")
    parser.add_argument(
        "--control-token", metavar="TOKEN", help=f"that requests to the control interface carry [${CONTROL_TOKEN}]"
    )
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input does, as a parent dies")
    return parser


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not a port, 1 to {_PORT_MAX}")
    return int(text)


def _await_end_of_stdin(ended: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    ended.set()
