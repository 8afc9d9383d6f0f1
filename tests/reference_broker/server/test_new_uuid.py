"""Random UUIDs that can be used as command line arguments."""

from uuid import UUID

from reference_broker.server import new_uuid as module


def test_uuid_never_starts_with_a_dash(monkeypatch):
    with_dash, without = UUID(int=0xF8 << 120), UUID(int=0xF4 << 120)
    generated = iter([with_dash, with_dash, without])
    monkeypatch.setattr(module, "uuid4", lambda: next(generated))
    assert module.new_uuid() == without
