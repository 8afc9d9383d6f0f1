"""Diagrams of docs/state-machines.md, which must equal the transition tables in the code.

`python -m tests.reference_broker.test_state_machines_page` updates the page.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference_broker.core import broker_lifecycle_manager
from reference_broker.core.controller import broker_heartbeat_manager
from reference_broker.core.quorum import quorum_state
from reference_broker.core.replication import fetch_state, isr, partition

PAGE = Path(__file__).parents[2] / "docs" / "state-machines.md"
BLOCK = re.compile(r"<!-- (?P<name>[a-z -]+) -->\n```mermaid\n(?P<drawing>.*?)```\n", re.DOTALL)
LABELS = {
    broker_lifecycle_manager.Trigger.START: "the process starts",
    broker_lifecycle_manager.Trigger.CAUGHT_UP: "it has its registration",
    broker_lifecycle_manager.Trigger.UNFENCED: "the controller unfences it",
    broker_lifecycle_manager.Trigger.STOP: "SIGTERM",
    broker_lifecycle_manager.Trigger.SHOULD_SHUT_DOWN: "it should shut down",
    broker_heartbeat_manager.DesiredState.SERVE: "wants to serve",
    broker_heartbeat_manager.DesiredState.BE_FENCED: "wants to be fenced",
    broker_heartbeat_manager.DesiredState.SHUT_DOWN: "wants to shut down",
    broker_heartbeat_manager.DesiredState.SHUT_DOWN_FENCED: "wants both",
    broker_heartbeat_manager.Condition.ALWAYS: "",
    broker_heartbeat_manager.Condition.CAUGHT_UP: ", caught up",
    broker_heartbeat_manager.Condition.LEADS: ", leads",
    broker_heartbeat_manager.Condition.OTHERS_CAUGHT_UP: ", others caught up",
}


def labelled(table) -> Iterator[str]:
    """Yield a diagram line for each entry of a table that maps state and trigger to the next state."""
    for (state, trigger), then in table.items():
        yield f"{state.name} --> {then.name}: {trigger.value if isinstance(trigger.value, str) else LABELS[trigger]}"


def plain(table) -> Iterator[str]:
    """Yield diagram lines for a table that maps each state to the permitted next states."""
    for state, following in table.items():
        for then in sorted(following, key=lambda follower: follower.value):
            yield f"{state.name} --> {then.name}"


def conditional(table) -> Iterator[str]:
    """Yield a diagram line for each transition of the heartbeat table that changes the state."""
    for (state, desired), rows in table.items():
        for condition, then in rows:
            if then is not state:
                yield f"{state.name} --> {then.name}: {LABELS[desired]}{LABELS[condition]}"


DRAWINGS = {
    "quorum node": lambda: labelled(quorum_state.TRANSITIONS),
    "broker lifecycle": lambda: labelled(broker_lifecycle_manager.TRANSITIONS),
    "broker as the controller has it": lambda: conditional(broker_heartbeat_manager.TRANSITIONS),
    "replica": lambda: plain(partition.ROLES),
    "isr": lambda: plain(isr.TRANSITIONS),
    "replication from a leader": lambda: plain(fetch_state.TRANSITIONS),
}


def draw(name: str) -> str:
    return "".join(f"{line}\n" for line in ("stateDiagram-v2", *(f"    {line}" for line in DRAWINGS[name]())))


@pytest.mark.parametrize("name", DRAWINGS)
def test_diagram_equals_the_table(name):
    shown = {found["name"]: found["drawing"] for found in BLOCK.finditer(PAGE.read_text())}
    assert shown[name] == draw(name), "run: python -m tests.reference_broker.test_state_machines_page"


def test_page_has_exactly_these_diagrams():
    assert [found["name"] for found in BLOCK.finditer(PAGE.read_text())] == list(DRAWINGS)


def redraw() -> None:
    def drawn(found: re.Match[str]) -> str:
        return f"<!-- {found['name']} -->\n```mermaid\n{draw(found['name'])}```\n"

    PAGE.write_text(BLOCK.sub(drawn, PAGE.read_text()))


if __name__ == "__main__":
    redraw()
