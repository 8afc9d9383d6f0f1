"""Companions of a chaos round: a companion starts and ends with its round, and its error does not end the round."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from chaos.live.events import ChaosEnded, RoundJudged, RoundNotRun, RoundStarted
from conformance.trial.trial import Trial
from kafkatrial.accompanying import Companions
from kafkatrial.chaos_session import ChaosChoices, make_companions
from kafkatrial.errors import UsageError
from linearizability.history.errors import HistoryError


@pytest.fixture
def calls():
    return []


def companion(calls, *, fails=False):
    @contextmanager
    def accompanied(run_dir):
        calls.append(f"begins {run_dir}")
        yield
        calls.append(f"ends {run_dir}")
        if fails:
            raise HistoryError("the topic is full\nof it")

    return accompanied


def judged(run_dir, **fields):
    return RoundJudged("reference", SimpleNamespace(), run_dir, 1.0, **fields)


def test_companion_runs_beside_a_round_but_not_beside_shrinking_rounds(calls):
    companions = Companions([companion(calls)])
    for event in (
        RoundStarted("reference", Trial(), (), "out/1"),
        judged("out/1"),
        judged("out/1-shrinking-1", is_shrinking=True),
        RoundStarted("reference", Trial(), (), "out/2"),
        RoundNotRun("reference", Trial(), "no"),
        RoundStarted("reference", Trial(), (), "out/3"),
        ChaosEnded(complete=False, seconds=1.0),
    ):
        companions.handle(event)
    assert calls == [f"{action} out/{number}" for number in (1, 2, 3) for action in ("begins", "ends")]
    assert not companions.failed


def test_error_of_a_companion_is_reported_in_one_line_and_the_next_round_has_a_companion(calls, capsys):
    companions = Companions([companion(calls, fails=True)])
    for number in (1, 2):
        companions.handle(RoundStarted("reference", Trial(), (), f"out/{number}"))
        companions.handle(judged(f"out/{number}"))
    assert len(calls) == 4
    assert companions.failed
    assert capsys.readouterr().err == "kafkatrial: the topic is full of it\n" * 2


def test_programming_error_is_raised():
    companions = Companions([lambda _: 1 / 0])
    with pytest.raises(ZeroDivisionError):
        companions.handle(RoundStarted("reference", Trial(), (), "out"))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"history_topic": "t"}, "--history-topic: name the cluster of the topic with --history-bootstrap"),
        ({"history_bootstrap": "h:1"}, "--history-bootstrap: name the topic with --history-topic"),
    ],
)
def test_topic_and_bootstrap_servers_need_each_other(given, line):
    choices = ChaosChoices(("reference",), None, None, None, (), keep_going=False, shrink_minutes=0, out=None, **given)
    with pytest.raises(UsageError, match=line):
        make_companions(choices)
