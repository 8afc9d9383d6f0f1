"""Error messages that quote long strings of a request: they are cut to fit into a response of any version."""

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from reference_broker.protocol.encoding import encoder
from tests.reference_broker.requests import fill


@pytest.mark.parametrize("letter", ["a", "\u20ac", "\U0001f600"])
@pytest.mark.parametrize(
    ("api_key", "version", "array"), [(19, 2, "topics"), (33, 0, "responses"), (37, 0, "results"), (19, 7, "topics")]
)
def test_message_that_is_too_long_for_a_legacy_string_is_cut(letter, api_key, version, array):
    """Regression: a topic name of 32,767 bytes in CreateTopics v2 raised struct.error and closed the connection."""
    response_type = load_response_schema(api_key, version)
    message = "invalid: " + letter * 32767
    data = encoder(response_type)(
        fill(response_type, {array: [{"error_code": ErrorCode.invalid_request, "error_message": message}]})
    )
    entity, size = entity_reader(response_type)(data, 0)
    assert size == len(data)
    (element,) = getattr(entity, array)
    assert message.startswith(element.error_message)
    assert len(element.error_message.encode()) > 32760
    assert (element.error_message == message) is response_type.__flexible__
