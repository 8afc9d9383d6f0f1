"""Separate process of the probes: it ignores SIGINT."""

import os
import signal
import socket

from conformance.fuzz.probe import ProbedNode, Probing


def test_ctrl_c_does_not_end_the_process_of_the_probes(capfd):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        with Probing([ProbedNode(1, host, port, os.getpid())], bound_s=10.0) as probing:
            assert probing._results.poll(60)  # the process has started: it sends its first report
            os.kill(probing._process.pid, signal.SIGINT)
            probing._process.join(2)
            assert probing._process.is_alive()
    assert capfd.readouterr().err == ""
