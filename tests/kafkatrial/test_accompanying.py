"""What goes beside a round begins and ends with it, and harms it in nothing."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from chaos.live.events import ChaosEnded, RoundJudged, RoundNotRun, RoundStarted
from chaos.trial import Trial
from kafkatrial.accompanying import Companions
from kafkatrial.breaking import Choices, beside
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


def judged(run_dir):
    return RoundJudged("reference", SimpleNamespace(), run_dir, 1.0)


def test_companion_begins_and_ends_with_its_round_and_not_with_one_that_shrinks_it(calls):
    companions = Companions([companion(calls)])
    for event in (
        RoundStarted("reference", Trial(), (), "out/1"),
        judged("out/1-shrinking-1"),
        judged("out/1"),
        RoundStarted("reference", Trial(), (), "out/2"),
        RoundNotRun("reference", Trial(), "no"),
        RoundStarted("reference", Trial(), (), "out/3"),
        ChaosEnded(complete=False, seconds=1.0),
    ):
        companions.handle(event)
    assert calls == [f"{what} out/{number}" for number in (1, 2, 3) for what in ("begins", "ends")]
    assert not companions.failed


def test_error_of_a_companion_is_one_line_and_the_next_round_has_its_companion(calls, capsys):
    companions = Companions([companion(calls, fails=True)])
    for number in (1, 2):
        companions.handle(RoundStarted("reference", Trial(), (), f"out/{number}"))
        companions.handle(judged(f"out/{number}"))
    assert len(calls) == 4
    assert companions.failed
    assert capsys.readouterr().err == "kafkatrial: the topic is full of it\n" * 2


def test_mistake_of_ours_is_not_hidden():
    companions = Companions([lambda _: 1 / 0])
    with pytest.raises(ZeroDivisionError):
        companions.handle(RoundStarted("reference", Trial(), (), "out"))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"history_topic": "t"}, "--history-topic: name its Kafka with --history-bootstrap"),
        ({"history_bootstrap": "h:1"}, "--history-bootstrap: name the topic with --history-topic"),
    ],
)
def test_topic_and_its_kafka_go_together(given, line):
    choices = Choices(("reference",), None, None, None, (), keep_going=False, shrink_minutes=0, out=None, **given)
    with pytest.raises(UsageError, match=line):
        beside(choices)
