"""Log matching of Raft: an epoch has one leader, which writes each offset once.

Therefore, if two logs have a batch of the same epoch at the same offset, the two batches are equal, and by induction
all batches before them are equal too.
"""

from reference_broker.simulation.invariants.log_mirror import Batch
from reference_broker.simulation.invariants.violation import InvariantViolation

_UNKNOWN_EPOCH = -1


class LogMatching:
    """All batches that the replicas of a log ever had.

    :param invariant: the name of the violated invariant.
    """

    __slots__ = ("_epoch_starts", "_invariant", "_written")

    def __init__(self, invariant: str) -> None:
        self._invariant = invariant
        self._written: dict[tuple[int, int], tuple[int, int, int]] = {}
        """By base offset and epoch of a batch: last offset, checksum, epoch of the previous batch (-1 if unknown)."""
        self._epoch_starts: dict[int, int] = {}

    def check(self, name: object, before: Batch | None, batch: Batch) -> None:
        """Check a batch of a replica.

        :param name: the name of the replica, for the message.
        :param before: the previous batch of the replica; None if there is none, or if its epoch is not to be compared.
        """
        key = batch.base_offset, batch.epoch
        before_epoch = _UNKNOWN_EPOCH if before is None else before.epoch
        found = batch.last_offset, batch.crc, before_epoch
        known = self._written.setdefault(key, found)
        if known == found:
            if before is not None and before_epoch < batch.epoch:
                self._check_epoch_start(name, batch)
            return
        if known[:2] != found[:2]:
            self._violated(f"{name} has {batch}, another replica has a batch to {known[0]} (crc {known[1]:08x})")
        if known[2] == _UNKNOWN_EPOCH:
            self._written[key] = found
        elif before is not None:
            self._violated(f"{name}: the batch before {batch} has epoch {before_epoch}, in another replica {known[2]}")

    def _check_epoch_start(self, name: object, batch: Batch) -> None:
        start = self._epoch_starts.setdefault(batch.epoch, batch.base_offset)
        if start != batch.base_offset:
            self._violated(f"{name}: {batch} begins an epoch that began at {start}")

    def _violated(self, detail: str) -> None:
        raise InvariantViolation(self._invariant, detail)
