"""Clients receive only the addresses of tampering proxies, also after a request that a proxy cannot decode."""

import struct

from fixtures.clients.messages import ApiKey
from fixtures.clients.raw import RawClient
from tests.conformance.tampering_proxy import TamperingProxy, decoded


def test_a_request_with_bytes_left_over_is_answered_with_the_addresses_of_the_proxies(cluster):
    """librdkafka sends such Metadata requests."""
    version = 12
    header = struct.pack(">hhih", ApiKey.METADATA, version, 1, -1) + b"\0"
    body = b"\0\0\0\0"  # all topics, no creation, no permitted operations, no tagged fields
    with TamperingProxy(cluster, lambda request, forward: forward(request)) as proxy:
        node = proxy.nodes[0]
        with RawClient(node.host, node.port) as client:
            frame = header + body + b"\0"
            client.send_bytes(struct.pack(">i", len(frame)) + frame)
            _, response = decoded(ApiKey.METADATA, version, client.receive_frame())
    assert {(each.host, each.port) for each in response.brokers} == {(each.host, each.port) for each in proxy.nodes}
