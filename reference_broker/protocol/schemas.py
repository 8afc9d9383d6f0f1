"""kio's modules of requests and responses, by API key and version, imported at first use.

A module takes 1 to 4 ms to import, as dataclasses are made when their module is. A start needs few of the messages that
a node can send: naming them here rather than importing them leaves out a seventh of the CPU time until it is ready.
kio gives its fields number types of their own, which are plain numbers at run time; its modules are `Any` here.
"""

from functools import cache
from typing import Any

from kio.index import load_payload_module
from kio.static.constants import EntityType


@cache
def request_schema(api_key: int, version: int) -> Any:
    """The module that has the request's class and those of its parts."""
    return load_payload_module(api_key, version, EntityType.request)


@cache
def response_schema(api_key: int, version: int) -> Any:
    """The module that has the response's class and those of its parts."""
    return load_payload_module(api_key, version, EntityType.response)
