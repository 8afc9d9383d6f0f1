"""ApiVersions (18), versions 0-4: what this listener speaks.

- Every API with its lowest and highest version (KIP-35).
- From version 3 a client names its software; a name or version that could not stand in a metric is INVALID_REQUEST(42)
  with an empty list (KIP-511).
- A version above the highest: a version 0 answer with UNSUPPORTED_VERSION(35) that lists ApiVersions alone (KIP-511).
- Features (KIP-584): `metadata.version` is the one there is.

Gaps: no other feature is supported, so `transaction.version`, `group.version` and the like are not told.
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
    """The handler that tells these versions by API key."""

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
    """The version 0 answer to a version that is not served."""
    return new.ApiVersionsResponse(
        error_code=ErrorCode.unsupported_version, api_keys=_api_keys(new, {API_VERSIONS: own_range})
    )


def _api_keys(new: Replies, ranges: Mapping[int, tuple[int, int]]) -> tuple[Any, ...]:
    return tuple(
        new.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
        for key, (lowest, highest) in ranges.items()
    )
