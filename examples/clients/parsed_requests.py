"""CreateTopics requests that Apache Kafka parses for seconds, or to which it cannot respond (docs/findings.md).

    python examples/clients/parsed_requests.py apache-kafka:4.3.1

1. One request names a topic many times, and is only validated. The time until its response is printed for each count.
2. One request names a topic by bytes that are not UTF-8. Each byte may become a character of three bytes in the
   response. The program waits until the broker has responded or closed the connection, and then `END_TIMEOUT_S` for
   the broker to end.

Exits with 1 if a response to 1 took more than `SLOW_S`, or if the broker ended.
"""

import argparse
import sys
import time

from kafkatrial.suite import activate

activate()

from fixtures.clients import requests  # noqa: E402
from fixtures.clients.messages import ApiKey, request_schema  # noqa: E402
from fixtures.clients.raw import ConnectionClosed, RawClient, ResponseTimeout, encode_request  # noqa: E402
from fixtures.targets.catalogue import parse_target  # noqa: E402
from fixtures.targets.cluster import Cluster  # noqa: E402
from fixtures.targets.target import Node  # noqa: E402

COUNTS = (50, 100, 200, 400, 800)
NAME_BYTES = 10_923
"""Three times this is more than 32,767, the longest string that Kafka serializes."""
SLOW_S = 1.0
RESPONSE_TIMEOUT_S = 120.0
"""Longer than the 60 s after which a broker stops waiting for the controller."""
END_TIMEOUT_S = 10.0
_SCHEMA = request_schema(ApiKey.CREATE_TOPICS, 7)


def create_topics(name: bytes, count: int) -> bytes:
    """Return the frame of a CreateTopics request that names one topic `count` times, to be validated only."""
    text = "a" * len(name)  # kio encodes nothing that is not UTF-8, so the name is inserted afterwards
    topics = requests.create_topic(
        _SCHEMA, text, partitions=1, replication_factor=1, properties={}, timeout_ms=5_000
    ).topics
    message = _SCHEMA.CreateTopicsRequest(topics=topics * count, validate_only=True)
    frame = encode_request(message, 1, None).replace(text.encode(), name)
    return len(frame).to_bytes(4, "big") + frame


def response_to(node: Node, frame: bytes) -> tuple[str, float]:
    """Send a frame on a new connection; return how the broker responded, and the time in seconds."""
    began_s = time.monotonic()
    with RawClient(node.host, node.port, timeout_s=RESPONSE_TIMEOUT_S) as client:
        client.send_bytes(frame)
        try:
            client.receive_frame()
            found = "a response"
        except ResponseTimeout:
            found = "nothing"
        except ConnectionClosed:
            found = "a closed connection"
    return found, time.monotonic() - began_s


def ends(cluster: Cluster) -> bool:
    """Whether the node of a cluster ends within `END_TIMEOUT_S`."""
    deadline_s = time.monotonic() + END_TIMEOUT_S
    while time.monotonic() < deadline_s:
        if cluster.processes.ended():
            return True
        time.sleep(0.1)
    return False


def main() -> int:
    """Run both parts on a new cluster of one node."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", default="reference", help="for example apache-kafka:4.3.1")
    slowest_s = 0.0
    with parse_target(parser.parse_args().target, 1, mesh=False) as cluster:
        assert isinstance(cluster, Cluster)
        (node,) = cluster.nodes
        for count in COUNTS:
            found, took_s = response_to(node, create_topics(b"a", count))
            slowest_s = max(slowest_s, took_s)
            print(f"one topic, {count} times: {found} after {took_s:.2f} s", flush=True)
        found, took_s = response_to(node, create_topics(b"\xff" * NAME_BYTES, 1))
        ended = ends(cluster)
        state = "ended" if ended else "runs"
        print(f"a name of {NAME_BYTES} bytes 0xff: {found} after {took_s:.2f} s; the broker {state}")
    return int(slowest_s > SLOW_S or ended)


if __name__ == "__main__":
    sys.exit(main())
