"""kio's modules of requests and responses, by API key and version, imported at first use.

The import of a module takes 1 to 4 ms, because it creates dataclasses. A node needs few of these modules at its start,
so lazy imports save a seventh of the CPU time until the node is ready. The modules have the type `Any`, because kio
declares number types that do not accept `int`, although the values are plain integers at run time.
"""

from functools import cache
from typing import Any

from kio.index import load_payload_module
from kio.static.constants import EntityType


@cache
def request_schema(api_key: int, version: int) -> Any:
    """Return the module with the classes of a request."""
    return load_payload_module(api_key, version, EntityType.request)


@cache
def response_schema(api_key: int, version: int) -> Any:
    """Return the module with the classes of a response."""
    return load_payload_module(api_key, version, EntityType.response)
