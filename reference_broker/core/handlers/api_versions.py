"""ApiVersions (18), versions 0-4: APIs and versions of this listener.

Follows: org.apache.kafka.server.DefaultApiVersionManager (KIP-35, KIP-511, KIP-584).

- The response lists every API with its lowest and highest version (KIP-35).
- From version 3 a client sends the name and version of its software. If one of them does not match `_SOFTWARE`, the
  response is INVALID_REQUEST(42) with an empty list (KIP-511).
- Unsupported version: a version 0 response with UNSUPPORTED_VERSION(35) that lists only ApiVersions (KIP-511).
- The only supported feature is `metadata.version` (KIP-584).

Gaps: no other feature is supported, so `transaction.version`, `group.version` and others are not returned.
"""

import re
from collections.abc import Mapping
from typing import Any

from reference_broker.core.api import Handler, ServingNode
from reference_broker.core.clock import Now
from reference_broker.core.metadata.bootstrap import METADATA_VERSION, METADATA_VERSION_MAX, METADATA_VERSION_MIN
from reference_broker.core.request import Request
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.messages import Replies

API_VERSIONS = 18
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handler(ranges: Mapping[int, tuple[int, int]]) -> Handler:
    """Return a handler that responds with these version ranges by API key."""

    def handle(node: ServingNode, request: Request, now: Now) -> Any:
        new = request.replies
        if request.api_version >= 3:
            software = (request.body.client_software_name, request.body.client_software_version)
            if not all(_SOFTWARE.fullmatch(text) for text in software):
                return new.ApiVersionsResponse(error_code=ErrorCode.invalid_request, api_keys=())
        return new.ApiVersionsResponse(
            error_code=ErrorCode.none,
            api_keys=_api_keys(new, ranges),
            supported_features=(
                new.SupportedFeatureKey(
                    name=METADATA_VERSION, min_version=METADATA_VERSION_MIN, max_version=METADATA_VERSION_MAX
                ),
            ),
            finalized_features_epoch=node.metadata.offset,
            finalized_features=tuple(
                new.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in sorted(node.metadata.image.features.items())
            ),
        )

    return handle


def unsupported_version(new: Replies, own_range: tuple[int, int]) -> Any:
    """Return the version 0 response to an unsupported version.

    :param own_range: supported versions of ApiVersions.
    """
    return new.ApiVersionsResponse(
        error_code=ErrorCode.unsupported_version, api_keys=_api_keys(new, {API_VERSIONS: own_range})
    )


def _api_keys(new: Replies, ranges: Mapping[int, tuple[int, int]]) -> tuple[Any, ...]:
    return tuple(
        new.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for key, (lowest, highest) in ranges.items()
    )
