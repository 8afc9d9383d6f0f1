"""Replicas of a partition: epochs, logs, high watermarks and committed records.

| name                        | what must hold                                                                        |
|-----------------------------|---------------------------------------------------------------------------------------|
| `one-leader-per-epoch`      | a leader epoch has at most one leader                                                 |
| `epochs-only-grow`          | a replica's leader epoch and partition epoch never decrease while its node runs       |
| `log-matching`              | if two replicas have a batch with the same epoch at the same offset, the batches are  |
|                             | equal, and so are all batches before them                                             |
| `batches-intact`            | the files contain complete batches with correct checksums                             |
| `offsets-ascend`            | a batch begins where the previous batch ends, and its epoch is the same or newer      |
| `watermark-within-log`      | log start ≤ high watermark ≤ log end                                                  |
| `watermark-monotone`        | a leader's high watermark never decreases, not even at its election                   |
| `watermark-on-isr`          | every member of the ISR has all records below the leader's high watermark             |
| `committed-stays`           | records below a leader's high watermark are committed: later leaders that are elected |
|                             | cleanly have them, and no replica truncates them                                      |
| `epochs-fit-log`            | the leader epoch cache of a log has the epochs of its batches. That of a leader also  |
|                             | has the leader's epoch, even before the first record of the epoch (`makeLeader`)      |
| `recovery-point`            | records below the recovery point are durable, and fewer than `flush.messages` records |
|                             | are above it                                                                          |
| `recovery-keeps`            | a log loses no batch at its end when it is opened after a stop or a kill              |
| `acknowledged-is-committed` | records that were acknowledged with acks=all were below a leader's high watermark     |

`joins-isr-complete` of `metadata` is checked here, too.

A power cut, a new disk or damage (`allow_loss`) may remove records from a disk. This is permitted, because the replica
leaves the ISR when it restarts (KIP-841). The last member of an ISR is an exception: it stays in the ISR. If it is then
elected, the committed records that it lacks may be lost. Kafka prevents this loss only with eligible leader replicas
(KIP-966). After an unclean election, any record that was committed before may be lost.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter

from reference_broker.core.node import Node
from reference_broker.simulation.invariants.log_matching import LogMatching
from reference_broker.simulation.invariants.log_mirror import Batch, LogChange
from reference_broker.simulation.invariants.violation import InvariantViolation
from reference_broker.simulation.invariants.watch import Before, Observer, PartitionKey, Replica, Watch, Watched

_base_offset = attrgetter("base_offset")


@dataclass(eq=False, slots=True)
class Ledger:
    """The history of one partition.

    :ivar name: topic and partition index.
    :ivar leaders: the leader of each leader epoch.
    :ivar committed: batches that were below the high watermark of a leader, ascending.
    :ivar given_up: batches that were committed, and whose loss is permitted.
    :ivar highest_start: the highest log start offset that a replica has had.
    :ivar void_below_epoch: the last leader epoch whose leader may lack committed batches; leaders of earlier epochs are
        not checked.
    """

    name: tuple[str, int]
    leaders: dict[int, int] = field(default_factory=dict)
    matching: LogMatching = field(default_factory=lambda: LogMatching("log-matching"))
    committed: list[Batch] = field(default_factory=list)
    given_up: list[Batch] = field(default_factory=list)
    highest_start: int = 0
    void_below_epoch: int = 0
    lossy: set[int] = field(default_factory=set)
    """Nodes whose replica may lack committed records, because the disk has lost content."""
    lost_ranges: list[range] = field(default_factory=list)
    """Offsets that a replica lacked between two of its segments after a power cut."""
    left: set[int] = field(default_factory=set)
    """Nodes that were removed from the assignment since their log was last opened. They may delete this log."""

    @property
    def last_committed(self) -> Batch | None:
        """The last committed batch. By log matching, a log that has this batch has all committed batches."""
        return self.committed[-1] if self.committed else None

    @property
    def committed_end(self) -> int:
        """The end offset of the committed batches."""
        return self.committed[-1].last_offset + 1 if self.committed else 0

    def committed_at(self, offset: int) -> Batch | None:
        """Return the committed batch that contains an offset."""
        number = bisect_right(self.committed, offset, key=_base_offset) - 1
        return self.committed[number] if number >= 0 and self.committed[number].last_offset >= offset else None

    def may_differ(self, offset: int) -> bool:
        """Whether replicas may have different batches at an offset.

        A power cut may restore deleted batches below the highest log start, or lose a segment that was not flushed.
        """
        return offset < self.highest_start or any(offset in lost for lost in self.lost_ranges)

    def give_up(self, is_kept: Callable[[Batch], bool]) -> None:
        """Permit the loss of the committed batches that are not kept."""
        self.given_up += [batch for batch in self.committed if not is_kept(batch)]
        self.committed = [batch for batch in self.committed if is_kept(batch)]


class PartitionInvariants(Observer):
    """Checks of replicas at each of their changes.

    :ivar ledgers: the history of each partition.
    :ivar may_lose: nodes whose disk may have lost content since their logs were last opened.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.ledgers: dict[PartitionKey, Ledger] = {}
        self.may_lose: set[int] = set()
        self._damaged: set[int] = set()
        """Nodes whose disk was damaged while they were running."""
        self._failed: set[int] = set()
        """Nodes that an error other than a power cut has ended, and whose logs were not opened since."""

    @property
    def nodes(self) -> list[Node]:
        """The running nodes."""
        return [watched.node for watched in self._watch.nodes.values() if watched.node is not None]

    def ledger(self, key: PartitionKey, name: tuple[str, int]) -> Ledger:
        """Return the ledger of a partition, which is created if necessary."""
        found = self.ledgers.get(key)
        if found is None:
            found = self.ledgers[key] = Ledger(name)
        return found

    # Events

    def allow_loss(self, node_id: int) -> None:
        """Permit the loss of records on a node, whether it is running or not."""
        self.may_lose.add(node_id)
        if self._watch.nodes[node_id].node is not None:
            self._damaged.add(node_id)

    def acknowledged(self, name: tuple[str, int], offset: int, *, epoch: int | None, crc: int | None) -> None:
        """Check that a record acknowledged with acks=all was committed. Its loss may have been permitted since."""
        ledgers = [ledger for ledger in self.ledgers.values() if ledger.name == name]
        if not any(self._has_acknowledged(ledger, offset, epoch, crc) for ledger in ledgers):
            record = f"{name[0]}-{name[1]}: offset {offset} (epoch {epoch}, crc {crc})"
            detail = f"{record} was acknowledged, and was never committed"
            raise InvariantViolation("acknowledged-is-committed", detail)

    @staticmethod
    def _has_acknowledged(ledger: Ledger, offset: int, epoch: int | None, crc: int | None) -> bool:
        if offset < ledger.highest_start:
            return True
        batch = ledger.committed_at(offset)
        given_up = [lost for lost in ledger.given_up if lost.base_offset <= offset <= lost.last_offset]
        candidates = given_up if batch is None else [batch, *given_up]
        return any(epoch in {None, found.epoch} and crc in {None, found.crc} for found in candidates)

    def started(self, watched: Watched) -> None:
        """Permit the loss of records on a machine with a new disk."""
        if watched.has_new_disk:
            self.may_lose.add(watched.node_id)

    def ended(self, watched: Watched) -> None:
        """Record how a node ended. A power cut may lose unflushed records; a failed disk may lack its last change."""
        node_id, machine = watched.node_id, watched.machine
        if watched.open:
            self._failed.discard(node_id)
            if node_id not in self._damaged:
                self.may_lose.discard(node_id)
        self._damaged.discard(node_id)
        if machine.ended_by == "power" or machine.failed.startswith("PowerFailureError"):
            self.may_lose.add(node_id)
        elif machine.failed:
            self._failed.add(node_id)

    def opened(self, watched: Watched, replica: Replica, log: LogChange) -> None:
        """Check that a log has lost no batch at its end in a restart.

        A loss is permitted if the disk may have lost content or has failed, or if the replica left the assignment.
        """
        ledger = self.ledger(replica.key, replica.name)
        if log.removed:
            if replica.node_id in self.may_lose:
                ledger.lossy.add(replica.node_id)
            elif replica.node_id not in self._failed | ledger.left:
                lost = log.removed[-1]
                raise InvariantViolation("recovery-keeps", f"{replica} has lost {lost} and {len(log.removed) - 1} more")
        ledger.left.discard(replica.node_id)
        self._check_added(ledger, replica, log.added, may_lose=replica.node_id in self.may_lose)
        _check_bounds(replica)

    def changed(self, watched: Watched, replica: Replica, before: Before) -> None:
        """Check a replica that has changed."""
        ledger = self.ledger(replica.key, replica.name)
        self._check_epochs(replica, before)
        if before.log.removed:
            self._check_removed(ledger, replica, before.log.removed)
        if before.log.added:
            self._check_added(ledger, replica, before.log.added)
        _check_bounds(replica)
        _check_durable(replica, before)
        ledger.highest_start = max(ledger.highest_start, replica.start_offset)
        if replica.is_leader:
            self._check_leader(ledger, replica, before)

    # Changes by the controller

    def elected_uncleanly(self, key: PartitionKey, leader_epoch: int) -> None:
        """Permit the loss of all records that were committed before an unclean election."""
        ledger = self.ledgers.get(key)
        if ledger is not None:
            ledger.void_below_epoch = leader_epoch
            ledger.give_up(lambda batch: False)

    def left_assignment(self, key: PartitionKey, node_ids: list[int]) -> None:
        """Record nodes that are no longer replicas: they may delete their logs, even if they become replicas again."""
        if (ledger := self.ledgers.get(key)) is not None:
            ledger.left.update(node_ids)

    def joined_isr(self, key: PartitionKey, node_ids: list[int]) -> None:
        """Check that replicas that join an ISR have all committed records."""
        ledger = self.ledgers.get(key)
        last = None if ledger is None else ledger.last_committed
        if ledger is None or last is None:
            return
        for node_id in node_ids:
            replica = self._watch.replica(node_id, key)
            is_behind = replica is None or (last.last_offset >= replica.start_offset and not self._holds(replica, last))
            if is_behind and last.last_offset >= ledger.highest_start:
                detail = f"{replica or node_id} joins the ISR, and lacks the committed {last}"
                raise InvariantViolation("joins-isr-complete", detail)
            ledger.lossy.discard(node_id)

    # One replica

    def _check_epochs(self, replica: Replica, before: Before) -> None:
        now = replica.leader_epoch, replica.partition_epoch
        then = before.leader_epoch, before.partition_epoch
        if now[0] < then[0] or now[1] < then[1]:
            raise InvariantViolation(
                "epochs-only-grow", f"leader epoch and partition epoch of {replica} change from {then} to {now}"
            )

    def _check_removed(self, ledger: Ledger, replica: Replica, removed: list[Batch]) -> None:
        if replica.node_id in ledger.lossy:
            return
        for batch in removed:
            known = ledger.committed_at(batch.base_offset)
            if known is not None and known.is_same_as(batch) and batch.last_offset >= ledger.highest_start:
                raise InvariantViolation("committed-stays", f"{replica} truncates the committed {batch}")

    def _check_added(self, ledger: Ledger, replica: Replica, added: list[Batch], *, may_lose: bool = False) -> None:
        if not added:
            return
        batches = replica.log.batches
        number = len(batches) - len(added)
        before = batches[number - 1] if number else None
        for batch in added:
            if may_lose and before is not None and batch.base_offset > before.last_offset + 1:
                # A segment that was not flushed is lost. `LogLoader.recoverLog` keeps the segments after it.
                ledger.lossy.add(replica.node_id)
                ledger.lost_ranges.append(range(before.last_offset + 1, batch.base_offset))
                before = None
            self._check_follows(ledger, replica, before, batch)
            # Epochs below the highest log start are not compared: a follower whose log ends below the highest log start
            # may keep records that diverge.
            is_gone = before is not None and before.last_offset < ledger.highest_start
            ledger.matching.check(replica, None if is_gone else before, batch)
            before = batch
        last, partition = added[-1], replica.partition
        assert partition is not None
        known = partition.log.epochs.epoch_for_offset(last.base_offset)
        if last.base_offset >= replica.start_offset and known != last.epoch:
            raise InvariantViolation("epochs-fit-log", f"{replica} has epoch {known} for {last}")
        # Below the highest log start, a power cut may restore some of the deleted segments.
        if replica.end_offset != last.last_offset + 1 and replica.end_offset > ledger.highest_start:
            raise InvariantViolation(
                "epochs-fit-log", f"{replica} ends at {replica.end_offset}, its last batch is {last}"
            )

    def _check_follows(self, ledger: Ledger, replica: Replica, before: Batch | None, batch: Batch) -> None:
        if before is None:
            return
        is_gap_permitted = batch.base_offset <= ledger.highest_start
        if batch.base_offset < before.last_offset + 1 or (
            batch.base_offset > before.last_offset + 1 and not is_gap_permitted
        ):
            raise InvariantViolation("offsets-ascend", f"{replica} has {batch} after {before}")
        if batch.epoch < before.epoch:
            raise InvariantViolation("offsets-ascend", f"{replica} has {batch} after {before}: the epoch decreases")

    # The leader

    def _check_leader(self, ledger: Ledger, replica: Replica, before: Before) -> None:
        known = ledger.leaders.setdefault(replica.leader_epoch, replica.node_id)
        if known != replica.node_id:
            detail = f"{replica} leads epoch {replica.leader_epoch}, as does node {known}"
            raise InvariantViolation("one-leader-per-epoch", detail)
        if replica.high_watermark < before.high_watermark and not before.log.removed:
            change = f"from {before.high_watermark} to {replica.high_watermark}"
            detail = f"{replica}: the high watermark of the leader decreases {change}"
            raise InvariantViolation("watermark-monotone", detail)
        assert replica.partition is not None
        if replica.partition.log.latest_epoch < replica.leader_epoch:
            latest = f"the latest epoch of its cache is {replica.partition.log.latest_epoch}"
            raise InvariantViolation("epochs-fit-log", f"{replica} leads epoch {replica.leader_epoch}, {latest}")
        if replica.leader_epoch < ledger.void_below_epoch:
            return
        if replica.leader_epoch != before.leader_epoch:
            self._check_complete(ledger, replica)
        self._check_proposed(ledger, replica)
        if replica.high_watermark != before.high_watermark:
            self._check_on_isr(ledger, replica)
            self._commit(ledger, replica)

    def _check_complete(self, ledger: Ledger, replica: Replica) -> None:
        """Check that a new leader has the last committed batch, and therefore (log matching) all committed batches.

        If the leader may lack committed batches, permit the loss of the batches that it lacks.
        """
        last = ledger.last_committed
        if last is None or last.last_offset < replica.start_offset or self._holds(replica, last):
            return
        if max(ledger.leaders) != replica.leader_epoch:
            return  # another leader was elected in the meantime
        if replica.node_id not in ledger.lossy and last.last_offset >= ledger.highest_start:
            detail = f"{replica} leads epoch {replica.leader_epoch}, and lacks the committed {last}"
            raise InvariantViolation("committed-stays", detail)
        self._forfeit(ledger, replica)

    @staticmethod
    def _holds(replica: Replica, batch: Batch) -> bool:
        found = replica.log.holding(batch.base_offset)
        return found is not None and found.is_same_as(batch)

    def _forfeit(self, ledger: Ledger, replica: Replica) -> None:
        """Permit the loss of the records that this leader lacks."""
        ledger.give_up(lambda batch: batch.last_offset < replica.start_offset or self._holds(replica, batch))
        ledger.lossy.clear()
        ledger.void_below_epoch = replica.leader_epoch

    def _check_on_isr(self, ledger: Ledger, replica: Replica) -> None:
        assert replica.isr is not None
        for node_id in sorted(replica.isr.isr):
            if node_id == replica.node_id or node_id in ledger.lossy:
                continue
            other = self._watch.replica(node_id, replica.key)
            if other is None and self._has_left(node_id, replica.key):
                continue  # the node deleted its log when it left the assignment
            end_offset = 0 if other is None else other.end_offset
            if end_offset < replica.high_watermark:
                detail = f"{replica} has high watermark {replica.high_watermark}, node {node_id} ends at {end_offset}"
                raise InvariantViolation("watermark-on-isr", detail)

    def _check_proposed(self, ledger: Ledger, replica: Replica) -> None:
        """Check that a replica proposed for the ISR has all records below the high watermark."""
        assert replica.isr is not None
        for node_id in sorted(replica.isr.proposed - replica.isr.isr - ledger.lossy):
            other = self._watch.replica(node_id, replica.key)
            if other is None and self._has_left(node_id, replica.key):
                continue  # the node deleted its log when it left the assignment
            end_offset = 0 if other is None else other.end_offset
            if end_offset < replica.high_watermark:
                detail = f"{replica} proposes node {node_id} for the ISR, whose log ends at {end_offset}"
                watermark = f"below the high watermark {replica.high_watermark}"
                raise InvariantViolation("joins-isr-complete", f"{detail}, {watermark}")

    def _has_left(self, node_id: int, key: PartitionKey) -> bool:
        """Whether a running node has no replica of the partition according to the metadata that it has applied."""
        node = self._watch.nodes[node_id].node
        partition = None if node is None else node.metadata.image.partition_by_id(*key)
        return node is not None and (partition is None or node_id not in partition.replicas)

    def _commit(self, ledger: Ledger, replica: Replica) -> None:
        """Compare the log with the committed batches, and add its other batches below the high watermark to them."""
        last, known = replica.log.before(replica.high_watermark), ledger.last_committed
        if last is None:
            return
        if known is not None and last.base_offset <= known.base_offset:
            self._require_committed(ledger, replica, last)
            return
        if known is not None and replica.log.batches[0].base_offset <= known.base_offset:
            self._require_committed(ledger, replica, known)
        ledger.committed += replica.log.between(ledger.committed_end, replica.high_watermark)

    def _require_committed(self, ledger: Ledger, replica: Replica, batch: Batch) -> None:
        known = ledger.committed_at(batch.base_offset)
        if ledger.may_differ(batch.base_offset):
            return
        if known is None or not self._holds(replica, known):
            found = replica.log.holding(batch.base_offset)
            detail = f"{replica} has {found} below its high watermark, where {known} was committed"
            raise InvariantViolation("committed-stays", detail)


def _check_bounds(replica: Replica) -> None:
    if not replica.start_offset <= replica.high_watermark <= replica.end_offset:
        bounds = f"start {replica.start_offset}, high watermark {replica.high_watermark}, end {replica.end_offset}"
        raise InvariantViolation("watermark-within-log", f"{replica}: {bounds}")


def _check_durable(replica: Replica, before: Before) -> None:
    """Check that records below the recovery point are durable, and that `flush.messages` is respected."""
    assert replica.partition is not None
    log, recovery_point = replica.partition.log, replica.recovery_point
    if recovery_point != before.recovery_point:
        lost = replica.log.not_durable_below(log, recovery_point)
        if lost is not None:
            raise InvariantViolation(
                "recovery-point", f"{replica} has {lost}, which is below its recovery point and not durable"
            )
    if before.log.added and replica.end_offset - recovery_point >= log.config.flush_messages:
        detail = f"{replica} ends at {replica.end_offset}, and is flushed to {recovery_point},"
        raise InvariantViolation("recovery-point", f"{detail} with flush.messages={log.config.flush_messages}")
