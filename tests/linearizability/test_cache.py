"""Cache: an entry is used only if it is unchanged since it was built."""

import pytest

from linearizability.cache import move_into_cache, record_of, rejection_reason


def build(directory, text="built"):
    draft = directory / "draft"
    (draft / "inner").mkdir(parents=True)
    (draft / "One.class").write_text(text)
    (draft / "inner" / "Two.class").write_text(text)
    final = directory / "cache" / "classes"
    final.parent.mkdir(exist_ok=True)
    move_into_cache(draft, final)
    return final


def test_directory_is_accepted_unchanged_and_replaced_as_a_whole(tmp_path):
    final = build(tmp_path)
    assert rejection_reason(final) is None
    (final / "Three.class").touch()
    assert "SHA-256" in rejection_reason(final)
    assert build(tmp_path, "again") == final
    assert rejection_reason(final) is None
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
        lambda final: record_of(final).chmod(0o664),
        lambda final: final.chmod(0o777),
        lambda final: final.chmod(0o775),
        lambda final: final.parent.chmod(0o775),
    ],
)
def test_a_changed_directory_is_rejected(tmp_path, change):
    final = build(tmp_path)
    change(final)
    assert rejection_reason(final)


def test_write_permissions_of_other_users_are_removed(tmp_path):
    draft = tmp_path / "draft"
    draft.touch()
    draft.chmod(0o777)
    tmp_path.chmod(0o775)  # as mkdir does with umask 002
    move_into_cache(draft, tmp_path / "final")
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "final", tmp_path)] == [0o755] * 2
    assert rejection_reason(tmp_path / "final") is None


def test_a_missing_file_is_rejected_with_a_reason(tmp_path):
    assert rejection_reason(tmp_path / "absent" / "file")
    assert rejection_reason(tmp_path / "file")
