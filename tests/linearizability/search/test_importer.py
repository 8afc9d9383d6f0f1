"""Logs in the two forms that porcupine's tests read, written here by hand."""

import pytest

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


def test_a_register(tmp_path):
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


def test_a_store(tmp_path):
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
        ("INFO nothing of the kind", r"short.log, line 1: not a line of such a log: INFO nothing of the kind"),
        (ETCD + "INFO  jepsen.util - 9\t:ok\t:read\t5\n", r"line 11: process 9 completes what it did not invoke"),
        (ETCD + "INFO  jepsen.util - 9\t:invoke\t:cas\t[1]\n", r"line 11: not a line of such a log"),
    ],
)
def test_what_is_no_such_log(tmp_path, text, message):
    log = tmp_path / "short.log"
    log.write_text(text)
    with pytest.raises(HistoryError, match=message):
        read_etcd_log(log)
