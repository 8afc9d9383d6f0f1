"""Settings: the command line overrides the environment, and both override pyproject.toml; errors name the source."""

import pytest

from kafkatrial.errors import UsageError
from kafkatrial.settings import load_settings


@pytest.fixture(autouse=True)
def _in_an_empty_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("TARGET", "NODES", "SEED", "LEVEL", "PROFILE", "EXPECTATIONS", "OUT", "TARGETS"):
        monkeypatch.delenv(f"KAFKATRIAL_{name}", raising=False)


def write_table(tmp_path, *lines):
    (tmp_path / "pyproject.toml").write_text("\n".join(["[tool.kafkatrial]", *lines]))


def test_defaults():
    settings = load_settings({})
    assert (settings.target, settings.nodes, settings.seed) == (("reference",), None, None)
    assert (settings.level, settings.profile) == ("should", "ci")


def test_each_source_overrides_the_next(tmp_path, monkeypatch):
    write_table(tmp_path, "seed = 1", "nodes = 1", "profile = 'file'")
    monkeypatch.setenv("KAFKATRIAL_SEED", "2")
    monkeypatch.setenv("KAFKATRIAL_NODES", "2")
    settings = load_settings({"seed": 3, "nodes": None})
    assert (settings.seed, settings.nodes, settings.profile) == (3, 2, "file")


def test_targets_are_recipes_or_a_file_of_recipes(tmp_path, monkeypatch):
    write_table(tmp_path, "seed = 1", "[tool.kafkatrial.targets.x]", "start = 'x'")
    assert load_settings({}).seed == 1
    write_table(tmp_path, "targets = 'brokers.toml'")
    assert load_settings({}).targets == "brokers.toml"
    monkeypatch.setenv("KAFKATRIAL_TARGETS", "others.toml")
    assert load_settings({}).targets == "others.toml"


def test_a_seed_of_zero_is_a_value():
    assert load_settings({"seed": 0}).seed == 0


def test_several_targets_from_each_source(tmp_path, monkeypatch):
    write_table(tmp_path, "target = ['a', 'b:1']")
    assert load_settings({}).target == ("a", "b:1")
    monkeypatch.setenv("KAFKATRIAL_TARGET", "c, d:2")
    assert load_settings({"target": ()}).target == ("c", "d:2")
    assert load_settings({"target": ("e",)}).target == ("e",)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"nodes": 0}, "--nodes: input should be greater than or equal to 1"),
        ({"seed": -1}, "--seed: input should be greater than or equal to 0"),
        ({"level": "maybe"}, "--level: input should be 'must' or 'should'"),
    ],
)
def test_a_wrong_option_is_named(given, line):
    with pytest.raises(UsageError) as caught:
        load_settings(given)
    assert str(caught.value) == line


def test_a_wrong_environment_variable_is_named(monkeypatch):
    monkeypatch.setenv("KAFKATRIAL_NODES", "three")
    with pytest.raises(UsageError, match=r"^environment variable KAFKATRIAL_NODES: input should be a valid integer"):
        load_settings({})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nodes = 'x'", r"pyproject.toml, \[tool.kafkatrial\], nodes: input should be a valid integer"),
        ("targts = ['x']", r"pyproject.toml, \[tool.kafkatrial\]: no setting targts; did you mean targets\?"),
        ("targets = ['x']", r"pyproject.toml, \[tool.kafkatrial\], targets: input should be a valid string"),
        ("zzz = 1", r"pyproject.toml, \[tool.kafkatrial\]: no setting zzz; there are target, nodes"),
        ("nodes = ", r"^pyproject.toml: "),
    ],
)
def test_a_wrong_file_is_named(tmp_path, line, message):
    write_table(tmp_path, line)
    with pytest.raises(UsageError, match=message):
        load_settings({})
