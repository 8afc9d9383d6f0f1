"""Memory of a recorder: its peak is below a fixed limit for five million records, their operations and positions."""

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

rounds, batch = int(sys.argv[2]) // 1000, 500  # a round sends a batch of records and reads it
with HistoryWriter(Path(sys.argv[1]), RunInfo("r")) as writer:
    recorder = Recorder(writer)
    for number in range(rounds):
        partition, base_offset = number % 8, number // 8 * batch
        seqs = range(base_offset, base_offset + batch)
        sends = [Sent(seq, f"key-{seq % 97}", seq) for seq in seqs]
        op = recorder.invoke(1, "produce", sends, topic="orders", partition=partition, acks=-1)
        recorder.complete(op, "ok", base_offset=base_offset)
        reads = [Read("orders", "ID", partition, seq, seq, f"key-{seq % 97}", 0, seq) for seq in seqs]
        op = recorder.invoke(2, "poll")
        position = Position("orders", "ID", partition, base_offset, base_offset + batch)
        recorder.complete(op, "ok", reads=reads, positions=[position])
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
