"""Fixture: the results of one run with everything that a report can show."""

from typing import Any

import pytest

from linearizability.finding import Difference, Finding
from linearizability.judgement import Anomaly, Evidence, Judgement, Verdict
from reports.results import (
    RequirementInfo,
    Results,
    Source,
    TargetInfo,
)

KIP_98 = Source("KIP-98: Exactly Once Delivery", "https://cwiki.apache.org/confluence/x/Cfa-Aw")
GUIDE = Source("Kafka protocol guide, Error Codes")

PROGRAM = '''"""produce/offsets-are-dense, seed 7."""

from conformance.sequential.program import play

play(
    topic={"partitions": 1},
    steps=[
        Produce(partition=0, records=3),  # acknowledged at 0
        Produce(partition=0, records=1),
    ],
)
'''

LOST = Anomaly(
    "lost-write",
    Verdict.VIOLATION,
    12,
    tuple(
        Evidence((4, 17 + n), "orders", 0, 40 + n, 1000 + n, f"acknowledged at {40 + n} by op 4, op {17 + n} passed it")
        for n in range(10)
    ),
)
UNSEEN = Anomaly("unseen", Verdict.UNKNOWN, 1, (Evidence((9,), "orders", 1, None, 5, "no read covers it"),))
PERMITTED = Anomaly("duplicate", Verdict.PERMITTED, 1, ())


def found(requirement: str, target: str, verdict: Verdict, reason: str = "", **fields: Any) -> Finding:
    return Finding(verdict, reason, requirement=requirement, target=target, **fields)


def sample_results() -> Results:
    requirements = (
        RequirementInfo("produce/offsets-are-dense", "MUST", "Each record takes exactly one offset.", (KIP_98,)),
        RequirementInfo(
            "produce/acks-all-survives", "MUST", "Every record acknowledged with acks=all is read.", (KIP_98, GUIDE)
        ),
        RequirementInfo(
            "produce/invalid-records-are-named", "SHOULD", "Invalid records are reported <by index>.", (GUIDE,)
        ),
        RequirementInfo("fetch/size-limits-are-soft", "MUST", "The first batch is returned whole.", (GUIDE,)),
        RequirementInfo("fetch/isr-heals", "MUST", "A follower rejoins the ISR.", (GUIDE,)),
        RequirementInfo("metadata/last", "MAY", "", ()),
    )
    targets = (
        TargetInfo("reference", 1, {"python": "3.11.7"}, 0.42),
        TargetInfo("apache-kafka:4.3.1", 3, {"broker": "4.3.1", "java": "17.0.15"}, 9.31),
    )
    reference, kafka = (target.name for target in targets)
    violation = found(
        "produce/acks-all-survives",
        reference,
        Verdict.VIOLATION,
        reason="12 acknowledged records were lost",
        scripts=15,
        seconds=2.5,
        expected="every acknowledged record is read",
        actual="offsets 40 to 51 of orders-0 are gone",
        program=PROGRAM,
        judgement=Judgement(300, 2400, (LOST, UNSEEN, PERMITTED)),
        differences=(Difference(kafka, "semantic", 2, "base_offset=3", "base_offset=4"),),
        reproduce="kafkatrial run --target reference --nodes 1 --seed 42 produce/acks-all-survives",
        failure_dir="RUN/failures/1",
    )
    mirrored = (Difference(reference, "semantic", 2, "base_offset=4", "base_offset=3"),)
    return Results(
        kafkatrial="0.1.0",
        started_at="2026-01-02T03:04:05+00:00",
        seed=42,
        profile="ci",
        targets=targets,
        requirements=requirements,
        outcomes=(
            found("produce/offsets-are-dense", reference, Verdict.OK, scripts=15, seconds=0.5),
            found("produce/offsets-are-dense", kafka, Verdict.OK, expected_violation=True, reason="a known bug"),
            violation,
            found("produce/acks-all-survives", kafka, Verdict.OK, scripts=15, seconds=3.0, differences=mirrored),
            found(
                "produce/invalid-records-are-named",
                reference,
                Verdict.VIOLATION,
                expected_violation=True,
                reason="not implemented yet",
            ),
            found(
                "produce/invalid-records-are-named",
                kafka,
                Verdict.VIOLATION,
                flaky=True,
                reason="seen once",
                actual="\x00",
            ),
            found("fetch/size-limits-are-soft", reference, Verdict.UNKNOWN, "nothing was read"),
            found("fetch/size-limits-are-soft", kafka, Verdict.OK, scripts=15, seconds=1.25),
            found("fetch/isr-heals", reference, Verdict.NOT_APPLICABLE, "needs replication"),
            found("fetch/isr-heals", kafka, Verdict.OK, scripts=1, seconds=12.0),
        ),
        complete=True,
        seconds=31.75,
    ).concluded(1, "a violation, or an expected one that did not happen")


@pytest.fixture
def results() -> Results:
    return sample_results()
