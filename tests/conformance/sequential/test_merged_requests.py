"""Requests of several steps in one message, and the part of the response for each step."""

from dataclasses import replace
from typing import Any

import pytest
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.errors import ErrorCode

from conformance.sequential import requests
from conformance.sequential.merged_requests import MergedRequests, responses_to_each
from conformance.sequential.steps import DescribeConfigs, Fetch, OffsetFetch
from conformance.sequential.symbols import ScriptSymbols
from fixtures.clients.messages import request_schema
from tests.conformance.tampering_proxy import blank

SYMBOLS = ScriptSymbols("run")
GROUPS = ("trial-a", "trial-b")


def merged(steps: Any, version: int, nodes: Any = None) -> Any:
    whole = MergedRequests()
    for step, node in zip(steps, nodes or [1] * len(steps), strict=True):
        message = requests.request(step, request_schema(requests.api_key(step), version), SYMBOLS)
        whole.add(step, node, message)
    return whole.requests


def test_partitions_of_one_topic_are_in_one_element():
    (request,) = merged([Fetch(partition=index) for index in (2, 0, 1)], version=12)
    (topic,) = request.message.topics
    assert [each.partition for each in topic.partitions] == [2, 0, 1]


def test_topics_and_partitions_of_several_groups_are_in_one_request():
    steps = [
        OffsetFetch(group, topic, partition)
        for group in GROUPS
        for topic in ("trial", "trial-two")
        for partition in (0, 1)
    ]
    (request,) = merged(steps, version=8)
    assert [
        (group.group_id, topic.name, topic.partition_indexes)
        for group in request.message.groups
        for topic in group.topics
    ] == [(f"{group}-run", f"{topic}-run", (0, 1)) for group in GROUPS for topic in ("trial", "trial-two")]


def test_a_version_with_one_group_needs_a_request_for_each_group():
    steps = [OffsetFetch(group, partition=partition) for partition in (0, 1) for group in GROUPS]
    found = merged(steps, version=7)
    assert [request.message.group_id for request in found] == ["trial-a-run", "trial-b-run"]
    assert [request.steps for request in found] == [steps[::2], steps[1::2]]


def test_each_broker_has_its_own_request():
    steps = [Fetch(partition=index) for index in range(4)]
    found = merged(steps, version=12, nodes=[1, 2, 1, None])
    assert [(request.node_id, request.steps) for request in found] == [
        (1, [steps[0], steps[2]]),
        (2, [steps[1]]),
        (None, [steps[3]]),
    ]


@pytest.fixture
def described():
    """Return the response to DescribeConfigs of two topics, the second one with an error."""
    response = blank(DescribeConfigsResponse)
    (result,) = response.results
    return replace(
        response,
        results=(
            replace(result, resource_name="trial-run", error_code=ErrorCode.none, configs=()),
            replace(result, resource_name="trial-two-run", error_code=ErrorCode.invalid_config, configs=()),
        ),
    )


def test_each_step_has_its_own_part_whatever_the_order(described):
    steps = [DescribeConfigs((), "trial-two"), DescribeConfigs((), "trial")]
    found = responses_to_each(steps, described, SYMBOLS)
    assert [response["error"] for response in found] == ["INVALID_CONFIG", "NONE"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_missing_or_additional_part_is_malformed(described, count):
    changed = replace(described, results=(described.results * 2)[:count])
    for response in responses_to_each([DescribeConfigs((), "trial-two"), DescribeConfigs(())], changed, SYMBOLS):
        assert response == {
            "malformed": f"the response is about {count} partitions, topics or groups; 2 were requested"
        }


def test_a_part_for_another_topic_is_malformed(described):
    other = replace(described, results=(described.results[0], replace(described.results[1], resource_name="other")))
    first, second = responses_to_each([DescribeConfigs(()), DescribeConfigs((), "trial-two")], other, SYMBOLS)
    assert first["error"] == "NONE"
    assert "malformed" in second
