"""Memory of a recorder: five million records with their operations and positions stay below a fixed peak."""

import subprocess
import sys
from pathlib import Path

import pytest

from linearizability.history.reader import open_history

RECORDS = 5_000_000
PEAK_MAX_MB = 500

CHILD = """
import sys
from pathlib import Path
from linearizability.history.recorder import Position, Read, Recorder, Sent
from linearizability.history.run import RunInfo
from linearizability.history.writer import HistoryWriter
from tests.peak_memory import peak_memory_mb

rounds, batch = int(sys.argv[2]) // 1000, 500
with HistoryWriter(Path(sys.argv[1]), RunInfo("r")) as writer:
    recorder = Recorder(writer)
    for number in range(rounds):
        partition, first = number % 8, number // 8 * batch
        seqs = range(first, first + batch)
        sends = [Sent(seq, f"key-{seq % 97}", seq) for seq in seqs]
        op = recorder.invoke(1, "produce", sends, topic="orders", partition=partition, acks=-1)
        recorder.complete(op, "ok", base_offset=first)
        reads = [Read("orders", "ID", partition, seq, seq, f"key-{seq % 97}", 0, seq) for seq in seqs]
        op = recorder.invoke(2, "poll")
        recorder.complete(op, "ok", reads=reads, positions=[Position("orders", "ID", partition, first, first + batch)])
print(peak_memory_mb())
"""


@pytest.mark.slow
@pytest.mark.sampled(3)
def test_five_million_records_in_bounded_memory(tmp_path):
    command = [sys.executable, "-c", CHILD, str(tmp_path / "run"), str(RECORDS)]
    child = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert int(child.stdout) < PEAK_MAX_MB
    history = open_history(tmp_path / "run")
    assert history.dataset("records").count_rows() == RECORDS
    assert history.dataset("operations").count_rows() == RECORDS // 500
    assert history.dataset("positions").count_rows() == RECORDS // 1000
