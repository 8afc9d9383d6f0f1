"""`kafkatrial broker`: start a cluster, keep it up, and let it be broken on command.

Made to be started by tests: everything on the way to the first line is imported late and only if needed, because
whoever waits for that line waits in every test run.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from kafkatrial.exit_codes import ExitCode


def broker(
    target: Annotated[str, typer.Option(metavar="KIND[:VERSION]", help="Which cluster.")] = "reference",
    nodes: Annotated[int | None, typer.Option(help="Brokers. Default: 1 for reference, else 3.")] = None,
    data: Annotated[Path | None, typer.Option(help="Keep logs and data here. Default: a temporary directory.")] = None,
    port: Annotated[int | None, typer.Option(help="Of the first broker. Default: a free one.")] = None,
    exit_with_stdin: Annotated[
        bool, typer.Option("--exit-with-stdin", help="End when standard input does, so as not to outlive a parent.")
    ] = False,
) -> ExitCode:
    """Start a cluster and keep it up until SIGTERM, Ctrl-C or POST /stop.

    The first line of standard output, once the cluster is ready, is its bootstrap addresses; the second is
    `control URL`.
    """
    from fixtures.targets.catalogue import parse_target
    from kafkatrial.interruption import interruptible

    with interruptible():
        try:
            with parse_target(target, nodes=nodes, work_dir=data, port=port) as cluster:
                from kafkatrial.control import Control, ControlServer

                control = Control(cluster)
                server = ControlServer(control)
                sys.stdout.write(f"{cluster.bootstrap_servers}\ncontrol {server.url}\n")
                sys.stdout.flush()
                if exit_with_stdin:
                    threading.Thread(target=_await_end_of_stdin, args=(control.stop_requested,), daemon=True).start()
                try:
                    control.stop_requested.wait()
                finally:
                    server.shutdown()
                    control.heal_all()
        except KeyboardInterrupt:
            pass  # the usual way to end it: being told to stop is no interruption of a broker's work
    return ExitCode.OK


def _await_end_of_stdin(ended: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    ended.set()
