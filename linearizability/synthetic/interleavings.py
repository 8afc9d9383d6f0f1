"""Interleavings of transactions that depend on each other in a cycle: the shortest one for each cycle anomaly.

A step is (transaction, kind, log, option); a commit has only the first two. A transaction begins with its first step.
If it has no commit step, it commits after its last step. Both logs are new partitions that the rest of the history does
not use. Each begins with a record that was sent outside transactions. `send` appends a record; `read` returns the
committed records from the beginning.

A step has an option if the broker breaks a rule in it, or if it is a read by a slow consumer that ends before the log
end. The option of a send is the offset of its record. The option of a read is its end offset, or `dirty` if it also
returns uncommitted records.
"""

from collections.abc import Sequence
from typing import Any, Final

from linearizability.synthetic.episode import Episode

BEGIN, SEND, READ, COMMIT = "begin_txn", "send", "read", "commit_txn"
Step = tuple[Any, ...]

INTERLEAVINGS: Final[dict[str, Sequence[Step]]] = {
    "cycle-G0": [(1, SEND, "a"), (2, SEND, "b"), (2, SEND, "a"), (1, SEND, "b")],
    "cycle-G1c": [(1, SEND, "a"), (2, SEND, "b"), (1, READ, "b", "dirty"), (2, READ, "a", "dirty")],
    "cycle-G-single": [(1, READ, "a"), (2, SEND, "a"), (2, SEND, "b"), (1, SEND, "b")],
    "cycle-G2": [(1, READ, "a"), (2, READ, "b"), (1, SEND, "b"), (2, SEND, "a")],
    "cycle-G0-realtime": [(1, SEND, "a", 5), (1, COMMIT), (2, SEND, "a", 4)],
    "cycle-G1c-realtime": [(1, READ, "a", 2), (1, COMMIT), (2, SEND, "a")],
    "cycle-G-single-realtime": [(1, SEND, "a"), (1, COMMIT), (2, READ, "a", 1)],
    "cycle-G2-realtime": [
        (2, READ, "b"), (3, SEND, "b"), (3, COMMIT), (1, READ, "a"), (2, SEND, "a"), (1, COMMIT), (2, COMMIT),
    ],
}  # fmt: skip


def write_interleaving(episode: Episode, steps: Sequence[Step]) -> None:
    """Write the transactions of an interleaving into an episode."""
    _InterleavingWriter(episode).write(steps)


class _InterleavingWriter:
    """Writer of an interleaving, with the content of both logs and the open transactions."""

    def __init__(self, episode: Episode) -> None:
        self._episode = episode
        first = 1_000_000 + 2 * episode.topic.next_op_id
        self._partitions = {"a": first, "b": first + 1}
        self._logs: dict[str, dict[int, tuple[int, int | None]]] = {"a": {}, "b": {}}
        self._open: set[int] = set()

    def write(self, steps: Sequence[Step]) -> None:
        for log in self._logs:
            self._send(None, log)
        last = max(step[0] for step in steps)
        for at, (number, kind, *rest) in enumerate(steps):
            if number not in self._open:
                self._open.add(number)
                self._op(number, BEGIN)
            if kind == COMMIT:
                self._commit(number)
            elif kind == SEND:
                self._send(number, *rest)
            else:
                self._read(number, *rest)
            if number in self._open and number != last and all(step[0] != number for step in steps[at + 1 :]):
                self._commit(number)
        for number in sorted(self._open):
            self._commit(number)
        for number, log in enumerate(self._logs, 8):
            self._read(number, log)

    def _op(self, number: int | None, f: str, **columns: Any) -> int:
        process = self._episode.process + (number or 0)
        if number in self._open:
            columns |= {"txn_seq": number, "txn_id": f"interleaved-{process}"}
        return self._episode.op(process, f, **columns)

    def _commit(self, number: int) -> None:
        self._op(number, COMMIT)
        self._open.remove(number)

    def _send(self, number: int | None, log: str, at: int | None = None) -> None:
        value = self._episode.new_value()
        offset = max(self._logs[log], default=-1) + 1 if at is None else at
        self._logs[log][offset] = (value, number)
        op_id = self._op(number, "produce", acks=-1)
        self._episode.record(op_id, 0, "send", offset, value, **self._place(log))

    def _read(self, number: int, log: str, option: object = None) -> None:
        entries = self._logs[log]
        visible = {
            offset: value for offset, (value, by) in entries.items() if option == "dirty" or by not in self._open
        }
        hidden = [offset for offset in entries if offset not in visible]
        end = option if isinstance(option, int) else min(hidden, default=max(entries) + 1)
        op_id = self._op(number, "poll", isolation="read_committed")
        for offset in range(end):
            # A read beyond the end of the log returns the value of the next send.
            value = visible.get(offset, self._episode.topic.next_value if offset > max(entries) else None)
            if value is not None:
                self._episode.record(op_id, offset, "read", offset, value, **self._place(log))
        self._episode.add("positions", op_id=op_id, before=0, after=end, cause="read", **self._place(log))

    def _place(self, log: str) -> dict[str, Any]:
        return {**self._episode.place, "partition": self._partitions[log]}
