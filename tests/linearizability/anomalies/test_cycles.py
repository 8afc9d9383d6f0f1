"""The cycle anomalies: components and shortest cycles against every simple cycle there is."""

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
from tests.linearizability.anomalies.histories import TOPIC, Tables
from tests.linearizability.anomalies.oracle import Oracle
from tests.linearizability.anomalies.oracle_of_cycles import PROCESS, name_cycles, real_time
from tests.linearizability.anomalies.simulation import Simulation
from tests.linearizability.anomalies.tangles import tangle
from tests.linearizability.anomalies.test_kernel import SEEDS, as_rows, examples, judged
from tests.linearizability.anomalies.weaves import (
    COMMIT,
    CYCLE_PLANTS,
    READ,
    SEND,
    WEAVES,
    Weaver,
    any_steps,
    one_after_the_other,
)


def graph_of(times, edges):
    """A graph of nodes that last from and to some times, and of edges (source, target, kind)."""
    source, target, kind = np.array(sorted(edges), np.intp).reshape(-1, 3).T
    begin_ns, end_ns = np.array(times, np.int64).reshape(-1, 2).T
    nodes, rows = np.arange(len(times)), np.arange(len(edges))
    return Graph(nodes, begin_ns, end_ns, source, target, kind.astype(np.int8), rows, EDGES.empty_table())


def found(graph):
    """What `classify` says, in the oracle's words; nodes by their numbers in the whole graph."""
    part, components = classify(graph)
    return sorted(
        (
            own.name,
            str(own.verdict),
            [(int(part.transaction[s.source]), int(part.transaction[s.target]), int(s.kind)) for s in own.cycle or ()],
        )
        for own in components
    )


def any_graph(rng):
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


def any_history(rng):
    """A tangle, or steps in any order, or some small cycle."""
    kind = rng.randrange(5)
    tables = tangle(rng) if kind < 3 else Tables(topics={TOPIC: {}})
    if kind > 1:
        Weaver(tables).weave(any_steps(rng) if kind == 3 else WEAVES[rng.choice(list(WEAVES))])
    return tables


@given(SEEDS)
@examples(1500)
def test_every_class_of_cycle_is_found_as_by_looking_at_all(seed):
    times, edges = any_graph(random.Random(seed))
    nodes = range(len(times))
    timed = real_time(nodes, dict(enumerate(times)))
    assert found(graph_of(times, edges)) == sorted(name_cycles(nodes, edges | timed))


@given(SEEDS)
@examples(150)
def test_kernel_says_what_the_oracle_says_of_transactions(tmp_path_factory, seed):
    tables = any_history(random.Random(seed))
    assert as_rows(judged(tables, tmp_path_factory)) == Oracle(tables.run, tables.rows).judgement()


@pytest.mark.parametrize("name", WEAVES)
@given(seed=SEEDS)
@examples(6)
def test_woven_cycle_is_found_by_name(tmp_path_factory, name, seed):
    rng = random.Random(seed)
    tables = Simulation(rng).run(rng.randrange(60)) if rng.random() < 0.7 else Tables(topics={TOPIC: {}})
    CYCLE_PLANTS[name](tables, rng)
    found = {(a.name, a.verdict) for a in judged(tables, tmp_path_factory).anomalies}
    assert (name, Verdict.VIOLATION if name == "cycle-G1c" else Verdict.PERMITTED) in found


@pytest.mark.parametrize("name", WEAVES)
def test_the_same_transactions_one_after_the_other_make_no_cycle(tmp_path_factory, name):
    tables = Tables(topics={TOPIC: {}})
    Weaver(tables).weave(one_after_the_other(WEAVES[name]))
    assert judge(tables.write(tmp_path_factory.mktemp("run"))).anomalies == ()


@given(SEEDS)
@examples(40)
def test_what_a_broker_may_do_with_transactions_is_never_a_violation(tmp_path_factory, seed):
    rng = random.Random(seed)
    tables = Tables(topics={TOPIC: {}})
    Weaver(tables).weave([step[:3] for step in any_steps(rng)])
    judgement = judge(tables.write(tmp_path_factory.mktemp("run")))
    cycles = [anomaly for anomaly in judgement.anomalies if anomaly.name in WEAVES]
    assert {anomaly.verdict for anomaly in cycles} <= {Verdict.PERMITTED}


@pytest.mark.parametrize(("returns", "names"), [(None, {"cycle-G1c"}), ("before", set())])
def test_read_after_the_commit_was_asked_for_is_not_held_against_it(tmp_path, returns, names):
    """The second transaction reads what the first wrote; the first reads what the second wrote, and when?"""
    tables = Tables(topics={TOPIC: {}})
    steps = [(1, SEND, "a"), (2, READ, "a", "dirty"), (2, SEND, "b"), (2, COMMIT), (1, READ, "b")]
    Weaver(tables).weave(steps)
    operations = tables.rows["operations"]
    reader = next(op for op in reversed(operations) if op["f"] == "poll" and op["txn_seq"] == 1)
    writer = next(op for op in operations if op["f"] == "produce" and op["txn_seq"] == 1)
    if returns:
        asked = {"process": writer["process"], "f": COMMIT, "invoke_ns": writer["complete_ns"], "complete_ns": None}
        columns = {**dict.fromkeys(writer), "op_id": len(operations), "outcome": "info", "txn_seq": 1, **asked}
        operations.append(columns)
        assert writer["complete_ns"] < reader["invoke_ns"]
    found = judge_history(open_history(tables.write(tmp_path / "run"))).anomalies
    assert {anomaly.name for anomaly in found if anomaly.name.startswith("cycle-G1c")} == names


@pytest.mark.parametrize("name", ["cycle-G0", "cycle-G-single", "cycle-G2", "cycle-G-single-realtime"])
def test_cycle_that_kafka_permits_is_all_there_is(tmp_path_factory, name):
    tables = Tables(topics={TOPIC: {}})
    Weaver(tables).weave(WEAVES[name])
    judgement = judge(tables.write(tmp_path_factory.mktemp("run")))
    assert [(a.name, a.count) for a in judgement.anomalies] == [(name, 1)]
    assert judgement.verdict is Verdict.OK


def test_each_edge_is_explained(tmp_path_factory):
    tables = Tables(topics={TOPIC: {}})
    Weaver(tables).weave(WEAVES["cycle-G-single"])
    (anomaly,) = judge(tables.write(tmp_path_factory.mktemp("run"))).anomalies
    assert anomaly.evidence[0].text == (
        "T1 (transaction 1 of process 61, starting with operation 2), T2 (transaction 2 of process 62, starting with"
        " operation 4): T1, in operation 3, read up to below value 90003 (t-7 at offset 1), which T2 wrote in"
        " operation 5; T1 wrote value 90005 (t-8 at offset 2), in operation 7, directly after what T2 wrote in"
        " operation 6"
    )


def test_histories_hold_every_class(tmp_path_factory):
    names = {
        (anomaly.name, anomaly.verdict)
        for seed in range(60)
        for anomaly in judged(any_history(random.Random(seed)), tmp_path_factory).anomalies
        if anomaly.name.startswith("cycle-")
    }
    assert names == {("cycle-G1c", Verdict.VIOLATION), *((name, Verdict.PERMITTED) for name in WEAVES)}


@given(st.integers(3, 40), st.integers(3, 40))
def test_where_the_budget_runs_out_it_is_unknown(reads, writes):
    """A ring with two read-write edges: the way back from each has the other."""
    nodes = reads + writes
    times = [(0, 100)] * nodes
    edges = {(node, (node + 1) % nodes, 3 if node in (0, reads) else 1) for node in range(nodes)}
    graph = graph_of(times, edges)
    assert [name for name, _, _ in found(graph)] == ["cycle-G2"]
    least, per_edge, classes._STEPS_MIN, classes._STEPS_PER_EDGE = classes._STEPS_MIN, classes._STEPS_PER_EDGE, 1, 0
    try:
        assert found(graph) == [("cycle-G-single", "unknown", [])]
    finally:
        classes._STEPS_MIN, classes._STEPS_PER_EDGE = least, per_edge
