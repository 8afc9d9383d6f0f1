"""Every error is one line and an exit code."""

import importlib

import pytest

from fixtures.targets.target import NotInstalledError, TargetError
from kafkatrial.errors import KNOWN_ERRORS, UsageError, exit_code_of, report
from kafkatrial.exit_codes import ExitCode


@pytest.mark.parametrize("name", KNOWN_ERRORS)
def test_every_known_error_exists(name):
    module, _, qualified = name.rpartition(".")
    assert issubclass(getattr(importlib.import_module(module), qualified), Exception)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), ExitCode.USAGE),
        (NotInstalledError("x"), ExitCode.USAGE),
        (TargetError("x"), ExitCode.INTERNAL),
        (type("Narrower", (NotInstalledError,), {})("x"), ExitCode.USAGE),
        (ValueError("x"), None),
    ],
)
def test_a_subclass_counts_as_its_nearest_known_base(error, code):
    assert exit_code_of(error) == code


def test_a_known_error_is_one_line(capsys):
    assert report(NotInstalledError("not there:\n  run this")) == ExitCode.USAGE
    assert capsys.readouterr().err == "kafkatrial: not there: run this\n"


def test_an_unforeseen_error_leaves_its_traceback_in_the_run_directory(tmp_path, capsys):
    try:
        raise KeyError("oops\nmore")
    except KeyError as error:
        code = report(error, tmp_path)
    kept = tmp_path / "internal-error.txt"
    assert code == ExitCode.INTERNAL
    assert capsys.readouterr().err.count("\n") == 1
    assert "Traceback" in kept.read_text()


def test_every_exit_code_has_a_meaning():
    assert all(code.meaning for code in ExitCode)
