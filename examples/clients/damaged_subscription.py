"""JoinGroup requests with a subscription that Apache Kafka cannot parse (docs/findings.md).

    python examples/clients/damaged_subscription.py apache-kafka:4.3.1

A member joins a group with the protocol type `consumer` and metadata that is no subscription: the array of topics has
more elements than bytes follow. After `RESPONSE_TIMEOUT_S` without a response, its connection is closed, and a member
with a valid subscription joins the same group. Prints the response to each. Exits with 1 if a response is missing.
"""

import argparse
import sys
import time
from datetime import timedelta

from kio.schema.errors import ErrorCode

from kafkatrial.suite import activate

activate()

from fixtures.clients.messages import ApiKey, request_schema  # noqa: E402
from fixtures.clients.raw import RawClient, ResponseTimeout  # noqa: E402
from fixtures.targets.catalogue import parse_target  # noqa: E402
from fixtures.targets.target import Node  # noqa: E402

GROUP = "damaged"
VALID = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x05topic" + b"\xff\xff\xff\xff"
"""Version 0, one topic, no user data."""
DAMAGED = b"\x00\x00" + b"\x7f\xff\xff\xff"
SESSION_TIMEOUT = timedelta(seconds=6)
RESPONSE_TIMEOUT_S = 30.0
"""Five times the session and rebalance timeouts."""
COORDINATOR_TIMEOUT_S = 60.0
_NO_COORDINATOR = {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
}
_JOIN = request_schema(ApiKey.JOIN_GROUP, 3)
_FIND = request_schema(ApiKey.FIND_COORDINATOR, 2)


def join(node: Node, metadata: bytes) -> str | None:
    """Join the group on a new connection, again while it has no coordinator; return the response, or None."""
    request = _JOIN.JoinGroupRequest(
        group_id=GROUP,
        session_timeout=SESSION_TIMEOUT,
        rebalance_timeout=SESSION_TIMEOUT,
        member_id="",
        protocol_type="consumer",
        protocols=(_JOIN.JoinGroupRequestProtocol(name="range", metadata=metadata),),
    )
    with RawClient(node.host, node.port, timeout_s=RESPONSE_TIMEOUT_S) as client:
        deadline_s = time.monotonic() + COORDINATOR_TIMEOUT_S
        while time.monotonic() < deadline_s:
            client.request(_FIND.FindCoordinatorRequest(key=GROUP, key_type=0))
            try:
                response = client.request(request)
            except ResponseTimeout:
                return None
            if response.error_code not in _NO_COORDINATOR:
                return f"error code {response.error_code.value}, generation {response.generation_id}"
            time.sleep(0.2)
    raise SystemExit(f"the group has no coordinator after {COORDINATOR_TIMEOUT_S:.0f} s")


def main() -> int:
    """Let both members join on a new cluster of one node."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="apache-kafka:4.3.1", help="for example apache-kafka:3.9.2")
    responses = []
    with parse_target(parser.parse_args().target, 1, mesh=False) as cluster:
        (node,) = cluster.nodes
        for kind, metadata in (("damaged", DAMAGED), ("valid", VALID)):
            responses.append(join(node, metadata))
            print(f"{kind} subscription: {responses[-1] or f'no response in {RESPONSE_TIMEOUT_S:.0f} s'}", flush=True)
    return int(None in responses)


if __name__ == "__main__":
    sys.exit(main())
