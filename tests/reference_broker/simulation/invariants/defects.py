"""Defects that violate invariants, and the faults that reveal them; `broker_defects` has more.

Each defect replaces one function.
"""

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reference_broker.core.broker_lifecycle_manager import BrokerLifecycleManager
from reference_broker.core.clock import Now
from reference_broker.core.controller import partition_changes
from reference_broker.core.controller.controller import Controller
from reference_broker.core.controller.elections import Elections
from reference_broker.core.controller.handlers import allocate_producer_ids, broker_registration
from reference_broker.core.group_coordinator import GroupCoordinator
from reference_broker.core.group_offsets import GroupOffsets
from reference_broker.core.log.batch_file import BatchFile
from reference_broker.core.log.index import OffsetIndex, TimeIndex, TimestampOffset
from reference_broker.core.log.leader_epoch_file_cache import LeaderEpochFileCache
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.producer_state_manager import ProducerStateManager
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.core.metadata import image
from reference_broker.core.metadata.cluster_metadata import ClusterMetadata
from reference_broker.core.node import Node
from reference_broker.core.purgatory import Purgatory
from reference_broker.core.quorum import wire_elections
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.leader_state import LeaderState
from reference_broker.core.quorum.messages import FetchRequest
from reference_broker.core.quorum.quorum_log import QuorumLog
from reference_broker.core.quorum.quorum_state import EpochElection, QuorumState
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.replication import requests
from reference_broker.core.replication.followers import Followers
from reference_broker.core.replication.partition import Partition, ReplicaRole
from reference_broker.core.replication.partition_reader import PartitionReader
from reference_broker.core.replication.replica_manager import ReplicaManager
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import NO_LEADER
from reference_broker.simulation import invariants
from reference_broker.simulation.invariants import metadata
from reference_broker.simulation.invariants.applied_metadata import AppliedMetadataInvariants
from tests.reference_broker.simulation.invariants.defect import Defect, nothing


def _around(owner: Any, attribute: str, make: Callable[[Any], Any]) -> Any:
    """Return the replacement that `make` returns for the original attribute."""
    return make(getattr(owner, attribute))


def _always_leader(self, record):
    return ReplicaRole.OFFLINE if record.leader == NO_LEADER else ReplicaRole.LEADER


def _drop_the_last(original):
    return lambda self: original(self)[:-1]


def _complete_all_waiting(self, _high_watermark, now):
    while self._waiting:
        self._waiting.popleft().then(now)


def _lose_the_partition_epoch(original):
    def handle_alter_partition_update(self, proposal, *, isr, leader_epoch, partition_epoch, now):
        original(self, proposal, isr=isr, leader_epoch=leader_epoch, partition_epoch=partition_epoch, now=now)
        self.partition_epoch = 0

    return handle_alter_partition_update


def _leave_a_gap(original):
    def place(self, header, records, leader_epoch, now_ms):
        placed = original(self, header, records, leader_epoch, now_ms)
        return placed._replace(base_offset=placed.base_offset + 1)

    return place


def _commit_beyond_the_log_end(original):
    def replicate(self, records, high_watermark, log_start_offset, now):
        original(self, records, high_watermark, log_start_offset, now)
        self.high_watermark = self.log.log_end_offset + 1

    return replicate


def _decrease_the_watermark(self, now):
    committed = self.followers.committed_offset(self.log.log_end_offset, self.isr.maximal, now)
    has_moved, self.high_watermark = committed != self.high_watermark, max(committed, 0)
    return has_moved


def _commit_at_once(self, end_offset, maximal_isr, now):
    return end_offset


def _truncate_to_the_watermark(original):
    """Truncate a follower to its high watermark in each new epoch, as before KIP-101."""

    def apply(self, record, now):
        is_new_epoch = original(self, record, now)
        if is_new_epoch and self.role is ReplicaRole.FOLLOWER:
            self.truncate_to(self.high_watermark, now)
        return is_new_epoch

    return apply


def _begin_an_epoch_late(original):
    return lambda self, epoch, start_offset: original(self, epoch, start_offset + 1)


def _advance_recovery_point_without_flush(original):
    def flush(self):
        if self.directory.startswith("orders"):
            self.recovery_point = self.log_end_offset
        else:
            original(self)

    return flush


def _never_flush(original):
    return lambda self: None if self.directory.startswith("orders") else original(self)


def _recover_all_but_the_last(original):
    def valid_batches(self, first_offset, last_offset):
        found = list(original(self, first_offset, last_offset))
        return iter(found[:-1])

    return valid_batches


def _acknowledge_at_once(self, required_offset):
    return ErrorCode.none if self.is_leader else ErrorCode.not_leader_or_follower


def _forget_a_record(original):
    def apply(self, batches):
        return [] if self.offset % 5 == 3 else original(self, batches)

    return apply


def _return_to_an_earlier_offset(original):
    def advance(self, high_watermark):
        applied = yield from original(self, high_watermark)
        if self.offset > 40:
            self.offset = 30
        return applied

    return advance


def _keep_the_leader_epoch(original):
    def changed(partition, change):
        return replace(original(partition, change), leader_epoch=partition.leader_epoch)

    return changed


def _elect_any_replica(_partition, target, _election, is_acceptable):
    return next((replica for replica in reversed(target.replicas) if is_acceptable(replica)), NO_LEADER), False


def _elect_uncleanly(_partition, target, _election, is_acceptable):
    leader = next((replica for replica in reversed(target.replicas) if is_acceptable(replica)), NO_LEADER)
    return leader, leader not in target.isr


def _keep_the_broker_epoch(original):
    def register(request, elections, *, next_offset, **rest):
        records, registered = original(request, elections, next_offset=next_offset, **rest)
        known = elections.image.brokers.get(request.broker_id)
        if known is not None:
            registered = replace(registered, broker_epoch=known.broker_epoch)
        return [*records[:-1], registered], registered

    return register


def _give_a_block_twice(original):
    def next_block(image, broker_id):
        block, record = original(image, broker_id)
        return block, replace(record, next_producer_id=image.next_producer_id)

    return next_block


def _index_one_byte_late(original):
    return lambda self, last_offset, position: original(self, last_offset, position + 1)


def _index_a_time_late(original):
    return lambda self, largest: original(self, TimestampOffset(largest.timestamp_ms + 1, largest.last_offset))


def _leave_the_index(self):
    self._disk.delete(self._file.path)


def _note_the_next_offset(original):
    return lambda self, header: original(self, header._replace(base_offset=header.base_offset + 1))


def _flip_a_bit(original):
    def append_placed(self, header, batch, now_ms):
        spoilt = bytearray(batch)
        spoilt[header.size_bytes - 1] ^= self.directory.startswith("orders")
        original(self, header, bytes(spoilt), now_ms)

    return append_placed


def _always_due(self):
    return 0


def _fail(_self, _now):
    raise OSError(errno.ENOENT, "no such file")


def _remove_no_connection(original):
    def remove(self, watched, deadline):
        original(self, watched, deadline)
        self._by_connection[watched.operation.connection][watched] = None

    return remove


def _commit_nothing(self, offsets, commits, settled, now: Now):
    settled(ErrorCode.none, now)


def _remember_the_first(original):
    def apply(self, key, value):
        if (key.topic, key.partition) not in self._committed[key.group]:
            original(self, key, value)

    return apply


def _report_a_higher_offset(original):
    def heartbeat(self):
        request = original(self)
        return replace(request, current_metadata_offset=request.current_metadata_offset + 1)

    return heartbeat


def _forget_the_epoch(original):
    return lambda *parts: replace(original(*parts), last_fetched_epoch=0)


def _fetch_from_the_next_offset(original):
    def fetch_request(self, state):
        request = original(self, state)
        return replace(request, fetch_offset=request.fetch_offset + 1) if isinstance(request, FetchRequest) else request

    return fetch_request


def _send_as_another_replica(original):
    def vote_request_to_kio(request):
        return original(replace(request, replica=request.voter))

    return vote_request_to_kio


def _always(*_args, **_kwargs):
    return True


def _never(*_args, **_kwargs):
    return False


def _invalid(*_args):
    return ErrorCode.invalid_request


def _largest_end_offset(self):
    return max(state.end_offset for state in self._voter_states.values())


def _long_time_ms(_self):
    return 10**9


DEFECTS = (
    Defect(
        "one-leader-per-epoch",
        Partition,
        "_role_in",
        _always_leader,
        disabled=((AppliedMetadataInvariants, "metadata_applied"),),
    ),
    Defect(
        "epochs-only-grow",
        Partition,
        "handle_alter_partition_update",
        _around(Partition, "handle_alter_partition_update", _lose_the_partition_epoch),
        kinds=("isolate",),
        seed=1,
    ),
    Defect(
        "epoch-response",
        PartitionReader,
        "diverging_epoch",
        staticmethod(nothing),
        kinds=("isolate",),
        faults=4,
        faulty_ms=20_000,
        for_ms=5_000,
        seed=1,
    ),
    Defect(
        "offsets-ascend",
        UnifiedLog,
        "_place",
        _around(UnifiedLog, "_place", _leave_a_gap),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect(
        "watermark-within-log",
        Partition,
        "replicate",
        _around(Partition, "replicate", _commit_beyond_the_log_end),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect("watermark-monotone", Partition, "_maybe_advance_high_watermark", _decrease_the_watermark, faults=6),
    Defect("watermark-on-isr", Followers, "committed_offset", _commit_at_once, faults=0, faulty_ms=1_500),
    Defect(
        "watermark-on-min-isr",
        Partition,
        "is_under_min_isr",
        property(_never),
        kinds=("isolate",),
        for_ms=5_000,
        properties={"min.insync.replicas": "3"},
    ),
    Defect(
        "committed-stays",
        Partition,
        "apply",
        _around(Partition, "apply", _truncate_to_the_watermark),
        kinds=("kill", "stop"),
        faults=6,
    ),
    Defect(
        "epochs-fit-log",
        LeaderEpochFileCache,
        "assign",
        _around(LeaderEpochFileCache, "assign", _begin_an_epoch_late),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect(
        "recovery-point",
        UnifiedLog,
        "flush",
        _around(UnifiedLog, "flush", _advance_recovery_point_without_flush),
        properties={"log.flush.interval.messages": "1"},
    ),
    Defect(
        "recovery-point",
        UnifiedLog,
        "flush",
        _around(UnifiedLog, "flush", _never_flush),
        properties={"log.flush.interval.messages": "1"},
    ),
    Defect("quorum-durable", QuorumLog, "flush", nothing, faults=0),
    Defect(
        "recovery-keeps", BatchFile, "valid_batches", _around(BatchFile, "valid_batches", _recover_all_but_the_last)
    ),
    Defect(
        "acknowledged-is-committed",
        Partition,
        "check_enough_replicas_reach_offset",
        _acknowledge_at_once,
        kinds=("isolate",),
    ),
    Defect("metadata-agree", ClusterMetadata, "_apply", _around(ClusterMetadata, "_apply", _forget_a_record)),
    Defect(
        "snapshot-is-image", image.MetadataImage, "records", _around(image.MetadataImage, "records", _drop_the_last)
    ),
    Defect(
        "metadata-monotone",
        ClusterMetadata,
        "advance",
        _around(ClusterMetadata, "advance", _return_to_an_earlier_offset),
    ),
    Defect(
        "partition-epochs-grow",
        image,
        "changed",
        _around(image, "changed", _keep_the_leader_epoch),
        disabled=((metadata, "check_record_effect"),),
    ),
    Defect("leader-in-isr", partition_changes, "_elect", _elect_any_replica, kinds=("isolate", "kill"), faults=6),
    Defect("clean-election", partition_changes, "_elect", _elect_uncleanly, kinds=("isolate", "kill"), faults=6),
    Defect("fenced-in-isr", Elections, "remove_from_isrs", lambda _self, _broker_id: []),
    Defect("joins-isr-complete", Followers, "may_join", _always),
    Defect(
        "broker-epochs-grow",
        broker_registration,
        "register_broker",
        _around(broker_registration, "register_broker", _keep_the_broker_epoch),
        disabled=((invariants, "check_controller_response"),),
    ),
    Defect(
        "ids-unique",
        allocate_producer_ids,
        "next_block",
        _around(allocate_producer_ids, "next_block", _give_a_block_twice),
        disabled=((invariants, "check_controller_response"),),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect("committed-before-response", Controller, "handle_commit", _complete_all_waiting, faults=0, faulty_ms=3_000),
    Defect("one-controller-per-epoch", Node, "_renounce", nothing, kinds=("isolate", "pause"), faults=8),
    Defect(
        "index-fits-log",
        OffsetIndex,
        "append",
        _around(OffsetIndex, "append", _index_one_byte_late),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect(
        "time-index-fits-log",
        TimeIndex,
        "maybe_append",
        _around(TimeIndex, "maybe_append", _index_a_time_late),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect(
        "segments-fit-log",
        LogSegment,
        "delete",
        _leave_the_index,
        kinds=("delete-records",),
        faults=8,
        faulty_ms=12_000,
        properties={"log.retention.check.interval.ms": "500"},
        seed=1,
    ),
    Defect(
        "producers-fit-log",
        ProducerStateManager,
        "update",
        _around(ProducerStateManager, "update", _note_the_next_offset),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect(
        "batches-intact",
        UnifiedLog,
        "append_placed",
        _around(UnifiedLog, "append_placed", _flip_a_bit),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect("no-busy-loop", Node, "next_ms", property(_always_due), faults=0, faulty_ms=1_500),
    Defect("ends-without-fault", ReplicaManager, "_checkpoint_high_watermarks", _fail, faults=0, faulty_ms=1_500),
    Defect("no-leftovers", Purgatory, "_remove", _around(Purgatory, "_remove", _remove_no_connection), seed=2),
    Defect("group-offset-stays", GroupCoordinator, "commit", _commit_nothing, faults=0, faulty_ms=1_500),
    Defect(
        "group-offsets-fit-log",
        GroupOffsets,
        "_apply",
        _around(GroupOffsets, "_apply", _remember_the_first),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect(
        "request-matches-state",
        BrokerLifecycleManager,
        "_heartbeat",
        _around(BrokerLifecycleManager, "_heartbeat", _report_a_higher_offset),
        faults=0,
        faulty_ms=500,
    ),
    Defect(
        "request-matches-state",
        requests,
        "_fetch_partition",
        _around(requests, "_fetch_partition", _forget_the_epoch),
        faults=6,
    ),
    Defect(
        "request-matches-state",
        KafkaRaftClient,
        "_build_fetch_request",
        _around(KafkaRaftClient, "_build_fetch_request", _fetch_from_the_next_offset),
        faults=0,
        faulty_ms=500,
    ),
    Defect(
        "request-matches-state",
        wire_elections,
        "vote_request_to_kio",
        _around(wire_elections, "vote_request_to_kio", _send_as_another_replica),
        faults=0,
        faulty_ms=500,
    ),
    Defect("not-converged", Followers, "may_join", _never, faults=6),
    Defect("quorum-response", QuorumState, "can_grant_vote", _never, faults=0, faulty_ms=500),
    Defect("quorum-response", QuorumLog, "read", lambda *_: b"", faults=0, faulty_ms=500),
    Defect("quorum-consistent", KafkaRaftClient, "_validate_voter_only_request", _invalid, faults=0, faulty_ms=500),
    Defect("quorum-one-leader", EpochElection, "is_vote_granted", property(_always), faults=6),
    Defect("quorum-majority", LeaderState, "_reached_by_majority", _largest_end_offset, faults=0, faulty_ms=1_500),
    Defect(
        "quorum-check-quorum",
        QuorumConfig,
        "check_quorum_timeout_ms",
        property(_long_time_ms),
        kinds=("isolate",),
        faults=3,
        faulty_ms=15_000,
        for_ms=9_000,
        seed=2,
    ),
)
