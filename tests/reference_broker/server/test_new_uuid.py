"""Ids that can stand on a command line."""

from uuid import UUID

from reference_broker.server import new_uuid as module


def test_none_begins_with_a_dash(monkeypatch):
    with_dash, without = UUID(int=0xF8 << 120), UUID(int=0xF4 << 120)
    drawn = iter([with_dash, with_dash, without])
    monkeypatch.setattr(module, "uuid4", lambda: next(drawn))
    assert module.new_uuid() == without
