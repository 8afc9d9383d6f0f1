"""A step in every version of its API, and the capabilities that requirements about versions need."""

from dataclasses import replace

import pytest

from conformance.registry import select
from conformance.sequential.steps import Fetch, Metadata, OffsetFetch, Produce
from conformance.sequential.strategies import every_version
from fixtures.clients.messages import ApiKey, known_versions
from fixtures.targets.target import Capability


@pytest.mark.parametrize(
    ("step", "key"),
    [
        (OffsetFetch(group="trial-other"), ApiKey.OFFSET_FETCH),
        (Metadata(("trial-none",)), ApiKey.METADATA),
        (Fetch(offset=3), ApiKey.FETCH),
        (Produce(()), ApiKey.PRODUCE),
    ],
)
def test_steps_differ_only_in_version_and_have_each_version_once(step, key):
    steps = every_version(step)
    assert [each.version for each in steps] == list(known_versions(key))
    assert {replace(each, version=None) for each in steps} == {step}


@pytest.mark.parametrize(
    ("api", "needs"),
    [
        ("produce", {Capability.TOPIC_ADMIN}),
        ("alter-configs", {Capability.TOPIC_ADMIN}),
        ("alter-user-scram-credentials", set()),
        ("describe-user-scram-credentials", set()),
    ],
)
def test_only_requests_that_name_a_topic_need_one(api, needs):
    (requirement,) = select([f"versions/{api}"])
    assert requirement.needs == needs
