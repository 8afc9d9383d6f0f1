"""Class archive (AppCDS): used only while it, the Java and the jars for which it was made are unchanged."""

import os
from pathlib import Path

import pytest

from linearizability.class_archive import ClassArchive, ClassArchiveError


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return the paths of a Java and two jars. The cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = [tmp_path / name for name in ("java", "alpha.jar", "beta.jar")]
    for path in paths:
        path.write_bytes(b"first")
    return paths


def archive(files):
    java, *jars = files
    return ClassArchive.of("product", java, jars)


def jvm(options):
    """Write the archive as a JVM with these options does; return the last line of its output."""
    (draft,) = (option.partition("=")[2] for option in options if option.startswith("-XX:ArchiveClassesAtExit="))
    Path(draft).write_bytes(b"classes")
    return "a warning"


def jvm_without_archives(options):
    return "Unrecognized VM option 'ArchiveClassesAtExit'"


def test_archive_is_created_once_and_then_used(files):
    assert archive(files).options() == ()
    path = archive(files).make(jvm)
    assert archive(files).options()[0] == f"-XX:SharedArchiveFile={path}"
    assert archive(files).make(jvm_without_archives) == path
    assert {entry.name for entry in path.parent.iterdir()} == {path.name, path.name + ".sha256"}


def test_changed_archive_is_not_used_but_created_again(files):
    path = archive(files).make(jvm)
    path.write_bytes(b"changed")
    assert archive(files).options() == ()
    assert archive(files).make(jvm) == path
    assert archive(files).options()


@pytest.mark.parametrize("replaced", range(3), ids=("java", "first jar", "second jar"))
@pytest.mark.parametrize("field", ["size", "time"])
def test_replaced_java_or_jar_has_another_archive(files, replaced, field):
    archive(files).make(jvm)
    status = files[replaced].stat()
    files[replaced].write_bytes(b"second" if field == "size" else b"other")
    os.utime(files[replaced], ns=(status.st_atime_ns, status.st_mtime_ns + (field == "time")))
    assert archive(files).options() == ()


def test_jvm_that_writes_no_archive_is_an_error_with_its_last_line(files):
    with pytest.raises(ClassArchiveError, match=r"^Unrecognized VM option"):
        archive(files).make(jvm_without_archives)
    with pytest.raises(ClassArchiveError, match=r"^the JVM wrote none$"):
        archive(files).make(lambda _: "")
    assert archive(files).options() == ()
    assert list(archive(files).path.parent.iterdir()) == []


def test_cache_that_cannot_be_written_is_an_error_with_its_path(files, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ClassArchiveError, match=rf"^{tmp_path}/cache.*: cannot be used: "):
        archive(files).make(jvm)
