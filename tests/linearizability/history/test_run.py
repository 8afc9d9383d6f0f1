"""run.json: written and read back; files in another format or with wrong members are rejected."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearizability.history.reader import HistoryError, NotARunError
from linearizability.history.run import RunInfo

properties = st.dictionaries(st.text(), st.text(), max_size=3)
runs = st.builds(
    RunInfo,
    run_id=st.text(min_size=1),
    seed=st.none() | st.integers(),
    target=st.none() | st.text(),
    versions=properties,
    topics=st.dictionaries(st.text(), properties, max_size=3),
    cluster=properties,
    clients=st.dictionaries(st.integers(0, 2**31 - 1), properties, max_size=3),
    complete=st.booleans(),
)


@given(run=runs)
def test_written_run_is_read_back(run, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("run")
    run.write(run_dir)
    assert RunInfo.read(run_dir) == run


def test_a_rewrite_leaves_one_file(tmp_path):
    run = RunInfo("r")
    run.write(tmp_path)
    dataclasses.replace(run, complete=True).write(tmp_path)
    assert RunInfo.read(tmp_path).complete
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_members_other_than_format_are_optional(tmp_path):
    (tmp_path / "run.json").write_text('{"format": 1, "cluster": {"brokers": 3, "x": true, "y": "z"}, "more": []}')
    run = RunInfo.read(tmp_path)
    assert run == RunInfo(tmp_path.name, cluster={"brokers": "3", "x": "true", "y": "z"})
    assert not run.complete


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 2}', "format is 2"),
        ('{"format": "1"}', 'format is "1"'),
        ('{"format": true}', "format is true"),
        ("{}", "format is null"),
    ],
)
def test_other_format_is_not_a_run(tmp_path, text, message):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(NotARunError, match=message):
        RunInfo.read(tmp_path)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"run_id": 3}, "run_id is 3, not a string"),
        ({"seed": "three"}, 'seed is "three", not an integer'),
        ({"complete": "yes"}, 'complete is "yes", not true or false'),
        ({"topics": []}, r"topics is \[\], not an object"),
        ({"topics": {"t": 1}}, r"topics\.t is 1, not an object"),
        ({"topics": {"t": {"retention.ms": [1]}}}, r"topics\.t\.retention\.ms is \[1\], not a string"),
        ({"cluster": "none"}, 'cluster is "none", not an object'),
        ({"clients": {"one": {}}}, "'one' is not a process number"),
    ],
)
def test_a_wrong_member_is_named(tmp_path, document, message):
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, **document}))
    with pytest.raises(HistoryError, match=message) as caught:
        RunInfo.read(tmp_path)
    assert not isinstance(caught.value, NotARunError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_file_that_is_not_a_json_object_is_rejected(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(HistoryError, match=r"run\.json") as caught:
        RunInfo.read(tmp_path)
    assert "\n" not in str(caught.value)


def test_directory_without_a_run_is_rejected(tmp_path):
    with pytest.raises(NotARunError, match=r"it has no run\.json"):
        RunInfo.read(tmp_path)
    with pytest.raises(NotARunError, match="no such directory"):
        RunInfo.read(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(NotARunError, match="not a directory"):
        RunInfo.read(tmp_path / "file")
