"""Limits for foreign files: the length of a line, and the unpacked size of a compressed file."""

import gzip

import pytest

from linearizability.history.errors import HistoryError
from linearizability.importers import source


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_line_longer_than_the_limit_is_rejected(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(source, "LINE_BYTES_MAX", 100)
    (tmp_path / "short").write_bytes(pack(b"x" * 99 + b"\n" + b"y"))
    assert list(source.read_lines(tmp_path / "short")) == [(1, "x" * 99 + "\n"), (2, "y")]
    (tmp_path / "long").write_bytes(pack(b"x\n" + b"y" * 101))
    with pytest.raises(HistoryError, match="long, line 2: longer than 100 bytes"):
        list(source.read_lines(tmp_path / "long"))


def test_compressed_file_larger_than_the_limit_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "UNPACKED_BYTES_MAX", 100)
    lines = b"x" * 9 + b"\n"
    (tmp_path / "plain").write_bytes(lines * 11)
    assert len(list(source.read_lines(tmp_path / "plain"))) == 11
    (tmp_path / "small.gz").write_bytes(gzip.compress(lines * 10))
    assert len(list(source.read_lines(tmp_path / "small.gz"))) == 10
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(lines * 11))
    with pytest.raises(HistoryError, match=r"bomb\.gz, line 11: the compressed file unpacks to more than 100 bytes"):
        list(source.read_lines(tmp_path / "bomb.gz"))
