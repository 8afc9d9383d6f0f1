"""Every invariant fails with its seeded defect, and none fails without a defect."""

from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from reference_broker.core.node import Node
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.tracer import ResponseSent
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.schemas import response_schema
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.invariants import Invariants, InvariantViolation
from reference_broker.simulation.invariants.forwarding import ForwardingInvariants
from tests.reference_broker.simulation.invariants.broker_defects import BROKER_DEFECTS
from tests.reference_broker.simulation.invariants.defect import Defect, nothing
from tests.reference_broker.simulation.invariants.defects import DEFECTS
from tests.reference_broker.simulation.invariants.storm import Storm

pytestmark = pytest.mark.sampled(3)

SEEDS = 8


def storm(defect: Defect, seed: int) -> Storm:
    return Storm(
        seed,
        kinds=defect.kinds,
        faults=defect.faults,
        faulty_ms=defect.faulty_ms,
        for_ms=defect.for_ms,
        properties=defect.properties,
    )


def violation(defect: Defect, seed: int) -> str | None:
    """Return the invariant that is violated first, or the type of an exception that the defect raises in the core."""
    with defect.seeded():
        try:
            storm(defect, seed).run()
        except InvariantViolation as violated:
            return violated.name
        except Exception as error:  # noqa: BLE001 - whatever the core raises
            return type(error).__name__
    return None


@pytest.mark.parametrize(
    "defect", [*DEFECTS, *BROKER_DEFECTS], ids=lambda defect: f"{defect.invariant}-{defect.attribute.strip('_')}"
)
def test_a_seeded_defect_is_detected(defect):
    assert any(violation(defect, seed) == defect.invariant for seed in range(defect.seed, defect.seed + SEEDS))


def test_a_shutdown_that_waits_without_a_quorum_is_a_violation():
    properties = {"controlled.shutdown.enable": "true", "broker.session.timeout.ms": "60000"}
    cluster = SimulatedCluster(5, seed=1, properties=properties)
    Invariants(cluster)
    assert cluster.await_ready()
    for node_id in (1, 2, 3):
        cluster.kill(node_id)
    cluster.shut_down(5)
    with patch.object(Node, "_watch_quorum", nothing), pytest.raises(InvariantViolation, match="shutdown-in-time"):
        cluster.scheduler.run(30_000)


def test_a_fetch_of_the_quorum_that_is_dropped_is_a_violation():
    original = KafkaRaftClient._on_transition

    def drop_fetches(self):
        self._delayed_fetches.clear()
        original(self)

    with patch.object(KafkaRaftClient, "_on_transition", drop_fetches):
        cluster = SimulatedCluster(4, seed=1, roles={1: "controller", 2: "controller", 3: "controller", 4: "broker"})
        Invariants(cluster)
        assert cluster.await_ready()
        leader_id = cluster.nodes[4].quorum.state.leader_id
        cluster.scheduler.run_until(lambda: cluster.nodes[leader_id].quorum.delayed_fetches > 0, end_ms=60_000)
        with pytest.raises(InvariantViolation, match="no-leftovers"):
            cluster.shut_down(leader_id)


def test_an_error_that_forwarding_must_hide_is_a_violation():
    enclosed, envelope = (SimpleNamespace(envelope=each, api_key=58) for each in ("envelope", None))
    forwarding, watched = ForwardingInvariants(), SimpleNamespace(node_id=1)
    forwarding.on_response(watched, ResponseSent(enclosed, _deletion(ErrorCode.not_controller)))
    with pytest.raises(InvariantViolation, match="forwarded-error"):
        forwarding.on_response(watched, ResponseSent(envelope, SimpleNamespace(error_code=ErrorCode.none)))


def test_an_unknown_error_of_a_forwarded_request_is_a_violation():
    connection = SimpleNamespace(is_controller=False)
    request = SimpleNamespace(envelope=None, api_key=20, connection=connection, body=None)
    with pytest.raises(InvariantViolation, match="forwarded-error"):
        ForwardingInvariants().on_response(
            SimpleNamespace(node_id=1), ResponseSent(request, _deletion(ErrorCode.unknown_server_error))
        )


def _deletion(error):
    schema = response_schema(20, 6)
    result = schema.DeletableTopicResult(name="orders", topic_id=None, error_code=error, error_message=None)
    return schema.DeleteTopicsResponse(throttle_time=timedelta(0), responses=(result,))


@pytest.mark.parametrize("seed", range(6))
def test_a_cluster_without_defects_violates_nothing(seed):
    run = Storm(seed, faults=4, faulty_ms=6_000).run()
    assert all(producer.acknowledged for producer in run.producers)
    assert run.committer.acknowledged


def test_a_run_has_the_same_coverage_each_time():
    one, other = (Storm(3, faulty_ms=5_000).run() for _ in range(2))
    assert one.coverage.counts == other.coverage.counts
    assert one.cluster.trace.digest == other.cluster.trace.digest
    watched = {name for name, count in one.coverage.counts.items() if count}
    assert {"node-started", "quorum:leader", "controller:active", "broker:registered", "isr:shrink"} <= watched
