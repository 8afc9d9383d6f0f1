"""Concurrent requirements of three nodes under faults: Apache Kafka and the reference cluster satisfy them.

The requirements of a family share the history of one script. A script takes about one minute on the reference cluster
and two minutes on Apache Kafka.
"""

from collections import defaultdict

import pytest

from conformance.check_context import CheckContext
from conformance.concurrent.fault_requirements import ROWS
from conformance.engine import seed_of
from conformance.profiles import PROFILES
from fixtures.targets.catalogue import parse_target
from linearizability.judgement import Verdict

pytestmark = [pytest.mark.toxiproxy, pytest.mark.slow, pytest.mark.sampled(4)]

SEED = 5
TARGETS = ["reference", pytest.param("apache-kafka:4.3.1", marks=pytest.mark.java)]

families = defaultdict(list)
for row in ROWS:
    families[row.family.name].append(row)


@pytest.fixture(scope="module", params=TARGETS)
def target(request, tmp_path_factory):
    with parse_target(request.param, nodes=3, work_dir=tmp_path_factory.mktemp("target"), mesh=True) as target:
        yield target


@pytest.mark.parametrize("family", families)
def test_the_history_of_a_family_is_ok(family, target, tmp_path):
    profile = PROFILES["ci"]
    for row in families[family]:
        context = CheckContext(
            requirement_id=row.id,
            targets=[target],
            seed=seed_of(SEED, family),
            scripts_max=profile.scripts_max,
            shrink_seconds=profile.shrink_seconds,
            history_dirs={target.name: tmp_path / row.id.replace("/", "-")},
            script_ran=lambda target, done, planned: None,
        )
        finding = row.requirement().check(context)[target.name]
        assert (finding.verdict, finding.reason) == (Verdict.OK, ""), row.id
        assert finding.scripts == 1
