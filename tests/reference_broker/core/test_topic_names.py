"""Error messages about topic names fit into a response of any version."""

import pytest

from reference_broker.core.topic_names import illegal_topic_name


@pytest.mark.parametrize("letter", ["a", "\u20ac", "\U0001f600"])
def test_a_message_about_a_long_name_fits_into_a_legacy_string(letter):
    """A name of 32,767 bytes in its message was too long for CreateTopics v2, and ended the connection."""
    message = illegal_topic_name(letter * (32767 // len(letter.encode())))
    assert message is not None
    assert message.startswith(f"Topic name is invalid: the length of '{letter}")
    assert len(message.encode()) <= 32767
