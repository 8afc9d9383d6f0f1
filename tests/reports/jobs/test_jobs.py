"""Tables of a report: DuckDB compared with the oracle and with Spark, on random histories."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearizability.history.schema import SCHEMAS
from reports.jobs import engine as jobs_engine
from reports.jobs.catalogue import JOBS
from reports.jobs.definition import QUANTILE_ERROR, bucket_of
from reports.jobs.engine import compute
from reports.jobs.inputs import open_runs
from reports.local.engine import local_engine
from tests.reports.jobs import oracle
from tests.reports.jobs.histories import strange

pytestmark = pytest.mark.sampled(3)

SEEDS = range(60)
SEEDS_ON_SPARK = range(40)


def computed(run_dirs, scratch, engine=None):
    runs = open_runs(dict.fromkeys(run_dirs, ""), scratch)
    with engine or local_engine(scratch / "duckdb", memory_mb=256) as opened:
        return runs, compute(opened, runs, lambda step: None)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Return the generated histories by run id, and the tables that DuckDB computes from all of them."""
    folder = tmp_path_factory.mktemp("many")
    tables = {f"strange-{seed}": strange(seed) for seed in SEEDS}
    dirs = [made.write(folder / name, files=1 + number % 2) for number, (name, made) in enumerate(tables.items())]
    _, found = computed(dirs, folder / "scratch")
    return tables, found


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_table_equals_the_oracle(many, job):
    tables, found = many
    rows = found.tables[job.name].to_pylist()
    compared = 0
    for name, made in tables.items():
        own = [{key: value for key, value in row.items() if key != "run_id"} for row in rows if row["run_id"] == name]
        wanted = oracle.table(job.name, oracle.History(made.rows), job.order)
        assert own == wanted, name
        compared += len(wanted)
    assert compared > 20, "the histories have too few rows for this table"


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_table_has_the_documented_schema(many, job):
    _, found = many
    assert found.tables[job.name].schema == job.schema


def test_large_tables_are_read_from_their_files_with_the_same_result(tmp_path, monkeypatch):
    dirs = [strange(seed).write(tmp_path / str(seed), files=3) for seed in range(5)]
    _, from_memory = computed(dirs, tmp_path / "memory")
    monkeypatch.setattr(jobs_engine, "SMALL_ROWS", -1)
    _, from_files = computed(dirs, tmp_path / "files")
    assert from_files.tables == from_memory.tables


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_spark_gives_the_same_tables(tmp_path):
    from reports.spark.jobs import spark_engine
    from reports.spark.session import spark_session

    dirs = [strange(seed).write(tmp_path / str(seed)) for seed in SEEDS_ON_SPARK]
    planning = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}
    quick = {"spark.sql.shuffle.partitions": "2", **planning}
    runs, local = computed(dirs, tmp_path / "local")
    with spark_session("local[2]", quick):
        _, spark = computed(dirs, tmp_path / "spark", spark_engine("local[2]"))
        with spark_engine("local[2]") as opened:
            files = [path for run in runs for path in run.files["states"]]
            opened.add_files("state_files", SCHEMAS["states"], files)
            assert opened.query("SELECT * FROM state_files").num_rows == sum(
                pq.read_table(path).num_rows for path in files
            )
            (row,) = opened.query("SELECT MAX(cardinality(isr)) AS largest FROM state_files").to_pylist()
            assert row == {"largest": 3}
    for job in JOBS:
        assert spark.tables[job.name].equals(local.tables[job.name]), job.name
        assert local.tables[job.name].num_rows, job.name


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with local_engine(tmp_path_factory.mktemp("buckets")) as opened:
        yield opened


@given(st.lists(st.integers(0, 2**62) | st.integers(0, 20_000), min_size=1))
def test_bucket_is_close_to_its_values_and_preserves_their_order(engine, values):
    values = sorted(values)
    engine.add_table("given_values", pa.table({"x": pa.array(values, pa.int64())}))
    found = engine.query(f"SELECT {bucket_of('x')} AS bucket FROM given_values ORDER BY x")["bucket"].to_pylist()
    assert found == [oracle.bucket(value) for value in values]
    assert found == sorted(found)
    assert all(abs(bucket - value) <= QUANTILE_ERROR * value for bucket, value in zip(found, values, strict=True))
