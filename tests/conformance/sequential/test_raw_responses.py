"""Responses to a `RawRequest`: they must have elements, and the elements must have the requested names.

Goal: a response about another topic, group or resource is detected. Method: blank kio responses, with one element in
each array, of which each test changes a part.
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
DELETE_NONE = RawRequest(
    ApiKey.DELETE_TOPICS,
    {"topics": ({"name": "trial-none", "topic_id": None},)},
    (),
    distinct=True,
    names=("trial-none",),
)
JUDGED = judges("errors", "names", "has_elements", of=RawRequest)


def response_to_delete(*topics):
    """Return the normalised response to `DELETE_NONE` with these topics, each a pair of name and id."""
    symbols = ScriptSymbols("run")
    symbols.saw_topic_id("trial-none", TOPIC_ID)
    response = blank(DeleteTopicsResponse)
    elements = tuple(replace(response.responses[0], name=name, topic_id=topic_id) for name, topic_id in topics)
    return raw_response(DELETE_NONE, replace(response, responses=elements), symbols)


@pytest.mark.parametrize(
    ("real_name", "topic_id", "names"),
    [
        ("trial-none-run", None, ("trial-none",)),
        (None, TOPIC_ID, ("trial-none",)),
        (None, uuid.UUID(int=78), ()),
        ("trial-other-run", TOPIC_ID, ()),
        ("trial-none", None, ()),
    ],
)
def test_an_element_is_identified_by_its_name_or_without_a_name_by_its_id(real_name, topic_id, names):
    assert response_to_delete((real_name, topic_id)) == {"errors": (), "names": names, "has_elements": True}


def test_a_response_without_the_requested_name_is_a_fatal_deviation():
    script, response = Script((DELETE_NONE,)), response_to_delete()
    assert judge(script, [response], JUDGED).verdict is Verdict.VIOLATION
    (found,) = deviations(script, [response], JUDGED)
    assert (found.rank, str(found)) == (Rank.FATAL, "step 1, RawRequest: names was (), not ('trial-none',)")


def test_a_response_that_has_no_names_or_arrays_is_not_compared_by_them():
    assert raw_response(DELETE_NONE, blank(HeartbeatResponse), ScriptSymbols("run")) == {"errors": ()}


@pytest.mark.parametrize(("brokers", "verdict"), [(1, Verdict.OK), (0, Verdict.VIOLATION)])
def test_a_request_may_require_elements_in_the_response(brokers, verdict):
    step = RawRequest(ApiKey.DESCRIBE_CLUSTER, {}, (), distinct=True, has_elements=True)
    response = blank(DescribeClusterResponse)
    response = replace(response, brokers=response.brokers[:brokers])
    assert judge(Script((step,)), [raw_response(step, response, ScriptSymbols("run"))], JUDGED).verdict is verdict
