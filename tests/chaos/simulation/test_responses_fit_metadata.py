"""The simulation detects responses of a broker or controller that differ from the metadata of that node."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from chaos.simulation.run import run
from conformance.trial.trial import ClusterSettings, Topic, Trial
from fixtures.clients.core.descriptions import SUBJECTS
from fixtures.clients.steps import (
    AlterTopicConfig,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Describe,
    ElectPreferredLeader,
    Idle,
    Produce,
    ReassignPartition,
    RequestClient,
)
from fixtures.faults import Pause, Role, ShutDown, Timed
from reference_broker.core.controller import isr
from reference_broker.core.controller.elections import Elections, ElectionType
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.handlers import (
    allocate_producer_ids,
    broker_heartbeat,
    broker_registration,
    list_partition_reassignments,
)
from reference_broker.core.handlers.cluster_view import ClusterView
from reference_broker.protocol.errors import ErrorCode

SCRIPT = Trial(
    cluster=ClusterSettings(nodes=4),
    topics=(Topic("a", 2),),
    clients=(
        RequestClient(
            steps=(
                Produce(idempotent=True),
                Produce(node=Role.FOLLOWER),
                *(Describe(subject) for subject in SUBJECTS),
            )
        ),
        RequestClient(
            steps=(
                CreateTopic("c", 2),
                CreatePartitions(3),
                AlterTopicConfig("retention.ms", "7000", "c"),
                AlterTopicConfig("retention.ms", "9000", "c", validate_only=True),
                Describe("properties", "c"),
                ReassignPartition((4, 3, 2)),
                Describe("movements"),
                ElectPreferredLeader(partition=1),
                ElectPreferredLeader("nowhere"),
                DeleteTopic("c"),
            )
        ),
        RequestClient(
            steps=(Idle(14_000), ReassignPartition((4,), partition=1), Describe("movements"), Describe("metadata"))
        ),
    ),
    schedule=(Timed(1_000, ShutDown(Role.LEADER), 4_000), Timed(6_000, Pause(4), 12_000)),
)


def _moved_on(original: Callable[..., Any]) -> Any:
    def next_block(*arguments: Any) -> Any:
        block, record = original(*arguments)
        return range(block.start + 1, block.stop + 1), record

    return next_block


def _on_another_rack(original: Callable[..., Any]) -> Any:
    def broker_registration(*arguments: Any, **rest: Any) -> Any:
        records, registered = original(*arguments, **rest)
        return [*records[:-1], replace(registered, rack="another")], registered

    return broker_registration


def _nothing(*_: Any) -> tuple[()]:
    return ()


def _names_the_partition(original: Callable[..., Any]) -> Any:
    def elect_leader(self: Elections, topic: str, index: int, election_type: ElectionType) -> Any:
        try:
            return original(self, topic, index, election_type)
        except ControllerError as error:
            raise ControllerError(error.code, f"No such partition as {topic}-{index}") from error

    return elect_leader


DEFECTS = (
    ("controller-response", isr, "_check", lambda *_: ErrorCode.invalid_update_version),
    ("controller-response", broker_heartbeat, "_FENCED_STATES", frozenset()),
    ("controller-response", broker_registration, "register_broker", _on_another_rack),
    ("controller-response", allocate_producer_ids, "next_block", _moved_on),
    ("controller-response", Elections, "elect_leader", _names_the_partition),
    ("controller-response", list_partition_reassignments, "list_partition_reassignments", _nothing),
    ("metadata-response", ClusterView, "controller", lambda *_: -1),
)
"""For each defect: the violated invariant, the owner and name of the attribute, and its replacement or wrapper."""
_WRAPPERS = (_moved_on, _on_another_rack, _names_the_partition)


@pytest.mark.parametrize(
    ("name", "owner", "attribute", "defect"), DEFECTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_defect_is_detected(name: str, owner: Any, attribute: str, defect: Any) -> None:
    replacement = defect(getattr(owner, attribute)) if defect in _WRAPPERS else defect
    with patch.object(owner, attribute, replacement):
        violation = run(SCRIPT).violation
    assert violation is not None
    assert violation.name == name


def test_there_is_no_violation_without_a_defect() -> None:
    assert run(SCRIPT).violation is None
