"""Metadata records compared with Apache Kafka's schemas: the JSON files in its `kafka-metadata` jar."""

import dataclasses
import json
import re
import types
import zipfile
from pathlib import Path
from typing import Any, Union, get_args, get_origin
from uuid import UUID

import pytest

from fixtures.targets.jars import JarLock
from fixtures.targets.target import NotInstalledError
from reference_broker.protocol.metadata_records import RECORD_TYPES
from tests.reference_broker.conftest import KAFKA_VERSION

PYTHON_TYPES = {"string": str, "bool": bool, "uuid": UUID}
DEFAULTS = {"null": None, "true": True, "false": False}


@pytest.fixture(scope="module")
def schemas() -> dict[int, Any]:
    """Return Kafka's schemas by API key."""
    try:
        class_path = JarLock.load(KAFKA_VERSION).class_path()
    except NotInstalledError as error:
        pytest.skip(str(error))
    [jar] = [path for path in class_path.split(":") if Path(path).name == f"kafka-metadata-{KAFKA_VERSION}.jar"]
    with zipfile.ZipFile(jar) as archive:
        texts = [
            archive.read(name).decode() for name in archive.namelist() if re.match(r"common/metadata/.*\.json", name)
        ]
    found = [json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)) for text in texts]
    return {schema["apiKey"]: schema for schema in found}


record_types = pytest.mark.parametrize(
    "record_type", RECORD_TYPES.values(), ids=lambda record_type: record_type.__name__
)


@record_types
def test_name_and_newest_version(schemas, record_type):
    schema = schemas[record_type.__api_key__]
    assert schema["name"] == record_type.__name__
    assert int(schema["validVersions"].split("-")[-1]) == record_type.__version__
    assert schema["flexibleVersions"] == "0+"


@record_types
def test_every_field(schemas, record_type):
    check_fields(record_type, schemas[record_type.__api_key__]["fields"])


def check_fields(entity: Any, described: list[Any]) -> None:
    """Assert that order, type, tag, first version, nullability and default of the fields are equal."""
    fields = dataclasses.fields(entity)
    assert [field.name for field in fields] == [snake_case(schema["name"]) for schema in described]
    for field, schema in zip(fields, described, strict=True):
        assert field.metadata.get("tag") == schema.get("tag"), field.name
        if "tag" not in schema:
            assert field.metadata.get("since", 0) == int(schema["versions"].rstrip("+")), field.name
        assert is_nullable(field.type) == ("nullableVersions" in schema), field.name
        check_type(field, schema)
        if "default" in schema or "tag" in schema:  # other defaults matter only for code that creates records
            assert field.default == default_of(schema), field.name


def check_type(field: Any, schema: Any) -> None:
    kind, is_array = schema["type"].removeprefix("[]"), schema["type"].startswith("[]")
    inner = without_null(field.type)
    assert (get_origin(inner) is tuple) == is_array, field.name
    element = without_null(get_args(inner)[0]) if is_array else inner
    if "fields" in schema:
        check_fields(element, schema["fields"])
    else:
        assert element is PYTHON_TYPES.get(kind, int), field.name
        assert field.metadata["kafka_type"] == kind, field.name


def default_of(schema: Any) -> Any:
    if "default" not in schema:
        return () if schema["type"].startswith("[]") else 0
    text = schema["default"]
    return DEFAULTS[text] if text in DEFAULTS else int(text)


def is_nullable(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def without_null(hint: Any) -> Any:
    return next(part for part in get_args(hint) if part is not type(None)) if is_nullable(hint) else hint


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
