"""More defects that violate invariants, mostly of metadata, files, deadlines and the quorum; `defects` has the rest."""

from dataclasses import replace
from itertools import count
from unittest.mock import patch

from reference_broker.core import layout, node
from reference_broker.core.broker_lifecycle_manager import BrokerLifecycleManager
from reference_broker.core.channels import Channels
from reference_broker.core.configuration.key import InvalidConfigError
from reference_broker.core.controller import partition_changes
from reference_broker.core.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from reference_broker.core.controller.controller import Controller
from reference_broker.core.controller.periodic_tasks import PeriodicTasks
from reference_broker.core.group_coordinator import GroupCoordinator
from reference_broker.core.handlers import fetch
from reference_broker.core.identity import Endpoint
from reference_broker.core.log import unified_log
from reference_broker.core.log.checkpoints import take_clean_shutdown, write_clean_shutdown
from reference_broker.core.log.loading import SegmentLoader
from reference_broker.core.log.log_segment import LogSegment
from reference_broker.core.log.snapshots import ProducerSnapshots
from reference_broker.core.log.unified_log import UnifiedLog
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.core.metadata.snapshot_policy import SnapshotPolicy
from reference_broker.core.purgatory import Purgatory
from reference_broker.core.quorum import snapshots
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.leader_state import ReplicaState
from reference_broker.core.quorum.quorum_state import NEVER_MS, Prospective, QuorumState, Unattached
from reference_broker.core.quorum.raft_client import KafkaRaftClient
from reference_broker.core.quorum.request_manager import RequestManager
from reference_broker.core.replication import log_manager
from reference_broker.core.replication.alter_partition_manager import AlterPartitionManager
from reference_broker.core.replication.delayed_produce import DelayedProduce
from reference_broker.core.replication.fetch_state import FetchPhase
from reference_broker.core.replication.follower_progress import UNKNOWN_OFFSET, FollowerProgress
from reference_broker.core.replication.followers import Followers
from reference_broker.core.replication.partition import Partition
from reference_broker.core.replication.replica_fetcher import ReplicaFetcher
from reference_broker.core.replication.replica_fetcher_manager import ReplicaFetcherManager
from reference_broker.core.replication.replica_manager import ReplicaManager
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.metadata_records import BrokerRegistrationChangeRecord
from tests.reference_broker.simulation.invariants.defect import Defect, nothing


def check_every_fourth_time(original):
    calls = count(1)

    def shrink_isrs(self, now):
        if next(calls) % 4 == 0:
            original(self, now)

    return shrink_isrs


def drop_replicas(original):
    def apply(self, record, now):
        is_new_epoch = original(self, record, now)
        self.replicas = self.replicas[:1]
        return is_new_epoch

    return apply


def forget_features(original):
    """Copy an image without its features, so that a new active controller writes the bootstrap records again."""

    def copy(self):
        image = original(self)
        image.features = {}
        return image

    return copy


def keep_the_isr_of_the_epoch(original):
    def apply(self, record, now):
        isr = self.isr
        is_new_epoch = original(self, record, now)
        if self.is_leader and not is_new_epoch:
            self.isr = isr
        return is_new_epoch

    return apply


def wait_indefinitely(_self, state, _now):
    state.election_deadline_ms = NEVER_MS


def wait_for_half_the_time(self, now):
    return now.monotonic_ms + self._config.election_timeout_ms // 2 if self.is_voter else NEVER_MS


def truncate_committed_records(original):
    def handle_fetch_response(self, response, now):
        if response.diverging is None:
            original(self, response, now)
        else:
            self.log.truncate_to_end_offset(response.diverging, now.wall_ms)

    return handle_fetch_response


def flush_everything(self, _now):
    for partition in self:
        partition.log.flush()


def is_any_batch(self, entry):
    return entry is None or self._file.header_at(entry.position) is not None


def keep_leftovers(self):
    suffix = ".log"
    return sorted(int(name.removesuffix(suffix)) for name in self.disk.list(self.directory) if name.endswith(suffix))


def keep_the_recovery_point(original):
    def load(self, now_ms, *, recovery_point, **named):
        original(self, now_ms, recovery_point=recovery_point, **named)
        self.recovery_point = min(recovery_point, self.log_end_offset)

    return load


def leave_without_counting(original):
    def leave(self, key):
        idle_id = self._idle_fetcher_ids.get(key)
        original(self, key)
        if idle_id is not None:
            self._partition_counts[idle_id] += 1

    return leave


def is_current_wherever_the_log_ends(self, state, _offset):
    return self._states.get(state.partition.key) is state and state.phase is FetchPhase.FETCHING


def negate_leads(original):
    def calculate_next_broker_state(self, broker, desired, metadata_offset, leads):
        return original(self, broker, desired, metadata_offset, lambda: not leads())

    return calculate_next_broker_state


def forget_directories(original):
    def apply_to_broker(self, record):
        original(self, record)
        if isinstance(record, BrokerRegistrationChangeRecord):
            self.brokers[record.broker_id] = replace(self.brokers[record.broker_id], log_dirs=())

    return apply_to_broker


def store_a_pre_vote(original):
    def vote(self, request, now):
        response = original(self, request, now)
        if response.vote_granted and isinstance(self.state, Unattached | Prospective):
            self._quorum.add_voted_state(request.replica, now)
        return response

    return vote


def count_a_follower_that_is_behind(original):
    """Treat every fetch as proof that the follower was caught up at its previous fetch."""

    def update_fetch_state(self, *fetch):
        self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
        original(self, *fetch)

    return update_fetch_state


def keep_the_connection(self, fetcher_id):
    del self._fetchers[fetcher_id]


def keep_proposals(original):
    def handle_response(self, sent, response, now):
        original(self, sent, response, now)
        self._proposals.update(sent)

    return handle_response


def disconnect_at_the_first_check(self, channel, now):
    del self._watches[channel]
    self._disconnect(channel)
    self.lost(channel, now)


def set_no_later_timer(original):
    """Set a timer only for the oldest request of a channel, and none for later requests."""

    def look(self, channel, now):
        with patch.object(self, "_watch", nothing):
            original(self, channel, now)

    return look


def wait_like_the_last_candidate(self, candidates):
    return 0 if candidates[:1] == (self.local,) else self.config.election_backoff_max_ms


def fetch_again_at_once(self, states, now):
    delayed = [state for state in states if self._states.get(state.partition.key) is state]
    for state in delayed:
        state.become(FetchPhase.DELAYED)
    self._timers.set(now.monotonic_ms + 1, lambda then: self._resume(delayed, then))


def wait_for_all_replicas(self, end_offset, *_):
    return min([end_offset, *(self[node].end_offset for node in self._progress)])


def forget_the_epoch(disk):
    return None if take_clean_shutdown(disk) is None else -1


def respond_at_once(broker, request, _reader, statuses, _deadline_ms):
    return fetch._ResponseBuilder(broker, request, statuses).response()


def cut_without_a_flush(original):
    def truncate_to(self, offset, now_ms):
        with patch.object(self._disk, "flush", nothing):
            original(self, offset, now_ms)

    return truncate_to


def keep_watermark_of_follower(self, offset):
    if self.is_leader:
        self.high_watermark = offset


def forget_last_fetch(self, fetch_offset, leader_end_offset, now):
    self.end_offset, self.last_fetch = fetch_offset, now
    if fetch_offset >= leader_end_offset:
        self.last_caught_up_wall_ms = now.wall_ms


def announce_nothing(self, state, now):
    if now.monotonic_ms >= state.begin_quorum_epoch_deadline_ms:
        state.begin_quorum_epoch_deadline_ms = now.monotonic_ms + self.config.begin_quorum_epoch_timeout_ms


def start_unattached(self, election, now):
    return Unattached(election.epoch, election.leader_id, election.voted, self._first_election_deadline_ms(now))


def restart_the_fetch_timeout(self, state, now):
    state.fetch_deadline_ms = self._quorum.fetch_deadline_ms(now)


def accept_any_endpoint(original):
    def endpoint(name, text):
        try:
            return original(name, text)
        except InvalidConfigError:
            return Endpoint(text.partition("://")[0], text, 0)

    return endpoint


def stand_for_election_without_being_a_voter(original):
    def initial_state(self, election, now):
        with patch.object(self, "is_voter", new=True):
            return original(self, election, now)

    return initial_state


def apply_older_metadata(original):
    def apply(self, record, now):
        self.partition_epoch = min(self.partition_epoch, record.partition_epoch)
        return original(self, record, now)

    return apply


def ignore_snapshots(original):
    def on_metadata_update(self, delta, now):
        if not delta.everything:
            original(self, delta, now)

    return on_metadata_update


def ignore_a_lost_response(original):
    def handle_alter_partition_response(self, sent, response, now):
        if response is None:
            self._is_under_way = False
        else:
            original(self, sent, response, now)

    return handle_alter_partition_response


def truncate_to_the_end_of_the_leader(self, _leader_epoch, end_offset):
    return min(end_offset, self.log.log_end_offset)


FREQUENT_FLUSHES = {"log.flush.interval.ms": "300", "log.flush.scheduler.interval.ms": "200"}

BROKER_DEFECTS = (
    Defect("quorum-has-fetched", KafkaRaftClient, "_reset_fetch_timeout", restart_the_fetch_timeout, faults=0),
    Defect("request-matches-state", node, "take_clean_shutdown", forget_the_epoch, kinds=("stop",)),
    Defect(
        "closed-durably",
        node,
        "write_clean_shutdown",
        lambda disk, epoch: write_clean_shutdown(disk, epoch + 1),
        kinds=("stop",),
    ),
    Defect("closed-durably", node, "write_clean_shutdown", nothing, kinds=("stop",), faulty_ms=3_000),
    Defect("epochs-fit-log", UnifiedLog, "assign_epoch_start_offset", nothing, faults=0, faulty_ms=500),
    Defect("leader-is-followed", Partition, "_set_high_watermark", keep_watermark_of_follower, faults=0, faulty_ms=500),
    Defect("watermark-restored", log_manager.LogManager, "high_watermark", lambda *_: 0),
    Defect("quorum-progress", ReplicaState, "update_follower_state", forget_last_fetch, faults=0, faulty_ms=500),
    Defect("quorum-starts-known", QuorumState, "_initial_state", start_unattached, faulty_ms=3_000),
    Defect(
        "cut-durably",
        UnifiedLog,
        "truncate_to",
        cut_without_a_flush(UnifiedLog.truncate_to),
        kinds=("isolate",),
        faults=8,
        for_ms=4_000,
        faulty_ms=12_000,
        properties={"log.flush.interval.messages": "1"},
    ),
    Defect("quorum-remembers", QuorumState, "_persist", nothing, faults=0),
    Defect(
        "kept-long-enough",
        unified_log,
        "over_age",
        lambda segments, *_: len(segments) - 1,
        faults=0,
        properties={"log.roll.ms": "300", "log.retention.check.interval.ms": "500"},
    ),
    Defect("fetch-waits", fetch, "_wait", respond_at_once, faults=0),
    Defect(
        "diverging-at-once",
        fetch._PartitionStatus,
        "is_urgent",
        property(lambda self: self.error is not ErrorCode.none),
        kinds=("isolate",),
        faults=8,
        for_ms=4_000,
        faulty_ms=12_000,
    ),
    Defect("fetch-completes", fetch.DelayedFetch, "_may_complete", lambda *_: False, faults=0),
    Defect("fetch-completes", DelayedProduce, "check", lambda _: False, faults=0),
    Defect(
        "fetch-waits",
        KafkaRaftClient,
        "_handle_fetch_request",
        lambda self, _, request, now: self._try_complete_fetch_request(request, now),
        faults=0,
    ),
    Defect(
        "segments-rolled",
        LogSegment,
        "time_waited_for_roll_ms",
        lambda *_: 0,
        faults=0,
        properties={"log.roll.ms": "300"},
    ),
    Defect("snapshots-taken", ProducerSnapshots, "take", lambda *_: [], faults=0, properties={"log.roll.ms": "300"}),
    Defect("request-matches-state", Followers, "_broker_epoch", lambda *_: -1),
    Defect("watermark-follows", Followers, "committed_offset", wait_for_all_replicas, kinds=("isolate",), for_ms=9_000),
    Defect(
        "unclean-recovers",
        partition_changes,
        "_recovery_state",
        lambda *_, **__: -1,
        kinds=("isolate", "kill"),
        faults=12,
        faulty_ms=12_000,
        for_ms=5_000,
        properties={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
    ),
    Defect("laggard-leaves-isr", Partition, "maybe_shrink_isr", nothing, kinds=("isolate",), for_ms=9_000, faults=4),
    Defect(
        "leaves-isr-lagging",
        FollowerProgress,
        "is_caught_up",
        lambda self, end_offset, *_: self.end_offset == end_offset,
    ),
    Defect(
        "follower-progress",
        FollowerProgress,
        "update_fetch_state",
        count_a_follower_that_is_behind(FollowerProgress.update_fetch_state),
        for_ms=2_500,
        properties={"replica.fetch.max.bytes": "1"},
    ),
    Defect("channel-timeout", Channels, "_look", disconnect_at_the_first_check),
    Defect(
        "request-times-out",
        Channels,
        "_look",
        set_no_later_timer(Channels._look),
        kinds=("kill", "isolate"),
        faults=4,
        faulty_ms=12_000,
        seed=2,
    ),
    Defect(
        "request-matches-state",
        RequestManager,
        "has_any_inflight_request",
        property(lambda _: False),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect("shutdown-completes", node.Node, "is_stopped", property(lambda self: self.has_given_up), kinds=("stop",)),
    Defect(
        "leader-is-announced",
        QuorumConfig,
        "begin_quorum_epoch_timeout_ms",
        property(lambda self: self.fetch_timeout_ms),
        faults=0,
        faulty_ms=1_500,
    ),
    Defect("leader-is-announced", KafkaRaftClient, "_poll_leader", announce_nothing, faults=0, faulty_ms=500),
    Defect(
        "shutdown-hands-over",
        node.Node,
        "is_stopped",
        property(lambda self: self.quorum.is_shutting_down),
        kinds=("stop",),
    ),
    Defect(
        "quorum-response",
        KafkaRaftClient,
        "_end_epoch_election_backoff_ms",
        wait_like_the_last_candidate,
        kinds=("stop",),
    ),
    Defect(
        "rejects-truncation",
        KafkaRaftClient,
        "_handle_fetch_response",
        truncate_committed_records(KafkaRaftClient._handle_fetch_response),
        faults=0,
        faulty_ms=500,
    ),
    *(
        Defect(invariant, owner, attribute, replaced(getattr(owner, attribute)), faults=0, faulty_ms=500)
        for invariant, owner, attribute, replaced in (
            ("rejects-configuration", layout, "_endpoint", accept_any_endpoint),
            ("initial-quorum-state", QuorumState, "_initial_state", stand_for_election_without_being_a_voter),
            ("ignores-older-metadata", Partition, "apply", apply_older_metadata),
            ("applies-snapshot", GroupCoordinator, "on_metadata_update", ignore_snapshots),
            ("repeats-proposal", AlterPartitionManager, "_handle_alter_partition_response", ignore_a_lost_response),
            ("decides-again", Controller, "image_version", lambda _: 0),
        )
    ),
    Defect("truncates-divergence", Partition, "truncation_offset", truncate_to_the_end_of_the_leader),
    Defect("election-timeout", QuorumState, "_election_deadline_ms", wait_for_half_the_time),
    Defect("resigned-node-waits", KafkaRaftClient, "_poll_resigned", wait_indefinitely, kinds=("stop",)),
    Defect("ready-is-running", node.Node, "is_ready", property(lambda self: self.is_serving), faults=0, faulty_ms=500),
    Defect(
        "broker-heartbeats",
        BrokerLifecycleManager,
        "_schedule_next_communication_after_failure",
        nothing,
        kinds=("isolate",),
    ),
    Defect("inactive-is-fenced", PeriodicTasks, "schedule_session_expiry", nothing, for_ms=9_000, faulty_ms=10_000),
    Defect(
        "flushed-in-time",
        ReplicaManager,
        "flush_overdue",
        nothing,
        faults=0,
        properties=FREQUENT_FLUSHES,
    ),
    Defect(
        "flush-is-due",
        ReplicaManager,
        "flush_overdue",
        flush_everything,
        faults=0,
        properties=FREQUENT_FLUSHES,
    ),
    Defect("no-leftovers", Purgatory, "drop", nothing),
    Defect("no-leftovers", ReplicaFetcherManager, "_remove_fetcher", keep_the_connection),
    Defect("shutdown-in-time", node, "_NO_QUORUM_MAX_MS", 0, kinds=("stop",)),
    Defect(
        "laggard-leaves-isr",
        ReplicaManager,
        "_shrink_isrs",
        check_every_fourth_time(ReplicaManager._shrink_isrs),
        kinds=("pause",),
        faulty_ms=12_000,
        for_ms=6_000,
        properties={"broker.session.timeout.ms": "20000"},
    ),
    Defect("backs-off-from-peer", RequestManager, "back_off", nothing),
    Defect(
        "proposal-is-new",
        AlterPartitionManager,
        "_handle_alter_partition_response",
        keep_proposals(AlterPartitionManager._handle_alter_partition_response),
    ),
    Defect("fetches-again", ReplicaFetcherManager, "_move", nothing, faults=0),
    Defect(
        "snapshots-kept",
        SnapshotPolicy,
        "_is_expired",
        lambda _self, _now: True,
        properties={"metadata.log.max.record.bytes.between.snapshots": "300", "metadata.max.retention.bytes": "-1"},
    ),
    Defect(
        "backs-off",
        ReplicaFetcher,
        "_delay_partitions",
        fetch_again_at_once,
        kinds=("cut", "kill"),
        faults=8,
        for_ms=2_500,
        seed=2,
    ),
    Defect(
        "snapshots-due",
        SnapshotPolicy,
        "handle_commit",
        nothing,
        faults=0,
        properties={"metadata.log.max.record.bytes.between.snapshots": "300"},
    ),
    Defect("closed-durably", log_manager, "close_logs", nothing, kinds=("stop",)),
    Defect(
        "snapshots-known",
        snapshots,
        "insort",
        nothing,
        properties={"metadata.log.max.record.bytes.between.snapshots": "300"},
    ),
    Defect(
        "quorum-votes",
        KafkaRaftClient,
        "_handle_vote_request",
        store_a_pre_vote(KafkaRaftClient._handle_vote_request),
        faults=0,
    ),
    Defect("record-effect", MetadataImage, "_apply_to_broker", forget_directories(MetadataImage._apply_to_broker)),
    Defect("record-effect", MetadataImage, "copy", forget_features(MetadataImage.copy)),
    Defect("role-applied", Partition, "apply", drop_replicas(Partition.apply), faults=0),
    Defect("isr-applied", Partition, "apply", keep_the_isr_of_the_epoch(Partition.apply)),
    Defect(
        "fetchers-applied",
        ReplicaFetcherManager,
        "remove_partition",
        leave_without_counting(ReplicaFetcherManager.remove_partition),
    ),
    Defect("fetchers-applied", ReplicaFetcherManager, "update", lambda _self, _partition: None, faults=0),
    Defect("stale-response", ReplicaFetcher, "_is_current", is_current_wherever_the_log_ends, faults=0),
    Defect(
        "opens-as-closed",
        LogSegment,
        "_confirms_position",
        lambda _self, _entry: True,
        kinds=("stop",),
        properties={"log.index.interval.bytes": "0"},
    ),
    Defect(
        "opens-as-closed",
        LogSegment,
        "_confirms_position",
        is_any_batch,
        kinds=("stop",),
        properties={"log.index.interval.bytes": "0"},
    ),
    Defect("opens-as-closed", LogSegment, "sanity_check", nothing, kinds=("stop",)),
    Defect("opens-as-closed", SegmentLoader, "_remove_leftovers", keep_leftovers, kinds=("stop",)),
    Defect("opens-as-closed", UnifiedLog, "_load", keep_the_recovery_point(UnifiedLog._load), kinds=("stop",)),
    Defect(
        "controller-response",
        BrokerHeartbeatManager,
        "calculate_next_broker_state",
        negate_leads(BrokerHeartbeatManager.calculate_next_broker_state),
        kinds=("stop",),
    ),
)
