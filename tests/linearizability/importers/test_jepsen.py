"""Importer of Jepsen's Kafka workload: each of Jepsen's anomalies is found, and damage is reported with its line."""

import json

import pytest

from linearizability.anomalies.catalogue import DEFINITIONS
from linearizability.check_file import import_history, judge_file
from linearizability.history.errors import HistoryError, NotARunError
from linearizability.importers.edn import read_forms
from linearizability.judgement import Verdict
from tests.linearizability.importers.jepsen_cases import CASES, FIVE_SENT, LOST

KNOWN = {definition.name for definition in DEFINITIONS}


def edn(text, first_time=0):
    rows = []
    for number, line in enumerate(filter(None, text.splitlines())):
        process, kind, f, rest = line.split(maxsplit=3)
        process = f":{process}" if process.isalpha() else process
        time = first_time + number
        rows.append(f"{{:index {number}, :time {time}, :process {process}, :type :{kind}, :f :{f}, :value {rest}}}")
    return "\n".join(rows) + "\n"


def as_json(path, text):
    forms = [form for _, form in read_forms(path, enumerate(text.splitlines(), start=1))]
    return "\n".join(json.dumps(form) for form in forms)


def names(path):
    judgement = judge_file(path).judgement
    return {anomaly.name for anomaly in judgement.anomalies if anomaly.verdict is not Verdict.PERMITTED}


@pytest.mark.parametrize("case", CASES)
def test_anomalies_of_jepsen_are_found(tmp_path, case):
    text, expected = CASES[case]
    if not expected <= KNOWN:
        pytest.skip(f"not judged yet: {', '.join(sorted(expected - KNOWN))}")
    path = tmp_path / "history"
    path.write_text(edn(text))
    assert names(path) == expected
    path.write_text(as_json(path, edn(text)))
    assert names(path) == expected


def test_most_cases_have_an_anomaly():
    assert sum(bool(expected) for _, expected in CASES.values()) > len(CASES) // 2


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("[1 #_ #_ 2 3 4]", (1, 4)),
        ("[1 #_2 #_#x 3 #y #_4 5 #_6]", (1, 5)),
        ("{#_ #_ :a 1 :b 2}", {"b": 2}),
    ],
)
def test_discarded_forms_are_skipped(tmp_path, text, form):
    assert list(read_forms(tmp_path, [(1, f"({text})")])) == [(1, form)]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: f"[{text}]",
        lambda text: f"; made by hand\n({text})",
        lambda text: text.replace("{:index", "#jepsen.history.Op{:index"),
        lambda text: text.replace(", :process", "\n  :process"),
        lambda text: text.replace("{:index", '{#_ignored :error #error {:cause "a \\"b\\"" :via #{1 \\a}}, :index'),
    ],
)
def test_other_forms_of_edn_are_read(tmp_path, wrap):
    path = tmp_path / "history.edn"
    path.write_text(wrap(edn(LOST)))
    assert names(path) == {"lost-write"}


def test_actions_of_the_nemesis_become_faults(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(
        edn(f"""{LOST.strip()}
nemesis info start-partition :majority
nemesis info start-partition [:isolated {{"n1" #{{"n2"}}}}]
nemesis info kill :one
nemesis info kill {{"n1" :killed}}
nemesis info stop-partition nil
nemesis info stop-partition :network-healed
nemesis info bitflip ["n1"]
nemesis info bitflip :done
nemesis info check-offsets nil
nemesis info check-offsets nil""")
    )
    faults = import_history(path).table("faults").to_pylist()
    assert [(row["kind"], row["inject_ns"], row["heal_ns"]) for row in faults] == [
        ("cut", 6, 11),
        ("kill", 8, None),
        ("disk", 12, 13),
    ]


def test_run_with_open_operations_is_not_complete(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(edn(FIVE_SENT))
    assert import_history(path).run.complete
    path.write_text(edn(FIVE_SENT + "3 invoke poll [[:poll]]"))
    assert not import_history(path).run.complete


def test_keys_are_partitions(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(edn("0 invoke send [[:send 3 7]]\n0 ok send [[:send 3 [0 7]]]\n"
                        "0 invoke send [[:send :x 7]]\n0 ok send [[:send :x [0 7]]]"))  # fmt: skip
    records = import_history(path).table("records").to_pylist()
    assert [(row["topic"], row["partition"], row["offset"]) for row in records] == [("key", 3, 0), ("key-x", 0, 0)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "0 invoke poll [[:poll]]\n0 invoke poll [[:poll]]",
            "line 6: process 0 invokes, but its operation of line 5",
        ),
        ("0 ok poll [[:poll {}]]", "line 5: process 0 completes what it did not invoke"),
        (
            "0 invoke poll [[:poll]]\n0 ok send [[:poll {}]]",
            "line 6: process 0 completes send, but invoked poll on line 5",
        ),
        ("0 maybe poll [[:poll]]", "line 5: an operation has a type (invoke, ok, fail, info) and an f"),
        ("-1 invoke poll [[:poll]]", "line 5: process is -1, neither a number nor a nemesis"),
        ("0 invoke send [[:send 1 20]]", "line 5: sends 20 to key 1, as line 1 does; a value is sent to a key"),
        ("0 invoke send [[:send 1 x]]", "line 5: value is x, not an integer of 64 bits"),
        ("0 invoke poll [[:drain]]", "line 5: not a micro-operation [send key value] or [poll]: ('drain',)"),
        (
            "0 invoke poll [[:poll]]\n0 ok poll [[:poll {1 [[-4 2]]}]]",
            "line 6: offset is -4, not an integer of 64 bits from 0",
        ),
        ("0 invoke poll [[:poll]]\n0 ok poll [[:poll {1 [[4]]}]]", "line 6: a poll returns (4,), not [offset value]"),
        (
            "0 invoke poll [[:poll]]\n0 ok poll [[:poll [4 2]]]",
            "line 6: a poll returns a map from keys to [offset value]",
        ),
        ("0 invoke poll [[:poll]]\n0 ok poll [[:poll] [:poll]]", "line 6: invokes 1 micro-operations and completes 2"),
        (
            "0 invoke send [[:send 1 50]]\n0 ok send [[:send 2 [0 50]]]",
            "line 6: completes ['send', 2, (0, 50)], but inv",
        ),
        (
            "0 invoke assign 7 :seek-to-beginning? true\n0 ok assign 7",
            "line 5: assign has the value 7, not a list of keys",
        ),
        ("0 invoke poll [[:poll]", "line 5: } does not close the [ of line 5"),
        ("0 invoke poll [[:poll]] {", "line 5: the file ends before this { does"),
        ("0 invoke poll [[:poll]] :a", "line 5: a map whose last key has no value"),
        ('0 invoke poll "', 'line 5: not EDN: "'),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, line, message):
    path = tmp_path / "history.edn"
    path.write_text(edn(FIVE_SENT.strip() + "\n" + line))
    with pytest.raises(HistoryError) as caught:
        judge_file(path)
    assert str(caught.value).startswith(f"{path}, {message}")
    assert "\n" not in str(caught.value)


def test_invalid_times_are_rejected(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(edn(LOST) + edn("7 invoke poll [[:poll]]", first_time=2))
    with pytest.raises(HistoryError, match="line 7: time goes back, from 5 to 2"):
        judge_file(path)
    path.write_text(edn(LOST).replace(":time 3", ":time nil"))
    with pytest.raises(HistoryError, match="line 4: time is None, not nanoseconds from 0 as in other rows"):
        judge_file(path)
    path.write_text(edn(LOST).replace(":time 0", ":time nil"))
    with pytest.raises(HistoryError, match="line 2: time is 1, but the first row has none"):
        judge_file(path)


def test_damaged_json_is_rejected(tmp_path):
    path = tmp_path / "history.json"
    whole = as_json(path, edn(LOST))
    path.write_text(whole + "\n{")
    with pytest.raises(HistoryError, match=r"line 7: not JSON: \{"):
        judge_file(path)
    path.write_text(f"[{whole.replace(chr(10), ',' + chr(10))}, 5]")
    with pytest.raises(HistoryError, match="line 6: not an operation: 5"):
        judge_file(path)


def test_history_of_another_workload_is_rejected(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(edn("0 invoke read nil\n0 ok read 4"))
    with pytest.raises(NotARunError, match="not of Jepsen's Kafka workload"):
        judge_file(path)


def test_transactions_without_a_send_or_a_poll_need_a_model(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(edn("0 invoke txn [[:append 1 2] [:r 1 nil]]\n0 ok txn [[:append 1 2] [:r 1 [2]]]"))
    with pytest.raises(NotARunError, match=r"name its model \(--model\)"):
        judge_file(path)
    path.write_text(edn("0 invoke txn [[:send 1 2] [:r 1 nil]]\n0 ok txn [[:send 1 [0 2]] [:r 1 [2]]]"))
    with pytest.raises(HistoryError, match="line 2: not a micro-operation"):
        judge_file(path)


def test_characters_are_read(tmp_path):
    text = r"[\newline \space \tab \return \formfeed \backspace \n \u \u03a9 \\ \"]"
    (form,) = read_forms(tmp_path, [(1, f"({text})")])
    assert form == (1, ("\n", " ", "\t", "\r", "\f", "\b", "n", "u", "\u03a9", "\\", '"'))
    with pytest.raises(HistoryError, match=r"line 1: half of a surrogate pair: \\ud83d"):
        list(read_forms(tmp_path, [(1, r"\ud83d")]))


def test_surrogate_pairs_are_decoded_and_half_of_one_is_rejected(tmp_path):
    row = '{:process 0, :type :invoke, :f :send, :value [[:send "%s" 1]]}\n'
    path = tmp_path / "history.edn"
    path.write_text(row % r"\ud83d\ude00")
    assert import_history(path).table("records")["topic"].to_pylist() == ["key-\U0001f600"]
    path.write_text(row % r"\ud83d")
    with pytest.raises(HistoryError, match=r"line 1: half of a surrogate pair: \\ud83d"):
        import_history(path)
    path.write_text('\n{"process": 0, "type": "invoke", "f": "send", "value": [["send", "\\ud83d", 1]]}')
    with pytest.raises(HistoryError, match="line 2: half of a surrogate pair: "):
        import_history(path)
