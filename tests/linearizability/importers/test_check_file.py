"""Check of a file: recognition of its format, and verdicts on logs that are judged by a model."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linearizability.check_file import import_history, judge_file
from linearizability.history.errors import HistoryError, NotARunError
from linearizability.importers.recognise import Form, recognise
from linearizability.judgement import Verdict
from linearizability.verify import Budget

REGISTER = """\
INFO  jepsen.util - 0\t:invoke\t:write\t3
INFO  jepsen.util - 1\t:invoke\t:cas\t[3 4]
INFO  jepsen.util - 0\t:ok\t:write\t3
INFO  jepsen.util - 1\t:info\t:cas\t:timed-out
INFO  jepsen.util - 0\t:invoke\t:read\tnil
INFO  jepsen.util - 0\t:ok\t:read\t4
"""
STORE = """\
{:process 0, :type :invoke, :f :put, :key "k", :value "a"}
{:process 0, :type :ok, :f :put, :key "k", :value "a"}
{:process 0, :type :invoke, :f :get, :key "l", :value nil}
{:process 0, :type :ok, :f :get, :key "l", :value ""}
{:process 1, :type :invoke, :f :get, :key "k", :value nil}
{:process 1, :type :ok, :f :get, :key "k", :value "a"}
"""
EDN = '{:process 0, :type :invoke, :f :poll, :value [[:poll {"k" []}]]}\n'
JSON = '{"value": [["poll", {}]], "process": 0, "type": "invoke", "f": "poll"}\n'
TABLES = '{"table": "run", "format": 1}\n'

FORMS = [
    (REGISTER, Form.ETCD_LOG),
    (STORE, Form.KEY_VALUE_LOG),
    (EDN, Form.JEPSEN_EDN),
    (f" ; by hand\n[ {EDN}]", Form.JEPSEN_EDN),
    (f"#jepsen.history.Op{EDN}", Form.JEPSEN_EDN),
    (EDN.replace(":process 0, ", "").replace("}\n", " :process 0}"), Form.JEPSEN_EDN),
    (JSON, Form.JEPSEN_JSON),
    (f"\n[\n{JSON}]", Form.JEPSEN_JSON),
    (TABLES, Form.NDJSON),
    ('{"format": 1, "table": "run"}', Form.NDJSON),
    (f"\ufeff{TABLES}", Form.NDJSON),
]


@pytest.mark.parametrize(("text", "form"), FORMS)
def test_file_is_recognised_by_its_beginning(tmp_path, text, form):
    path = tmp_path / "misleading.parquet"
    path.write_text(text, encoding="utf-8")
    assert recognise(path) is form
    path.write_bytes(gzip.compress(text.encode()))
    assert recognise(path) is form
    judge_file(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"once upon a time", "not a history of a known form .* it begins with 'once upon a time'"),
        (b"\x7fELF\0\0\1", "not a history of a known form .* it begins with binary data"),
        (b'{"a": 1}', "not a history of a known form"),
        (b"{:a 1}", "not a history of a known form"),
    ],
)
def test_other_files_are_rejected(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NotARunError, match=rf"^{path}: {message}"):
        judge_file(path)


def test_single_table_of_a_run_is_rejected(tmp_path):
    path = tmp_path / "operations.parquet"
    pq.write_table(pa.table({"op_id": [1]}), path)
    with pytest.raises(NotARunError, match=r"one table of a run; name the directory that holds the run\.json"):
        judge_file(path)


def test_etcd_log_is_judged_as_a_register(tmp_path):
    path = tmp_path / "log"
    path.write_text(REGISTER)
    found = judge_file(path)
    assert (found.form, found.judgement.verdict, found.judgement.operations) == (Form.ETCD_LOG, Verdict.OK, 3)
    path.write_text(REGISTER.replace(":read\t4", ":read\t5"))
    found = judge_file(path)
    assert found.judgement.as_json() == {
        "verdict": "violation",
        "operations": 3,
        "records": 0,
        "reasons": [],
        "anomalies": [
            {
                "name": "not-linearizable",
                "verdict": "violation",
                "count": 1,
                "evidence": [
                    {
                        "op_ids": [2],
                        "topic": None,
                        "partition": None,
                        "offset": None,
                        "value": None,
                        "text": "operation 2, read() -> 5, cannot be placed: no order explains what had completed by "
                        "that time; in state 4: the register holds another value",
                    }
                ],
            }
        ],
    }
    assert found.explanation.splitlines()[0] == "operation 2 cannot be placed: read() -> 5"


def test_every_key_of_a_store_is_judged(tmp_path):
    path = tmp_path / "log"
    path.write_text(STORE)
    assert judge_file(path).judgement.verdict is Verdict.OK
    path.write_text(STORE.replace('"l", :value ""', '"l", :value "b"'))
    (anomaly,) = judge_file(path).judgement.anomalies
    assert (anomaly.count, anomaly.evidence[0].text.partition(":")[0]) == (1, "key 'l'")
    path.write_text(STORE.replace('"l", :value ""', '"l", :value "b"')[:-5] + '"z"}\n')
    (anomaly,) = judge_file(path).judgement.anomalies
    assert (anomaly.count, [row.op_ids[-1] for row in anomaly.evidence]) == (2, [2, 1])


def test_exhausted_time_budget_is_unknown(tmp_path):
    path = tmp_path / "log"
    path.write_text(STORE)
    judgement = judge_file(path, Budget(time_s=0)).judgement
    assert (judgement.verdict, judgement.anomalies) == (Verdict.UNKNOWN, ())
    assert "key 'k': the time budget of 0 s was used up" in judgement.reasons


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (REGISTER + "INFO  jepsen.util - 0\t:ok\t:read\t4\n", "line 7: process 0 completes what it did not invoke"),
        (REGISTER + "INFO  jepsen.util - over\n", "line 7: not a line of a log of this form: INFO jepsen.util - over"),
        (STORE + "{:process 0, :type :invoke, :f :inc}", "line 7: not a line of a log of this form"),
        (
            STORE + STORE.splitlines()[0] + "\n" + STORE.splitlines()[0],
            "line 8: process 0 invokes, but its previous operation",
        ),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(HistoryError, match=f"{path}, {message}"):
        judge_file(path)


def test_truncated_compressed_file_is_rejected(tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"".join(json.dumps(n).encode() for n in range(90_000)))[:-900])
    with pytest.raises(HistoryError, match=f"{path}"):
        judge_file(path)
    path.write_bytes(gzip.compress(REGISTER.encode())[:-4])
    with pytest.raises(HistoryError, match="the compressed file is damaged"):
        judge_file(path)


def test_only_kafka_histories_have_tables(tmp_path):
    path = tmp_path / "log"
    path.write_text(STORE)
    with pytest.raises(NotARunError, match="a log of a key-value store with append, which is no Kafka history"):
        import_history(path)


@pytest.mark.parametrize(
    ("text", "model", "message"),
    [
        (
            '{"op_id": 1, "input": ["read"], "invoke_ns": 0, "outcome": "ok", "outcome": "fail"}',
            "register",
            "'outcome'",
        ),
        (TABLES + '{"table": "operations", "op_id": 1, "op_id": 2}', None, "'op_id'"),
        ('{"type": "invoke", "process": 0, "f": "poll", "value": [["poll", {"0": [], "0": []}]]}', None, "'0'"),
        ("{:process 0, :type :ok, :f :poll, :value [[:poll {0 [[0 1]], 0 [[1 7]]}]]}", None, "the key 0 twice"),
    ],
)
def test_duplicate_member_is_rejected(tmp_path, text, model, message):
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(HistoryError, match=rf"^{path}, line \d: .* has the (member|key).*twice") as error:
        judge_file(path, model=model)
    assert message in str(error.value)


def test_process_minus_one_is_the_nemesis_in_json(tmp_path):
    path = tmp_path / "log"
    rows = [{"process": -1, "type": "info", "f": "start", "value": None}]
    rows += [{"process": 0, "type": kind, "f": "write", "value": 1} for kind in ("invoke", "ok")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert judge_file(path, model="register").judgement.verdict is Verdict.OK
    path.write_text(path.read_text().replace("-1", "-2"))
    with pytest.raises(HistoryError, match="line 1: process is -2, neither a number nor a nemesis"):
        judge_file(path, model="register")
