"""Judgement of synthetic histories by shards: the same numbers of anomalies as SQL counts in their tables."""

import random
from pathlib import Path

import duckdb
import pytest

from linearizability.check import judge_history
from linearizability.history.reader import open_history
from linearizability.judgement import Verdict
from linearizability.shards.engine import judge_layout
from linearizability.shards.laying_out import lay_out
from linearizability.shards.running import run_here
from linearizability.synthetic.writing import Request, synthesize

_SQL = Path(__file__).with_name("anomalies.sql").read_text()
QUERIES = {name.strip(): text for name, text in (part.split("\n", 1) for part in _SQL.split("\n-- ") if ";" in part)}


def counted(run):
    with duckdb.connect() as connection:
        for name in ("operations", "records", "positions"):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{run}/history/{name}.parquet')")
        found = {name: connection.execute(query).fetchone()[0] for name, query in QUERIES.items()}
    return {name: count for name, count in found.items() if count}


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_anomalies_equal_those_of_sql(tmp_path, seed):
    planted = random.Random(seed).choices(sorted(QUERIES), k=6)
    run = tmp_path / "run"
    synthesize(run, Request(8000, 3, 0.6, planted, seed), lambda _: None)
    history = open_history(run)
    judgement = judge_layout(history, lay_out(history, run_here, 1000), run_here)
    found = {a.name: a.count for a in judgement.anomalies if a.verdict is Verdict.VIOLATION and a.name in QUERIES}
    assert found == counted(run)
    assert set(planted) <= set(found)
    assert judgement == judge_history(history)


def test_sql_counts_no_anomaly_in_a_valid_history(tmp_path):
    synthesize(tmp_path / "run", Request(20_000, 7), lambda _: None)
    assert counted(tmp_path / "run") == {}
