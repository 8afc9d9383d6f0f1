"""Requests at the limits of a broker: each placeholder is replaced by the value of a described setting."""

import pytest

from conformance.sequential.setting_values import names_of_settings, with_settings
from conformance.sequential.steps import ApiKey, BrokerSetting, RawRequest
from fixtures.clients.raw import UnsupportedApi


def value(setting, described):
    step = RawRequest(ApiKey.JOIN_GROUP, {"protocols": ({"name": "range", "value": setting},), "other": 1}, ("NONE",))
    fields = with_settings(step, described).fields
    assert (fields["other"], fields["protocols"][0]["name"]) == (1, "range")
    return fields["protocols"][0]["value"]


@pytest.mark.parametrize(
    ("described", "number"),
    [
        ({"a.max": "30"}, 31),
        ({"a.max": "-1"}, 0),
        ({"a.max": None}, 7),
        ({"a.max": "many"}, 7),
        ({"b.max": "30"}, 7),
        ({}, 7),
    ],
)
def test_a_placeholder_is_replaced_by_the_described_setting_or_else_by_its_default(described, number):
    assert value(BrokerSetting("a.max", 7, plus=1), described) == number


def test_a_limit_that_no_request_can_exceed_is_not_judged():
    assert value(BrokerSetting("a.max", 7, at_most=30), {"a.max": "30"}) == 30
    with pytest.raises(UnsupportedApi, match=r"^a[.]max is 30, and a request has at most 30$"):
        value(BrokerSetting("a.max", 7, plus=1, at_most=30), {"a.max": "30"})


def test_a_text_that_a_record_may_not_contain_is_not_judged():
    """Besides the text, the largest record must have room for 1000 other bytes."""
    setting = BrokerSetting("a.max", 7, stored_within="record.max")
    assert value(setting, {"a.max": "30", "record.max": "1030"}) == 30
    assert value(setting, {"a.max": "30", "record.max": None}) == 30
    with pytest.raises(UnsupportedApi, match=r"^a[.]max is 30, but record[.]max is 1029$"):
        value(setting, {"a.max": "30", "record.max": "1029"})


def test_settings_are_found_at_every_depth():
    fields = {
        "a": BrokerSetting("a.max", 1, stored_within="r.max"),
        "b": ({"c": (BrokerSetting("c.max", 1), 2)}, "text"),
    }
    assert [*names_of_settings(fields)] == ["a.max", "r.max", "c.max"]
