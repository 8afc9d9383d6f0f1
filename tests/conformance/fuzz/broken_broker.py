"""The reference broker with a fault in one API: `python broken_broker.py FAULT <options of the server>`."""

import os
import runpy
import sys
import time

from reference_broker.core import dispatch

FRAGILE_API = 35
"""API key of DescribeLogDirs, the API with the fault."""
_kept = []
_serve = dispatch.serve


def _fail():
    raise RuntimeError("a handler with a bug")


FAULTS = {
    "node-ended": lambda: os._exit(3),
    "late-response": lambda: time.sleep(1.0),
    "memory": lambda: _kept.append(b"\x01" * 400_000_000),
    "traceback": _fail,
}


def serve(node, connection, frame, header, now, **further):
    if header.api_key == FRAGILE_API:
        FAULTS[fault]()
    _serve(node, connection, frame, header, now, **further)


if __name__ == "__main__":
    fault = sys.argv.pop(1)
    dispatch.serve = serve
    runpy.run_module("reference_broker.server", run_name="__main__")
