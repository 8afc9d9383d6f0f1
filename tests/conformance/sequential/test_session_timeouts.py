"""The end of a member's session is judged by heartbeats, and by the time until the group has no member."""

from dataclasses import dataclass, field

import pytest

from conformance.sequential import timeouts
from conformance.sequential.session_timeouts import await_end
from conformance.sequential.steps import AwaitSessionTimeout, Heartbeat

TIMEOUT_S = 3.0


@dataclass
class Group:
    """A group with one member, and the clock of the process that sends its heartbeats.

    :ivar applied_timeout_s: the session timeout that the coordinator applies; it may be another than the member's.
    :ivar delay_at_s: a time at which the process is delayed for longer than the session timeout.
    """

    applied_timeout_s: float = TIMEOUT_S
    extends_sessions: bool = True
    delay_at_s: float = float("inf")
    now_s: float = 100.0
    last_s: float = field(default=100.0)

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if self.now_s >= self.delay_at_s:
            self.now_s, self.delay_at_s = self.now_s + 2 * TIMEOUT_S, float("inf")

    def send(self, step):
        self.now_s += 0.001
        is_member = self.now_s < self.last_s + self.applied_timeout_s
        if not isinstance(step, Heartbeat):
            return {"error": "NONE", "members": (0,) if is_member else ()}
        if is_member and self.extends_sessions:
            self.last_s = self.now_s
        return {"error": "NONE" if is_member else "UNKNOWN_MEMBER_ID"}


def ended(group: Group):
    return await_end(AwaitSessionTimeout(0), TIMEOUT_S, group.send, group)


def test_a_member_is_removed_after_its_session_timeout():
    assert ended(Group()) == {"heartbeats": ("NONE",), "removed": "after the session timeout"}


@pytest.mark.parametrize(
    ("applied", "removed"),
    [(TIMEOUT_S / 2, "early"), (2 * TIMEOUT_S, "after the session timeout"), (10 * TIMEOUT_S, "late")],
)
def test_another_session_timeout_is_noticed_unless_it_is_little_longer(applied, removed):
    assert TIMEOUT_S * 2 < TIMEOUT_S + timeouts.EFFECT_TIMEOUT_S < TIMEOUT_S * 10
    assert ended(Group(applied)) == {"heartbeats": ("NONE",), "removed": removed}


def test_heartbeats_that_do_not_extend_a_session_are_rejected_after_its_timeout():
    assert ended(Group(extends_sessions=False)) == {"heartbeats": ("NONE", "UNKNOWN_MEMBER_ID"), "removed": "early"}


@pytest.mark.parametrize("applied", [TIMEOUT_S, TIMEOUT_S / 2])
def test_nothing_is_judged_after_a_delay_between_two_heartbeats(applied):
    assert ended(Group(applied, delay_at_s=101.0)) == {}
