"""What was built into the cache is used as it was built, or not at all."""

import pytest

from linearizability.cache import move_into_cache, record_of, why_refused


def build(directory, text="built"):
    made = directory / "draft"
    (made / "inner").mkdir(parents=True)
    (made / "One.class").write_text(text)
    (made / "inner" / "Two.class").write_text(text)
    final = directory / "cache" / "classes"
    final.parent.mkdir(exist_ok=True)
    move_into_cache(made, final)
    return final


def test_a_directory_is_what_was_built_and_is_replaced_whole(tmp_path):
    final = build(tmp_path)
    assert why_refused(final) is None
    (final / "Three.class").touch()
    assert "SHA-256" in why_refused(final)
    assert build(tmp_path, "again") == final
    assert why_refused(final) is None
    assert {path.name for path in final.parent.iterdir()} == {"classes", record_of(final).name}
    assert (final / "One.class").read_text() == "again"
    assert not (final / "Three.class").exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda final: (final / "inner" / "Two.class").write_text("changed"),
        lambda final: (final / "One.class").unlink(),
        lambda final: (final / "inner" / "Two.class").rename(final / "Two.class"),
        lambda final: (final / "Link.class").symlink_to("One.class"),
        lambda final: record_of(final).unlink(),
        lambda final: record_of(final).chmod(0o666),
        lambda final: final.chmod(0o777),
    ],
)
def test_a_directory_in_which_anything_was_changed_is_refused(tmp_path, change):
    final = build(tmp_path)
    change(final)
    assert why_refused(final)


def test_what_every_user_could_write_when_it_was_built_is_closed(tmp_path):
    draft = tmp_path / "draft"
    draft.touch()
    draft.chmod(0o777)
    move_into_cache(draft, tmp_path / "final")
    assert (tmp_path / "final").stat().st_mode & 0o777 == 0o755


def test_what_is_not_there_is_refused_in_a_phrase(tmp_path):
    assert why_refused(tmp_path / "absent" / "file")
    assert why_refused(tmp_path / "file")
