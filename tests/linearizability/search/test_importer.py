"""Importers of the two log formats that porcupine's tests read."""

import pytest

from linearizability.check_file import judge_file
from linearizability.history.errors import HistoryError
from linearizability.importers.porcupine import read_etcd_log, read_key_value_log
from linearizability.judgement import Verdict
from linearizability.models.compare_and_set import compare_and_set
from linearizability.models.key_value import key_value
from linearizability.operation import EventKind
from linearizability.verify import check

ETCD = """\
INFO  jepsen.util - 0\t:invoke\t:write\t3
INFO  jepsen.util - 1\t:invoke\t:cas\t[3 4]
INFO  jepsen.util - 0\t:ok\t:write\t3
INFO  jepsen.util - 1\t:fail\t:cas\t[3 4]
INFO  jepsen.util - 2\t:invoke\t:cas\t[3 5]
INFO  jepsen.util - 2\t:info\t:cas\t:timed-out
INFO  jepsen.util - 3\t:invoke\t:read\tnil
INFO  jepsen.util - 3\t:fail\t:read\t:timed-out
INFO  jepsen.util - 0\t:invoke\t:read\tnil
INFO  jepsen.util - 0\t:ok\t:read\t5
"""
STORE = """\
{:process 0, :type :invoke, :f :put, :key "k", :value "a"}
{:process 0, :type :ok, :f :put, :key "k", :value "a"}
{:process 1, :type :invoke, :f :append, :key "k", :value "b"}
{:process 0, :type :invoke, :f :get, :key "k", :value nil}
{:process 1, :type :ok, :f :append, :key "k", :value "b"}
{:process 0, :type :ok, :f :get, :key "k", :value "ab"}
{:process 2, :type :invoke, :f :get, :key "l", :value nil}
{:process 2, :type :ok, :f :get, :key "l", :value ""}
"""


def test_etcd_log_is_read_as_events_of_a_register(tmp_path):
    log = tmp_path / "register.log"
    log.write_text(ETCD)
    events = read_etcd_log(log)
    kinds = [EventKind.INVOKE, EventKind.INVOKE, EventKind.OK, EventKind.OK, EventKind.INVOKE, EventKind.INFO]
    assert [event.kind for event in events[:6]] == kinds
    assert [event.op_id for event in events[:6]] == [0, 1, 0, 1, 2, 2]
    assert (events[1].value, events[3].value) == (("cas", 3, 4), False)
    assert events[-1].value == 5
    assert check(events, compare_and_set()).verdict is Verdict.OK
    log.write_text(ETCD.replace(":read\t5", ":read\t4"))
    assert check(read_etcd_log(log), compare_and_set()).verdict is Verdict.VIOLATION


def test_key_value_log_is_judged_by_key(tmp_path):
    log = tmp_path / "store.txt"
    log.write_text(STORE)
    verification = check(read_key_value_log(log), key_value())
    assert [(outcome.key, outcome.verdict) for outcome in verification.outcomes] == [
        ("k", Verdict.OK),
        ("l", Verdict.OK),
    ]
    log.write_text(STORE.replace('"ab"', '"ba"'))
    verification = check(read_key_value_log(log), key_value())
    assert [str(outcome.verdict) for outcome in verification.outcomes] == ["violation", "ok"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INFO nothing of the kind", r"short.log, line 1: not a line of a log of this form: INFO nothing of the kind"),
        (ETCD + "INFO  jepsen.util - 9\t:ok\t:read\t5\n", r"line 11: process 9 completes what it did not invoke"),
        (ETCD + "INFO  jepsen.util - 9\t:invoke\t:cas\t[1]\n", r"line 11: not a line of a log of this form"),
    ],
)
def test_invalid_log_is_rejected(tmp_path, text, message):
    log = tmp_path / "short.log"
    log.write_text(text)
    with pytest.raises(HistoryError, match=message):
        read_etcd_log(log)


@pytest.fixture
def verdict_of(tmp_path):
    def judge(text):
        log = tmp_path / "log"
        log.write_text(text)
        return judge_file(log).judgement.verdict

    return judge


def etcd(*lines):
    return "".join(f"INFO  jepsen.util - {line.replace(' :', chr(9) + ':')}\n" for line in lines)


def test_outcome_of_a_completion_is_respected(verdict_of):
    begun = ("0 :invoke :write\t1", "0 :ok :write\t1", "1 :invoke :cas\t[1 2]")
    # A failed CAS means that the register had another value. Here it had the expected one, so no read is permitted.
    for end, may_read in ((":info", {1, 2}), (":ok", {2}), (":fail", set())):
        for value in (1, 2):
            text = etcd(*begun, f"1 {end} :cas\t[1 2]", "2 :invoke :read\tnil", f"2 :ok :read\t{value}")
            expected = Verdict.OK if value in may_read else Verdict.VIOLATION
            assert verdict_of(text) is expected, (end, value)


@pytest.mark.parametrize(
    ("invocation", "completion", "message"),
    [
        (":write\t1", ":ok :read\t7", r"line 2: process 0 completes read\(\), but invoked write\(1\) on line 1"),
        (":write\t1", ":ok :write\t2", r"line 2: process 0 completes write\(2\), but invoked write\(1\) on line 1"),
        (":cas\t[1 2]", ":ok :cas\t[7 9]", r"line 2: process 0 completes cas\(7, 9\), but invoked cas\(1, 2\)"),
        (":cas\t[1 2]", ":info :write\t:timed-out", r"line 2: process 0 completes write\(\), but invoked cas\(1, 2\)"),
        (":read\tnil", ":ok :read\t:timed-out", "line 2: not a line of a log of this form"),
        (":write\t1", ":ok :write\t:timed-out", "line 2: not a line of a log of this form"),
        (":write\t:timed-out", ":ok :write\t1", "line 1: not a line of a log of this form"),
    ],
)
def test_completion_of_another_operation_is_rejected(verdict_of, invocation, completion, message):
    with pytest.raises(HistoryError, match=message):
        verdict_of(etcd(f"0 :invoke {invocation}", f"0 {completion}"))


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (':ok, :f :put, :key "1", :value "a"', r"completes put\('1', 'a'\), but invoked put\('0', 'a'\) on line 1"),
        (':ok, :f :get, :key "0", :value "a"', r"completes get\('0'\), but invoked put\('0', 'a'\) on line 1"),
        (':ok, :f :put, :key "0", :value nil', "not a line of a log of this form"),
    ],
)
def test_completion_of_another_operation_of_a_store_is_rejected(verdict_of, end, message):
    invoked = '{:process 0, :type :invoke, :f :put, :key "0", :value "a"}\n'
    with pytest.raises(HistoryError, match=f"line 2: .*{message}"):
        verdict_of(f"{invoked}{{:process 0, :type {end}}}\n")


def test_lines_of_other_loggers_and_of_the_nemesis_are_skipped(verdict_of):
    foreign = "INFO  jepsen.core - Worker 0 starting\nINFO  jepsen.util - :nemesis\t:info\t:start\tnil\n"
    text = foreign + etcd("0 :invoke :write\t-3", "0 :ok :write\t-3") + foreign + etcd("1 :invoke :read\tnil")
    assert verdict_of(text + etcd("1 :ok :read\t-3")) is Verdict.OK
    assert verdict_of(text + etcd("1 :ok :read\t3")) is Verdict.VIOLATION


@pytest.mark.parametrize(("end", "permitted"), [("info", {"", "a"}), ("fail", {""}), ("ok", {"a"})])
def test_outcome_of_a_put_is_respected(verdict_of, end, permitted):
    put = ':f :put, :key "k", :value "a"}\n'
    for value in ("", "a"):
        text = f"{{:process 0, :type :invoke, {put}{{:process 0, :type :{end}, {put}"
        text = "{:process :nemesis, :type :info, :f :start, :value nil}\n" + text
        text += '{:process 1, :type :invoke, :f :get, :key "k", :value nil}\n'
        text += f'{{:process 1, :type :ok, :f :get, :key "k", :value "{value}"}}\n'
        assert verdict_of(text) is (Verdict.OK if value in permitted else Verdict.VIOLATION), value
