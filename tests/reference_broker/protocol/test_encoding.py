"""Compiled encoders compared with kio's writers."""

import io
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.create_topics.v7.response import CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.response import FetchResponse
from kio.serial import entity_writer
from kio.static.primitive import Records, TZAware, i32Timedelta, i64Timedelta

from reference_broker.core.apis import BROKER_APIS, CONTROLLER_APIS
from reference_broker.protocol.encoding import SharedArray, encoder, varint

APIS = {**BROKER_APIS, **CONTROLLER_APIS}
MESSAGES = [
    load(api.key, version)
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
    for load in (load_request_schema, load_response_schema)
]
durations = st.integers(-1, 2**31 - 1).map(lambda number: timedelta(milliseconds=number))
st.register_type_strategy(Records, st.binary(max_size=200))
st.register_type_strategy(i32Timedelta, durations)
st.register_type_strategy(i64Timedelta, durations)
st.register_type_strategy(TZAware, st.datetimes(timezones=st.just(UTC), min_value=datetime(1970, 1, 2)))  # noqa: DTZ001


def by_kio(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def with_shared_arrays(value: Any) -> Any:
    """Return a value in which each array, also of nested entities, is a `SharedArray`."""
    if isinstance(value, tuple):
        return SharedArray(with_shared_arrays(element) for element in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: with_shared_arrays(getattr(value, field.name)) for field in fields(value)})
    return value


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(MESSAGES).flatmap(st.from_type))
def test_any_message_has_the_bytes_that_kio_writes(entity: Any) -> None:
    expected = by_kio(entity)
    assert encoder(type(entity))(entity) == expected
    shared = with_shared_arrays(entity)
    assert [encoder(type(entity))(shared) for _ in range(2)] == [expected] * 2


def test_a_shared_array_is_encoded_once() -> None:
    config = CreatableTopicConfigs(name="a", value="1", read_only=False, config_source=5, is_sensitive=False)
    shared = SharedArray([config] * 30)
    encoded = encoder(CreateTopicsResponse)(topics_with(shared))
    assert encoded == by_kio(topics_with((config,) * 30))
    assert shared.encoded is not None
    assert encoded.count(shared.encoded) == 5


def topics_with(configs: tuple[CreatableTopicConfigs, ...]) -> CreateTopicsResponse:
    topic = CreatableTopicResult(
        name="t", topic_id=None, error_code=ErrorCode.none, error_message=None, configs=configs
    )
    return CreateTopicsResponse(throttle_time=timedelta(0), topics=(topic,) * 5)


@pytest.mark.parametrize("message_type", MESSAGES, ids=str)
def test_encoder_of_every_version_is_created_once(message_type: Any) -> None:
    assert encoder(message_type) is encoder(message_type)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**21, 2**31])
def test_varints(value: int) -> None:
    written = varint(value)
    assert sum((byte & 0x7F) << 7 * index for index, byte in enumerate(written)) == value
    assert [byte >= 0x80 for byte in written] == [True] * (len(written) - 1) + [False]


def test_value_of_a_wrong_type_is_rejected() -> None:
    message: Any = FetchResponse
    with pytest.raises(AttributeError):
        encoder(FetchResponse)(message(throttle_time=timedelta(0), error_code=3, session_id=0, responses=()))
