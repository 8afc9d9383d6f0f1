"""Program for spark-submit: its errors have the exit codes of `kafkatrial check`."""

from contextlib import nullcontext

import pytest

from linearizability.history.errors import HistoryError, HistoryNotWrittenError
from reports.spark import job
from reports.spark.errors import EngineFailedError, EngineUnavailableError


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (HistoryError("damaged"), 4, "kafkatrial: damaged\n"),
        (EngineUnavailableError("no Java"), 4, "kafkatrial: no Java\n"),
        (HistoryNotWrittenError("no space is left"), 3, "kafkatrial: no space is left\n"),
        (EngineFailedError("the job failed"), 3, "kafkatrial: the job failed\n"),
        (RuntimeError("unexpected"), 3, "RuntimeError: unexpected\n"),
    ],
)
def test_an_error_is_no_violation(monkeypatch, capsys, error, code, shown):
    def fail(_run):
        raise error

    monkeypatch.setattr(job, "spark_session", nullcontext)
    monkeypatch.setattr(job, "judge_with_spark", fail)
    assert job.main(["run"]) == code
    assert capsys.readouterr().err.endswith(shown)
