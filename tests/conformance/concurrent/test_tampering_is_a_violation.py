"""Concurrent requirements of one node: a correct broker satisfies them, and a tampering proxy violates each of them.

Method: the reference broker behind a proxy. A tampering changes requests or responses to violate one requirement. The
expected anomaly is checked, too, so that no tampering is detected by accident. Requirements of three nodes are in
`test_fault_requirements.py` and `test_replication_requirements.py`.
"""

import itertools
import json
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from conformance.check_context import CheckContext
from conformance.concurrent.requirements import REQUIREMENTS
from conformance.trial.document import trial_of
from conformance.trial.trial import Trial
from fixtures.clients.record_batch import decode_batches, encode_batch
from fixtures.targets.target import Capability
from linearizability.judgement import Verdict
from tests.conformance.tampering_proxy import TamperingProxy, altered_responses, api

pytestmark = pytest.mark.sampled(2)

BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}
ON_ONE_NODE = [requirement for requirement in REQUIREMENTS if requirement.nodes_min == 1]


class CuttableProxy(TamperingProxy):
    """A tampering proxy on which scripts may cut the link of the clients. The cut has no effect."""

    def __init__(self, *args):
        super().__init__(*args)
        self.capabilities |= {Capability.CLIENT_LINK_FAULTS}
        self.links = SimpleNamespace(cut=lambda *_: nullcontext())


def check(requirement, target, run_dir, *, scripts_max=10, shrink_seconds=0.5):
    reported = []
    context = CheckContext(
        requirement_id=requirement.id,
        targets=[target],
        seed=7,
        scripts_max=scripts_max,
        shrink_seconds=shrink_seconds,
        history_dirs={target.name: run_dir / "history"},
        script_ran=lambda *progress: reported.append(progress),
    )
    finding = requirement.check(context)[target.name]
    assert len(reported) == finding.scripts
    return finding


def fetched(change):
    """Return a tampering that changes the batches of every Fetch response."""

    def partition(_request, part):
        batches = list(decode_batches(part.records or b""))
        return replace(part, records=b"".join(encode_batch(batch) for batch in change(batches)))

    return altered_responses("Fetch", partition)


def with_contents(batches, contents):
    """Return the batches with the contents of their records replaced by the given contents, in order."""
    source = iter(contents)

    def record(kept):
        other = next(source)
        return replace(kept, value=other.value, key=other.key, headers=other.headers, timestamp_ms=other.timestamp_ms)

    return [replace(batch, records=tuple(record(kept) for kept in batch.records)) for batch in batches]


def reversed_log(batches):
    """Return the batches with the contents of all records in reverse order, at unchanged offsets."""
    return with_contents(batches, [record for batch in batches for record in batch.records][::-1])


def alternating_log():
    """Return a tampering that reverses the log in every second response."""
    responses = itertools.count()
    return fetched(lambda batches: reversed_log(batches) if next(responses) % 2 else batches)


def drops_a_record(batches):
    """Drop the first record of each batch, but keep the last offset delta, so that the log end does not change."""
    return [replace(batch, records=batch.records[1:], last_offset_delta=batch.last_offset_delta) for batch in batches]


def writes_twice(request, forward):
    """Forward each Produce request twice, with its batches stripped of producer id, epoch and sequence."""
    if api(request) != "Produce":
        return forward(request)

    def anonymous(data):
        (batch,) = decode_batches(bytes(data.records))
        return replace(data, records=encode_batch(replace(batch, producer_id=-1, producer_epoch=-1, base_sequence=-1)))

    topics = tuple(
        replace(topic, partition_data=tuple(anonymous(data) for data in topic.partition_data))
        for topic in request.topic_data
    )
    forward(replace(request, topic_data=topics))
    return forward(replace(request, topic_data=topics))


TAMPERINGS = {
    "ordering/read-order-is-append-order": (alternating_log, "divergent-offset"),
    "ordering/later-record-gets-higher-offset": (lambda: fetched(reversed_log), "realtime-order"),
    "ordering/idempotent-producer-keeps-send-order": (lambda: fetched(reversed_log), "producer-order"),
    "produce/acknowledged-records-are-read-back": (lambda: fetched(drops_a_record), "lost-write"),
    "produce/acknowledged-offsets-are-where-records-are-read": (
        lambda: altered_responses("Produce", lambda _, part: replace(part, base_offset=part.base_offset + 1)),
        "offset-mismatch",
    ),
    "idempotence/no-duplicates-on-retry": (lambda: writes_twice, "duplicate"),
    "fetch/never-above-high-watermark": (
        lambda: altered_responses(
            "Fetch", lambda _, part: replace(part, high_watermark=max(0, part.high_watermark - 1))
        ),
        None,
    ),
}
"""For each requirement: the function that makes a tampering, and the expected anomaly; None for a history check."""


@pytest.mark.parametrize("requirement", ON_ONE_NODE, ids=lambda requirement: requirement.id)
def test_a_tampering_is_a_violation(requirement, broker, tmp_path):
    make_tampering, anomaly = TAMPERINGS[requirement.id]
    with CuttableProxy(broker, make_tampering()) as proxy:
        finding = check(requirement, proxy, tmp_path)
    assert finding.verdict is Verdict.VIOLATION
    assert finding.reason
    violations = {each.name for each in finding.judgement.anomalies if each.verdict is Verdict.VIOLATION}
    if anomaly is None:
        assert "was read before another Fetch returned the high watermark" in finding.reason
    else:
        assert anomaly in violations, finding.reason
    assert not finding.flaky
    assert "run_program(trial" in finding.program
    assert trial_of(json.loads(finding.trial), Trial).requirement == requirement.id


@pytest.mark.parametrize("requirement", ON_ONE_NODE, ids=lambda requirement: requirement.id)
def test_a_correct_broker_has_no_violation(requirement, broker, tmp_path):
    with CuttableProxy(broker, lambda request, forward: forward(request)) as proxy:
        finding = check(requirement, proxy, tmp_path)
    assert finding.verdict is Verdict.OK, f"{finding.reason}\n{finding.program}"
    assert finding.scripts == 2


def test_records_above_an_end_offset_that_is_too_low_are_not_lost(broker, tmp_path):
    too_low = altered_responses("ListOffsets", lambda _, part: replace(part, offset=max(0, part.offset // 2)))
    with CuttableProxy(broker, too_low) as proxy:
        finding = check(BY_ID["produce/acknowledged-records-are-read-back"], proxy, tmp_path)
    violations = {each.name for each in finding.judgement.anomalies if each.verdict is Verdict.VIOLATION}
    assert violations == {"stale-end-offset", "read-above-watermark"}, finding.reason


def test_every_requirement_of_one_node_has_a_tampering():
    assert TAMPERINGS.keys() == {requirement.id for requirement in ON_ONE_NODE}


def test_a_violation_that_is_not_repeated_is_flaky(broker, tmp_path):
    responses = itertools.count()

    def at_first(batches):
        return drops_a_record(batches) if next(responses) < 3 else batches

    with CuttableProxy(broker, fetched(at_first)) as proxy:
        finding = check(BY_ID["produce/acknowledged-records-are-read-back"], proxy, tmp_path)
    assert finding.verdict is Verdict.VIOLATION
    assert finding.flaky
    assert finding.program


def test_a_broker_that_creates_no_topic_leaves_the_verdict_unknown(broker, tmp_path):
    from kio.schema.errors import ErrorCode

    rejects = altered_responses("CreateTopics", lambda _, part: replace(part, error_code=ErrorCode.policy_violation))
    with CuttableProxy(broker, rejects) as proxy:
        finding = check(BY_ID["ordering/read-order-is-append-order"], proxy, tmp_path)
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.reason == "CreateTopics failed with POLICY_VIOLATION"
