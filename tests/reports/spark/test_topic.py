"""History topic in Apache Kafka: a run writes its history to the topic, and Spark reads the same rows back."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from fixtures.clients.history_topic import HistoryTopic, HistoryTopicError, SentHistory
from fixtures.targets.catalogue import parse_target
from linearizability.check import judge
from linearizability.history.errors import HistoryError
from linearizability.history.messages import run_message, table_messages
from linearizability.history.reader import open_history
from linearizability.history.recorder import Read, Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.schema import SCHEMAS
from linearizability.history.writer import HistoryWriter
from reports.spark.errors import EngineUnavailableError
from reports.spark.session import spark_session
from reports.spark.topic import collect_runs
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.java,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.sampled(4),
]


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory):
    kafka = parse_target("apache-kafka:4.3.1", nodes=1, mesh=False, work_dir=tmp_path_factory.mktemp("kafka"))
    with kafka:
        yield f"{kafka.nodes[0].host}:{kafka.nodes[0].port}"


@pytest.fixture(scope="module")
def spark():
    with spark_session("local[2]") as session:
        yield session


def work(recorder, count, lost=None):
    """Record `count` produces of one value each, and a poll that returns all values except `lost`."""
    for number in range(count):
        op = recorder.invoke(1, "produce", [Sent(number)], topic="t", partition=0, acks=-1)
        recorder.complete(op, "ok", base_offset=number)
    reads = [Read("t", None, 0, number, number, None, 0, 0) for number in range(count) if number != lost]
    op = recorder.invoke(2, "poll")
    recorder.complete(op, "ok", reads=reads)


def assert_same(run, collected):
    before, after = open_history(run), open_history(collected)
    assert after.run == before.run
    for name in SCHEMAS:
        assert after.table(name).equals(before.table(name)), name
    assert judge(collected) == judge(run)


def test_two_runs_are_written_to_the_topic_and_read_back(bootstrap, spark, tmp_path, monkeypatch):
    monkeypatch.setattr("linearizability.history.messages.VALUE_BYTES_MAX", 20_000)
    monkeypatch.setattr("reports.spark.topic.MESSAGES_PER_TASK", 20)
    topic = HistoryTopic(bootstrap, "two-runs")
    for name, lost in (("one", None), ("two", 77)):
        with (
            SentHistory(tmp_path / name, topic),
            HistoryWriter(tmp_path / name, RunInfo(name, topics={"t": {}})) as writer,
        ):
            work(Recorder(writer), 3000, lost)
    collected = collect_runs(spark, bootstrap, "two-runs", tmp_path / "collected")
    assert [path.name for path in collected] == ["one", "two"]
    for path in collected:
        assert_same(tmp_path / path.name, path)
    assert [anomaly.name for anomaly in judge(collected[1]).anomalies] == ["lost-write"]
    with pytest.raises(HistoryError, match="one: already exists"):
        collect_runs(spark, bootstrap, "two-runs", tmp_path / "collected")


def test_killed_run_is_read_back_up_to_its_end_and_is_not_complete(bootstrap, spark, tmp_path):
    topic = HistoryTopic(bootstrap, "killed")
    writer = HistoryWriter(tmp_path / "run", RunInfo("run", topics={"t": {}}))
    with SentHistory(tmp_path / "run", topic):
        work(Recorder(writer), 50)
        closed = tmp_path / "run/history/operations"
        wait_until(lambda: any(closed.glob("*.parquet")))
        kept = pq.read_table(min(closed.glob("*.parquet")), partitioning=None)  # a closed file does not change
    (collected,) = collect_runs(spark, bootstrap, "killed", tmp_path / "collected")
    writer.close()
    assert not open_history(collected).run.complete
    assert kept.num_rows
    assert open_history(collected).table("operations").slice(0, kept.num_rows).equals(kept)


def test_missing_messages_duplicate_names_and_foreign_messages_are_each_reported_in_one_line(
    bootstrap, spark, tmp_path
):
    operations = open_history(Path("examples/histories/clean")).table("operations")
    values = [value for _, value in table_messages("r", 1, "operations", operations)]
    cases = {
        "gap": (
            [run_message(RunInfo("r"), 0).encoded(), run_message(RunInfo("r"), 2).encoded()],
            "messages of run r are missing in the topic: 1",
        ),
        "twins": ([run_message(RunInfo("r", seed=seed), 0).encoded() for seed in (1, 2)], "two runs named r"),
        "foreign": ([b"hello"], "not a history of kafkatrial"),
        "no-run-message": (
            [run_message(RunInfo("q"), 0).encoded(), *values],
            "messages of run r are missing in the topic: 1",
        ),
    }
    for name, (messages, line) in cases.items():
        topic = HistoryTopic(bootstrap, name)
        for value in messages:
            topic._producer.produce(name, value, "r")
        topic.flush()
        with pytest.raises(HistoryError, match=line) as raised:
            collect_runs(spark, bootstrap, name, tmp_path / name)
        assert "\n" not in str(raised.value)
        assert not list((tmp_path / name).glob("*"))


def test_unknown_topic_and_unresponsive_kafka_are_each_reported_in_one_line(bootstrap, spark, tmp_path, monkeypatch):
    with pytest.raises(EngineUnavailableError, match=r"topic nowhere at .*Unknown topic"):
        collect_runs(spark, bootstrap, "nowhere", tmp_path)
    monkeypatch.setattr("reports.spark.topic._RESPONSE_TIMEOUT_S", 1.0)
    with pytest.raises(EngineUnavailableError, match=r"127\.0\.0\.1:9: no response from Kafka"):
        collect_runs(spark, "127.0.0.1:9", "nowhere", tmp_path)
    monkeypatch.setattr("fixtures.clients.history_topic._RESPONSE_TIMEOUT_S", 1.0)
    with pytest.raises(HistoryTopicError, match=r"topic t at 127\.0\.0\.1:9: "):
        HistoryTopic("127.0.0.1:9", "t")
