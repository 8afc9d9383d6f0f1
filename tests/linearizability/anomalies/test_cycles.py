"""The cycle anomalies: arbitrary graphs and histories, compared with an oracle that finds all simple cycles."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearizability.anomalies.cycles import classes
from linearizability.anomalies.cycles.classes import classify
from linearizability.anomalies.cycles.edges import EDGES
from linearizability.anomalies.cycles.graph import Graph
from linearizability.check import judge, judge_history
from linearizability.history.reader import open_history
from linearizability.judgement import Verdict
from linearizability.synthetic.interleavings import COMMIT, INTERLEAVINGS, READ, SEND
from tests.linearizability.anomalies.dense_transactions import dense_transactions
from tests.linearizability.anomalies.histories import TOPIC, Tables
from tests.linearizability.anomalies.interleavings import PLANTED_CYCLES, arbitrary_steps, serial_steps, write_into
from tests.linearizability.anomalies.oracle import Oracle
from tests.linearizability.anomalies.oracle_cycles import PROCESS, name_cycles, real_time
from tests.linearizability.anomalies.simulated_partition import SimulatedPartition
from tests.linearizability.anomalies.test_definitions import SEEDS, as_rows, examples, judged

pytestmark = pytest.mark.sampled(2)


def graph(times, edges):
    """Return a graph.

    :param times: (begin, end) of each node.
    :param edges: {(source, target, kind)}.
    """
    source, target, kind = np.array(sorted(edges), np.intp).reshape(-1, 3).T
    begin_ns, end_ns = np.array(times, np.int64).reshape(-1, 2).T
    nodes, rows = np.arange(len(times)), np.arange(len(edges))
    return Graph(nodes, begin_ns, end_ns, source, target, kind.astype(np.int8), rows, EDGES.empty_table())


def found(whole):
    """Return the result of `classify` in the form of `name_cycles`, with the node numbers of the whole graph."""
    part, components = classify(whole)
    return sorted(
        (
            each.name,
            str(each.verdict),
            [(int(part.transaction[s.source]), int(part.transaction[s.target]), int(s.kind)) for s in each.cycle or ()],
        )
        for each in components
    )


def arbitrary_graph(rng):
    nodes = rng.randrange(1, 7)
    span = rng.choice([3, 10, 40])
    times = [tuple(sorted(rng.randrange(span) for _ in range(2))) for _ in range(nodes)]
    kinds = rng.choice([[0], [1], [0, 1, 2], [3], [0, 3], [1, 3], [0, 1, 2, 3], [1, 2, 3, 3, 3]])
    edges = set()
    for _ in range(rng.randrange(2 * nodes + 2)):
        source, target = rng.randrange(nodes), rng.randrange(nodes)
        if source != target:
            edges.add((source, target, rng.choice(kinds)))
    for earlier in range(nodes):
        later = rng.randrange(nodes)
        if times[earlier][0] < times[later][0] <= times[earlier][1] and rng.random() < 0.3:
            edges.add((earlier, later, PROCESS))
    return times, edges


def arbitrary_cyclic_history(rng):
    """Return a history of dense transactions, a planted cycle, both of these, or arbitrary steps."""
    kind = rng.randrange(5)
    tables = dense_transactions(rng) if kind < 3 else Tables(topics={TOPIC: {}})
    if kind > 1:
        steps = arbitrary_steps(rng) if kind == 3 else INTERLEAVINGS[rng.choice(list(INTERLEAVINGS))]
        write_into(tables, steps)
    return tables


@given(SEEDS)
@examples(1500)
def test_cycle_classes_equal_those_of_the_oracle(seed):
    times, edges = arbitrary_graph(random.Random(seed))
    nodes = range(len(times))
    timed = real_time(nodes, dict(enumerate(times)))
    assert found(graph(times, edges)) == sorted(name_cycles(nodes, edges | timed))


@given(SEEDS)
@examples(150)
def test_judgement_of_transactions_equals_the_oracle(tmp_path_factory, seed):
    tables = arbitrary_cyclic_history(random.Random(seed))
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@pytest.mark.parametrize("name", INTERLEAVINGS)
@given(seed=SEEDS)
@examples(6)
def test_planted_cycle_is_found_by_name(tmp_path_factory, name, seed):
    rng = random.Random(seed)
    tables = SimulatedPartition(rng).run(rng.randrange(60)) if rng.random() < 0.7 else Tables(topics={TOPIC: {}})
    PLANTED_CYCLES[name](tables, rng)
    found = {(a.name, a.verdict) for a in judged(tables, tmp_path_factory).anomalies}
    assert (name, Verdict.VIOLATION if name == "cycle-G1c" else Verdict.PERMITTED) in found


@pytest.mark.parametrize("name", INTERLEAVINGS)
def test_serial_transactions_have_no_cycle(tmp_path_factory, name):
    tables = Tables(topics={TOPIC: {}})
    write_into(tables, serial_steps(INTERLEAVINGS[name]))
    assert judge(tables.write(tmp_path_factory.mktemp("run"))).anomalies == ()


@given(SEEDS)
@examples(40)
def test_permitted_interleavings_are_never_a_violation(tmp_path_factory, seed):
    rng = random.Random(seed)
    tables = Tables(topics={TOPIC: {}})
    write_into(tables, [step[:3] for step in arbitrary_steps(rng)])
    judgement = judge(tables.write(tmp_path_factory.mktemp("run")))
    cycles = [anomaly for anomaly in judgement.anomalies if anomaly.name in INTERLEAVINGS]
    assert {anomaly.verdict for anomaly in cycles} <= {Verdict.PERMITTED}


@pytest.mark.parametrize(("when", "names"), [("before", {"cycle-G1c"}), ("after", set())])
def test_read_after_the_commit_request_is_not_part_of_a_cycle(tmp_path, when, names):
    """Each transaction reads a record of the other. `when`: the first one reads before or after its commit request."""
    tables = Tables(topics={TOPIC: {}})
    steps = [(1, SEND, "a"), (2, READ, "a", "dirty"), (2, SEND, "b"), (2, COMMIT), (1, READ, "b")]
    write_into(tables, steps)
    operations = tables.rows["operations"]
    reader = next(op for op in reversed(operations) if op["f"] == "poll" and op["txn_seq"] == 1)
    writer = next(op for op in operations if op["f"] == "produce" and op["txn_seq"] == 1)
    if when == "after":
        commit = {"process": writer["process"], "f": COMMIT, "invoke_ns": writer["complete_ns"], "complete_ns": None}
        columns = {**dict.fromkeys(writer), "op_id": len(operations), "outcome": "info", "txn_seq": 1, **commit}
        operations.append(columns)
        assert writer["complete_ns"] < reader["invoke_ns"]
    found = judge_history(open_history(tables.write(tmp_path / "run"))).anomalies
    assert {anomaly.name for anomaly in found if anomaly.name.startswith("cycle-G1c")} == names


@pytest.mark.parametrize("name", ["cycle-G0", "cycle-G-single", "cycle-G2", "cycle-G-single-realtime"])
def test_permitted_cycle_is_the_only_anomaly(tmp_path_factory, name):
    tables = Tables(topics={TOPIC: {}})
    write_into(tables, INTERLEAVINGS[name])
    judgement = judge(tables.write(tmp_path_factory.mktemp("run")))
    assert [(a.name, a.count) for a in judgement.anomalies] == [(name, 1)]
    assert judgement.verdict is Verdict.OK


def test_each_edge_is_explained(tmp_path_factory):
    tables = Tables(topics={TOPIC: {}})
    write_into(tables, INTERLEAVINGS["cycle-G-single"])
    (anomaly,) = judge(tables.write(tmp_path_factory.mktemp("run"))).anomalies
    assert anomaly.evidence[0].text == (
        "T1 (transaction 1 of process 1000001, starting with operation 2), T2 (transaction 2 of process 1000002,"
        " starting with operation 4): T1, in operation 3, read all records before value 90002 (orders-1000000 at offset"
        " 1), which T2 wrote in operation 5; T1 wrote value 90004 (orders-1000001 at offset 2), in operation 7,"
        " directly after what T2 wrote in operation 6"
    )


def test_histories_contain_every_class(tmp_path_factory):
    names = {
        (anomaly.name, anomaly.verdict)
        for seed in range(60)
        for anomaly in judged(arbitrary_cyclic_history(random.Random(seed)), tmp_path_factory).anomalies
        if anomaly.name.startswith("cycle-")
    }
    assert names == {("cycle-G1c", Verdict.VIOLATION), *((name, Verdict.PERMITTED) for name in INTERLEAVINGS)}


@given(st.integers(3, 40), st.integers(3, 40))
def test_class_is_unknown_when_the_budget_is_used_up(reads, writes):
    """The graph is a ring with two read-write edges. Its only cycle contains both, which takes many steps to prove."""
    nodes = reads + writes
    times = [(0, 100)] * nodes
    edges = {(node, (node + 1) % nodes, 3 if node in (0, reads) else 1) for node in range(nodes)}
    ring = graph(times, edges)
    assert [name for name, _, _ in found(ring)] == ["cycle-G2"]
    least, per_edge, classes._STEPS_MIN, classes._STEPS_PER_EDGE = classes._STEPS_MIN, classes._STEPS_PER_EDGE, 1, 0
    try:
        assert found(ring) == [("cycle-G-single", "unknown", [])]
    finally:
        classes._STEPS_MIN, classes._STEPS_PER_EDGE = least, per_edge
