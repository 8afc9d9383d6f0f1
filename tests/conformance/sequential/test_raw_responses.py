"""Responses to a `RawRequest`: they must have elements, and the elements must have the requested names.

Goal: a response about another topic, group or resource is detected. Method: kio responses with one element in each
array.
"""

import uuid
from dataclasses import replace

import pytest
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.describe_cluster.v1.response import DescribeClusterResponse
from kio.schema.heartbeat.v4.response import HeartbeatResponse

from conformance.sequential.check import judges
from conformance.sequential.judging import Rank, deviations, judge
from conformance.sequential.raw_responses import raw_response
from conformance.sequential.steps import ApiKey, RawRequest, Script
from conformance.sequential.symbols import ScriptSymbols
from linearizability.judgement import Verdict
from tests.conformance.tampering_proxy import blank

TOPIC_ID = uuid.UUID(int=77)
STEP = RawRequest(
    ApiKey.DELETE_TOPICS,
    {"topics": ({"name": "trial-none", "topic_id": None},)},
    (),
    distinct=True,
    names=("trial-none",),
)
JUDGED = judges("errors", "names", "has_elements", of=RawRequest)


def response_to(step, *topics):
    symbols = ScriptSymbols("run")
    symbols.saw_topic_id("trial-none", TOPIC_ID)
    response = blank(DeleteTopicsResponse)
    elements = tuple(replace(response.responses[0], name=name, topic_id=topic_id) for name, topic_id in topics)
    return raw_response(step, replace(response, responses=elements), symbols)


@pytest.mark.parametrize(
    ("name", "topic_id", "names"),
    [
        ("trial-none-run", None, ("trial-none",)),
        (None, TOPIC_ID, ("trial-none",)),
        (None, uuid.UUID(int=78), ()),
        ("trial-other-run", TOPIC_ID, ()),
        ("trial-none", None, ()),
    ],
)
def test_an_element_is_identified_by_its_name_or_else_by_its_id(name, topic_id, names):
    assert response_to(STEP, (name, topic_id)) == {"errors": (), "names": names, "has_elements": True}


def test_a_response_without_elements_is_a_fatal_deviation():
    script, response = Script((STEP,)), response_to(STEP)
    assert judge(script, [response], JUDGED).verdict is Verdict.VIOLATION
    (found,) = deviations(script, [response], JUDGED)
    assert (found.rank, str(found)) == (Rank.FATAL, "step 1, RawRequest: names was (), not ('trial-none',)")


def test_versions_without_names_or_lists_have_no_such_fields():
    assert raw_response(STEP, blank(HeartbeatResponse), ScriptSymbols("run")) == {"errors": ()}


@pytest.mark.parametrize(("brokers", "verdict"), [(1, Verdict.OK), (0, Verdict.VIOLATION)])
def test_elements_may_be_required(brokers, verdict):
    step = RawRequest(ApiKey.DESCRIBE_CLUSTER, {}, (), distinct=True, has_elements=True)
    response = blank(DescribeClusterResponse)
    response = replace(response, brokers=response.brokers[:brokers])
    assert judge(Script((step,)), [raw_response(step, response, ScriptSymbols("run"))], JUDGED).verdict is verdict
