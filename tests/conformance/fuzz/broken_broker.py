"""The reference broker with a fault in one API.

    python -m tests.conformance.fuzz.broken_broker FAULT OPTION…

FAULT is a key of `FAULTS`. The options are those of `reference_broker.server`.
"""

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
"""What a request of the API does, by the `Symptom` that it causes."""


def serve(node, connection, frame, header, now, **further):
    """Replace `dispatch.serve`: cause the fault before a request of the fragile API is served."""
    if header.api_key == FRAGILE_API:
        FAULTS[fault]()
    _serve(node, connection, frame, header, now, **further)


if __name__ == "__main__":
    fault = sys.argv.pop(1)
    dispatch.serve = serve
    runpy.run_module("reference_broker.server", run_name="__main__")
