"""What waits is asked when something happened, answered once, and forgotten with its connection."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.purgatory import Purgatory
from reference_broker.core.timers import Timers

NOW = Now(0, 1_000)


@dataclass(eq=False)
class Waiting:
    """Asks to wait until `ready`; what it was asked for, in `asked`."""

    connection: Connection | None = None
    ready: bool = False
    asked: list[Hashable | None] = field(default_factory=list)
    on_answer: Callable[[], None] = lambda: None

    def answer(self, now: Now, happened: Hashable | None) -> bool:
        self.asked.append(happened)
        if self.ready or happened is None:
            self.on_answer()
            return True
        return False


def waiting_under(purgatory: Purgatory, *keys: str, **fields: object) -> Waiting:
    operation = Waiting(**fields)
    purgatory.wait(operation, keys, NOW.monotonic_ms + 500)
    return operation


def test_it_is_asked_about_what_happened_until_it_is_answered() -> None:
    purgatory = Purgatory(Timers())
    operation = waiting_under(purgatory, "a", "b")
    purgatory.check_and_complete("a", NOW)
    purgatory.check_and_complete("c", NOW)
    operation.ready = True
    purgatory.check_and_complete("b", NOW)
    purgatory.check_and_complete("a", NOW)
    assert operation.asked == ["a", "b"]
    assert len(purgatory) == 0


def test_when_its_time_is_over_it_is_answered_anyway_and_only_then() -> None:
    timers = Timers()
    purgatory = Purgatory(timers)
    answered, expired = waiting_under(purgatory, "a", ready=True), waiting_under(purgatory, "b")
    purgatory.check_and_complete("a", NOW)
    timers.fire(Now(0, 1_499))
    assert expired.asked == []
    timers.fire(Now(0, 1_500))
    assert (answered.asked, expired.asked) == (["a"], [None])
    assert timers.next_ms is None


def test_with_its_connection_it_is_forgotten_unanswered() -> None:
    purgatory = Purgatory(Timers())
    gone, other = Connection(), Connection()
    forgotten = waiting_under(purgatory, "a", connection=gone, ready=True)
    kept = waiting_under(purgatory, "a", connection=other, ready=True)
    purgatory.drop(gone)
    purgatory.check_and_complete("a", NOW)
    assert (forgotten.asked, kept.asked) == ([], ["a"])


def test_an_answer_that_makes_something_happen_is_not_asked_for_again() -> None:
    purgatory = Purgatory(Timers())
    operation = waiting_under(purgatory, "a", ready=True)
    neighbour = waiting_under(purgatory, "a", ready=True)
    operation.on_answer = lambda: purgatory.check_and_complete("a", NOW)
    purgatory.check_and_complete("a", NOW)
    assert (operation.asked, neighbour.asked) == (["a"], ["a"])
