"""Reader of histories from a topic (`linearizability.history.messages`), as tasks by ranges of offsets.

A task reads its range with librdkafka, writes each message's rows as a closed file of its run, and returns to Spark
only the message's run, number, table and digest, and the document of a `run.json`. The driver checks for missing
messages and for two runs of one name. Run directories appear only after these checks. Executors need confluent-kafka,
and the directory under the same path as the driver.

The reader is a Python Data Source, because Spark's own Kafka source would pass the rows through the JVM and back.
"""

import hashlib
import json
import logging
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from linearizability.history import layout
from linearizability.history.errors import HistoryError
from linearizability.history.messages import RUN, Message, decoded
from linearizability.history.run import RunInfo
from reports.spark.errors import EngineUnavailableError, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES_PER_TASK: Final = 500
"""The maximum number of offsets in a task. A message has at most a megabyte."""
_RESPONSE_TIMEOUT_S: Final = 15.0
_SILENT: Final = logging.getLogger(f"{__name__}.silent")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_MESSAGES: Final = pa.schema(
    [
        pa.field("run", pa.string()),
        pa.field("number", pa.int64()),
        pa.field("table", pa.string()),
        pa.field("digest", pa.string()),
        pa.field("document", pa.string()),
    ]
)


def collect_runs(spark: "SparkSession", bootstrap_servers: str, topic: str, folder: Path) -> list[Path]:
    """Write every run of the topic as a run directory in `folder`. Return the directories, by name.

    Raises:
        HistoryError: the topic contains other messages, a message is missing, two runs have one name, or a directory
            with the name of a run exists already.
        EngineUnavailableError: the topic cannot be read from here.
        EngineFailedError: a task failed.
    """
    _require_topic(bootstrap_servers, topic)
    draft = folder / ".collecting"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        with spark_errors():
            spark.dataSource.register(HistoryTopicSource)
            options = {"bootstrap": bootstrap_servers, "topic": topic, "folder": str(draft.absolute())}
            messages = spark.read.format(HistoryTopicSource.name()).options(**options).load().toArrow().to_pylist()
        return [_publish(folder, draft, run, rows) for run, rows in _by_run(messages).items()]
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _require_topic(bootstrap_servers: str, topic: str) -> None:
    import confluent_kafka as ck

    consumer = _consumer(bootstrap_servers)
    try:
        found = consumer.list_topics(topic, _RESPONSE_TIMEOUT_S).topics[topic]
    except ck.KafkaException as error:
        raise EngineUnavailableError(f"{bootstrap_servers}: no response from Kafka: {error.args[0].str()}") from None
    finally:
        consumer.close()
    if found.error is not None:
        raise EngineUnavailableError(f"topic {topic} at {bootstrap_servers}: {found.error.str()}")


def _by_run(messages: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the messages of each run in order of their numbers, without repetitions. Raises HistoryError."""
    runs: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in messages:
        known = runs.setdefault(row["run"], {}).setdefault(row["number"], row)
        if known["digest"] != row["digest"]:
            raise HistoryError(f"the topic holds two runs named {row['run']}: message {row['number']} is there twice")
    found = {}
    for run, rows in sorted(runs.items()):
        missing = set(range(max(rows) + 1)) - set(rows)
        if missing:
            raise HistoryError(
                f"messages of run {run} are missing in the topic: {len(missing)}, the first is {min(missing)}"
            )
        found[run] = [rows[number] for number in sorted(rows)]
    return found


def _publish(folder: Path, draft: Path, run: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Complete a run directory with `run.json`, and move it to its place."""
    target = folder / Path(run).name
    if target.exists():
        raise HistoryError(f"{target}: already exists; name another directory")
    documents = [row["document"] for row in rows if row["table"] == RUN]
    if not documents:
        raise HistoryError(f"the topic has no run.json of run {run}")
    # A run sends `run.json` first, and again as its last message; without that one, it was killed or is in progress.
    has_end = rows[-1]["table"] == RUN and len(documents) > 1
    document = {**json.loads(documents[-1]), **({} if has_end else {"complete": False})}
    source = draft / _name(run)
    (source / layout.HISTORY_FOLDER).mkdir(parents=True, exist_ok=True)
    RunInfo.of(target, document).write(source)
    source.rename(target)
    return target


class HistoryTopicSource(DataSource):
    """Data source of Spark with a row for each message of the topic."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the source in a query."""
        return "kafkatrial-history-topic"

    def schema(self) -> str:
        """Return the columns that a task yields for each message."""
        return "run string, number long, table string, digest string, document string"

    def reader(self, schema: Any) -> "DataSourceReader":
        """Return the planner and reader."""
        del schema
        return _Reader(self.options["bootstrap"], self.options["topic"], Path(self.options["folder"]))


@dataclass(frozen=True)
class _Range(InputPartition):
    """Offsets [begin, end) of one partition."""

    partition: int
    begin: int
    end: int


@dataclass
class _Reader(DataSourceReader):
    bootstrap_servers: str
    topic: str
    folder: Path

    def partitions(self) -> Sequence[InputPartition]:
        import confluent_kafka as ck

        consumer = _consumer(self.bootstrap_servers)
        ranges: list[InputPartition] = []
        for partition in consumer.list_topics(self.topic, _RESPONSE_TIMEOUT_S).topics[self.topic].partitions:
            at = ck.TopicPartition(self.topic, partition)
            first, last = consumer.get_watermark_offsets(at, _RESPONSE_TIMEOUT_S)
            begins = range(first, last, MESSAGES_PER_TASK)
            ranges += [_Range(partition, begin, min(begin + MESSAGES_PER_TASK, last)) for begin in begins]
        consumer.close()
        return ranges or [_Range(0, 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Range)
        for value in _values(self.bootstrap_servers, self.topic, partition):
            message = decoded(value)
            document = None
            if message.table == RUN:
                document = json.dumps(message.document)
            else:
                _write(self.folder, message)
            cells = [message.run_id, message.number, message.table, hashlib.sha256(value).hexdigest(), document]
            yield pa.RecordBatch.from_arrays(
                [pa.array([cell], field.type) for cell, field in zip(cells, _MESSAGES, strict=True)], schema=_MESSAGES
            )


def _consumer(bootstrap_servers: str) -> Any:
    import confluent_kafka as ck

    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "kafkatrial",  # required by librdkafka; no member joins it, nothing is committed
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    return ck.Consumer(settings, logger=_SILENT)


def _values(bootstrap_servers: str, topic: str, offsets: _Range) -> Iterator[bytes]:
    """Yield the values of the messages in a range of offsets. Not every offset has a message."""
    import confluent_kafka as ck

    if offsets.begin == offsets.end:
        return
    consumer = _consumer(bootstrap_servers)
    try:
        consumer.assign([ck.TopicPartition(topic, offsets.partition, offsets.begin)])
        while True:
            message = consumer.poll(_RESPONSE_TIMEOUT_S)
            if message is None:
                raise HistoryError(
                    f"topic {topic}: partition {offsets.partition} did not respond in {_RESPONSE_TIMEOUT_S:.0f} s"
                )
            if message.error() is not None:
                if message.error().code() == ck.KafkaError._PARTITION_EOF:
                    return
                raise HistoryError(f"topic {topic}: partition {offsets.partition}: {message.error().str()}")
            if message.offset() >= offsets.end:
                return
            yield message.value()
            if message.offset() == offsets.end - 1:
                return
    finally:
        consumer.close()


def _write(folder: Path, message: Message) -> None:
    """Write the file of a message; writing it again gives the same file."""
    path = folder / _name(message.run_id) / layout.HISTORY_FOLDER / message.table / f"{message.number:012d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.stem}-{uuid.uuid4().hex}")
    pq.write_table(message.rows.replace_schema_metadata(None), draft)
    draft.replace(path)


def _name(run: str) -> str:
    """Return a folder name for the name of a run."""
    return hashlib.sha256(run.encode()).hexdigest()[:24]
