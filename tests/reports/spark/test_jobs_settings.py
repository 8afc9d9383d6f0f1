"""Spark engine of the report: it changes a setting of the session, and restores the setting when it is closed."""

import contextlib
from types import SimpleNamespace

import pytest

from reports.spark import jobs

SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"


class Settings:
    """Fake of `RuntimeConfig`, the settings of a running session."""

    def __init__(self, **values):
        self.values = values

    def get(self, name, default):
        return self.values.get(name, default)

    def set(self, name, value):
        self.values[name] = value

    def unset(self, name):
        self.values.pop(name, None)


@pytest.fixture
def engine_on(monkeypatch):
    """Return a function that makes the engine for a session with the given settings."""
    monkeypatch.setattr(jobs, "watching", lambda *_: contextlib.nullcontext())

    def engine_on(settings):
        session = SimpleNamespace(conf=settings)
        monkeypatch.setattr(jobs, "spark_session", lambda _: contextlib.nullcontext(session))
        return jobs.spark_engine()

    return engine_on


@pytest.mark.parametrize("before", [{}, {SETTING: "64"}])
@pytest.mark.parametrize("fails", [False, True])
def test_the_size_of_arrow_batches_is_restored(engine_on, before, fails):
    settings = Settings(**before)
    with contextlib.suppress(RuntimeError), engine_on(settings):
        assert int(settings.values[SETTING]) > 64
        if fails:
            raise RuntimeError
    assert settings.values == before
