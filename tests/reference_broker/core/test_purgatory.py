"""Delayed operations are checked when a key changes, complete once, and are dropped with their connection."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from reference_broker.core.clock import Now
from reference_broker.core.connection import Connection
from reference_broker.core.purgatory import Purgatory
from reference_broker.core.timers import Timers

NOW = Now(0, 1_000)


@dataclass(eq=False)
class Operation:
    """An operation that completes if it is `ready` when it is checked, or at its deadline.

    `checked` lists the changed key of each check; None is the deadline.
    """

    connection: Connection | None = None
    ready: bool = False
    checked: list[Hashable | None] = field(default_factory=list)
    on_complete: Callable[[], None] = lambda: None

    def try_complete(self, now: Now, changed_key: Hashable | None) -> bool:
        self.checked.append(changed_key)
        if self.ready or changed_key is None:
            self.on_complete()
            return True
        return False


def watched(purgatory: Purgatory, *keys: str, **fields: object) -> Operation:
    """Return an operation that waits under these keys."""
    operation = Operation(**fields)
    purgatory.watch(operation, keys, NOW.monotonic_ms + 500)
    return operation


def test_an_operation_is_checked_under_its_keys_until_it_completes() -> None:
    purgatory = Purgatory(Timers())
    operation = watched(purgatory, "a", "b")
    purgatory.check_and_complete("a", NOW)
    purgatory.check_and_complete("c", NOW)
    operation.ready = True
    purgatory.check_and_complete("b", NOW)
    purgatory.check_and_complete("a", NOW)
    assert operation.checked == ["a", "b"]
    assert len(purgatory) == 0


def test_an_operation_is_forced_to_complete_at_its_deadline() -> None:
    timers = Timers()
    purgatory = Purgatory(timers)
    completed, expired = watched(purgatory, "a", ready=True), watched(purgatory, "b")
    purgatory.check_and_complete("a", NOW)
    timers.fire(Now(0, 1_499))
    assert expired.checked == []
    timers.fire(Now(0, 1_500))
    assert (completed.checked, expired.checked) == (["a"], [None])
    assert timers.next_ms is None


def test_an_operation_is_dropped_with_its_connection() -> None:
    purgatory = Purgatory(Timers())
    closed, open_ = Connection(), Connection()
    dropped = watched(purgatory, "a", connection=closed, ready=True)
    kept = watched(purgatory, "a", connection=open_, ready=True)
    purgatory.drop(closed)
    purgatory.check_and_complete("a", NOW)
    assert (dropped.checked, kept.checked) == ([], ["a"])


def test_an_operation_whose_completion_changes_its_own_key_completes_once() -> None:
    purgatory = Purgatory(Timers())
    operation = watched(purgatory, "a", ready=True)
    other = watched(purgatory, "a", ready=True)
    operation.on_complete = lambda: purgatory.check_and_complete("a", NOW)
    purgatory.check_and_complete("a", NOW)
    assert (operation.checked, other.checked) == (["a"], ["a"])
