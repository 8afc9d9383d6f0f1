"""Verdict on the history of a simulated run, and comparison of its replicas on disk."""

from collections.abc import Callable
from itertools import combinations
from uuid import UUID

from chaos.campaign.violation import Violation
from linearizability.check import judge_history
from linearizability.history.reader import History
from linearizability.judgement import Judgement, Verdict, in_report_order
from reference_broker.simulation.cluster import SimulatedCluster
from reference_broker.simulation.disk import SimulatedDisk


def judge(history: History) -> tuple[Violation | None, tuple[str, ...]]:
    """Return the worst violation of a history, or None, and the reasons why parts of it could not be judged."""
    judgement = judge_history(history)
    return _worst(history, judgement), judgement.undecided


def _worst(history: History, judgement: Judgement) -> Violation | None:
    for anomaly in in_report_order(judgement.anomalies):
        if anomaly.verdict is Verdict.VIOLATION:
            evidence = anomaly.evidence[0] if anomaly.evidence else None
            op_ids = () if evidence is None else evidence.op_ids
            text = anomaly.name if evidence is None else evidence.text
            return Violation(anomaly.name, text, _invoked_ms(history, op_ids), op_ids)
    return None


def _invoked_ms(history: History, op_ids: tuple[int, ...]) -> int:
    table = history.table("operations", ["op_id", "invoke_ns"]).to_pydict()
    invoked = dict(zip(table["op_id"], table["invoke_ns"], strict=True))
    return min((invoked[op_id] // 1_000_000 for op_id in op_ids if op_id in invoked), default=0)


def find_difference_of_replicas(cluster: SimulatedCluster, may_differ: Callable[[UUID, int, int], bool]) -> str | None:
    """Return the first difference between two replicas on disk; None if there is none.

    Only offsets that both logs contain are compared.

    :param may_differ: returns whether batches may differ because of a power cut, by topic id, partition index and base
        offset. Such batches are not compared.
    """
    image = next(iter(cluster.nodes.values())).metadata.image
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            logs = {
                node_id: [
                    batch
                    for batch in _batches(cluster.machines[node_id].disk, f"{topic.name}-{index}")
                    if not may_differ(topic.topic_id, index, batch[0])
                ]
                for node_id in partition.replicas
            }
            for one, other in combinations(sorted(logs), 2):
                differs_at = _first_difference(logs[one], logs[other])
                if differs_at is not None:
                    return (
                        f"{topic.name}-{index}: nodes {one} and {other} have different batches at offset {differs_at}"
                    )
    return None


def _first_difference(one: list[tuple[int, bytes]], other: list[tuple[int, bytes]]) -> int | None:
    if one == other or not one or not other:
        return None
    start = max(one[0][0], other[0][0])
    first = [batch for batch in one if batch[0] >= start]
    second = [batch for batch in other if batch[0] >= start]
    return next((min(a[0], b[0]) for a, b in zip(first, second, strict=False) if a != b), None)


def _batches(disk: SimulatedDisk, directory: str) -> list[tuple[int, bytes]]:
    """Return base offset and bytes of each batch in the segments of a partition."""
    found: list[tuple[int, bytes]] = []
    for path in sorted(path for path in disk.files if path.startswith(f"{directory}/") and path.endswith(".log")):
        data = bytes(disk.files[path])
        position = 0
        while position + _PREFIX <= len(data):
            end = position + _PREFIX + int.from_bytes(data[position + 8 : position + _PREFIX], "big")
            found.append((int.from_bytes(data[position : position + 8], "big"), data[position:end]))
            position = end
    return found


_PREFIX = 12
"""Size in bytes of the first two fields of a batch: base offset and length."""
