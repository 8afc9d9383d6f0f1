"""Requirements of clusters in which nodes and links fail. Those of one `Family` share a history (`fault_scripts`)."""

from typing import Final

from conformance.concurrent import fault_scripts
from conformance.concurrent.check import FAULT_SCRIPTS_DIVISOR, Family
from conformance.concurrent.cluster_checks import (
    broker_joins_and_leaves,
    created_topics_are_kept,
    damaged_nodes_recover,
    dead_broker_leaves,
    metadata_never_goes_back,
    partitions_are_served_without_controller,
    quorum_epoch_and_watermark_grow,
    reassignments_move_replicas,
)
from conformance.concurrent.election_checks import (
    clients_with_other_epochs_are_rejected,
    deposed_leader_acknowledges_nothing,
    diverging_epoch_is_returned,
    epoch_end_offsets_are_correct,
    follower_takes_over,
    offline_until_member_returns,
    one_leader_per_epoch,
    preferred_election_returns_right_error,
    replicas_agree,
    shutdown_moves_leaders,
    unclean_election_happens,
    unclean_election_takes_over,
)
from conformance.concurrent.fault_scripts import lag_time_max_ms
from conformance.concurrent.history_checks import acks_all_waits_for_isr, isr_shrinks_and_heals
from conformance.concurrent.isr_checks import (
    high_watermark_waits,
    idle_followers_stay,
    min_insync_replicas_is_enforced,
)
from conformance.concurrent.requirement_row import RequirementRow, always
from conformance.requirements.requirement import KRAFT
from conformance.requirements.sources import (
    BROKER_SESSION_TIMEOUT,
    GRACEFUL_SHUTDOWN,
    KIP_101,
    KIP_279,
    KIP_320,
    KIP_455,
    KIP_460,
    KIP_497,
    KIP_595,
    KIP_631,
    KIP_966,
    MIN_INSYNC_REPLICAS,
    PRODUCER_ACKS,
    REPLICA_LAG_TIME_MAX,
    REPLICATION,
    UNCLEAN_LEADER_ELECTION,
)
from fixtures.targets.target import Capability, Target

_SESSION_TIMEOUT_MS_DEFAULT: Final = 9_000
_MIN_INSYNC_REPLICAS: Final = 2
"""`min.insync.replicas` of the topics of `followers_cut_off`."""


def _session_timeout_ms(target: Target) -> int:
    return int(target.cluster_properties.get("broker.session.timeout.ms", _SESSION_TIMEOUT_MS_DEFAULT))


_FOLLOWERS_CUT_OFF: Final = Family("followers-cut-off", fault_scripts.followers_cut_off, FAULT_SCRIPTS_DIVISOR)
_LEADERS_FAIL_OVER: Final = Family("leaders-fail-over", fault_scripts.leaders_fail_over, FAULT_SCRIPTS_DIVISOR)
_ROLLING_BOUNCE: Final = Family("rolling-bounce", fault_scripts.rolling_bounce, FAULT_SCRIPTS_DIVISOR)
_LAST_REPLICA_LOST: Final = Family("last-replica-lost", fault_scripts.last_in_sync_replica_lost, FAULT_SCRIPTS_DIVISOR)
_UNCLEAN_ENABLED: Final = Family("unclean-enabled", fault_scripts.unclean_election_enabled, FAULT_SCRIPTS_DIVISOR)
_LEADER_PAUSED: Final = Family("leader-paused", fault_scripts.leader_paused, FAULT_SCRIPTS_DIVISOR)
_REASSIGNED: Final = Family("reassigned", fault_scripts.reassigned_under_load, divisor=1000)
"""The divisor is so large that one script runs: each script adds a broker, and a cluster has only nine node ids."""

_LINKS: Final = frozenset({Capability.REPLICATION, Capability.LINK_FAULTS})
_PROCESSES: Final = frozenset({Capability.REPLICATION, Capability.PROCESS_CONTROL})
_DISKS: Final = _PROCESSES | {Capability.LOG_DIRECTORIES}
_ALL: Final = _LINKS | _DISKS

ROWS: Final = (
    # --- the ISR
    RequirementRow(
        id="replication/isr-shrinks-and-expands",
        text="A follower that does not fetch while records are appended leaves the ISR after replica.lag.time.max.ms, "
        "and rejoins it once it has caught up.",
        sources=(REPLICATION, REPLICA_LAG_TIME_MAX),
        scripts=_FOLLOWERS_CUT_OFF,
        history_checks=always(isr_shrinks_and_heals),
        needs=_LINKS,
        nodes_min=3,
        since=KRAFT,
    ),
    RequirementRow(
        id="produce/acks-all-holds-for-isr",
        text="An acks=all Produce is acknowledged only once every replica in the ISR has the record. If one of them "
        "does not fetch, the acknowledgement waits until it has left the ISR. The record is not lost afterwards.",
        sources=(PRODUCER_ACKS, REPLICATION),
        scripts=_FOLLOWERS_CUT_OFF,
        history_checks=lambda target: (acks_all_waits_for_isr(lag_time_max_ms(target)),),
        needs=_LINKS,
        nodes_min=3,
    ),
    RequirementRow(
        id="replication/idle-follower-stays-in-isr",
        text="A follower that does not fetch stays in the ISR of a partition to which nothing is written, because its "
        "log is complete.",
        sources=(REPLICATION, REPLICA_LAG_TIME_MAX),
        scripts=_FOLLOWERS_CUT_OFF,
        history_checks=lambda target: (idle_followers_stay(lag_time_max_ms(target)),),
        needs=_LINKS,
        nodes_min=3,
    ),
    RequirementRow(
        id="produce/min-insync-replicas-is-enforced",
        text="While the ISR has fewer members than min.insync.replicas, an acks=all Produce is not acknowledged: a new "
        "one is rejected with NOT_ENOUGH_REPLICAS, a pending one times out.",
        sources=(MIN_INSYNC_REPLICAS, PRODUCER_ACKS),
        scripts=_FOLLOWERS_CUT_OFF,
        history_checks=always(min_insync_replicas_is_enforced(_MIN_INSYNC_REPLICAS)),
        needs=_LINKS,
        nodes_min=3,
    ),
    RequirementRow(
        id="replication/high-watermark-waits-for-min-isr",
        text="A record produced with acks=1 while the ISR has fewer members than min.insync.replicas is appended, and "
        "becomes visible only when the ISR has grown again: the high watermark does not advance before.",
        sources=(KIP_966, MIN_INSYNC_REPLICAS),
        scripts=_FOLLOWERS_CUT_OFF,
        history_checks=always(high_watermark_waits(_MIN_INSYNC_REPLICAS)),
        needs=_LINKS,
        nodes_min=3,
        since="3.7.0",  # KAFKA-15583
    ),
    # --- leaders that are killed
    RequirementRow(
        id="leadership/clean-election-loses-nothing",
        text="When a leader is killed, a member of the ISR becomes the leader and acknowledges records, and no record "
        "that was acknowledged under acks=all is lost.",
        sources=(REPLICATION, KIP_631),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(follower_takes_over),
        needs=_ALL,
        nodes_min=3,
    ),
    RequirementRow(
        id="leadership/one-leader-per-epoch",
        text="A leader epoch has one leader, and every change of leader increments the epoch.",
        sources=(KIP_101, KIP_320),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(one_leader_per_epoch),
        needs=_ALL,
        nodes_min=3,
    ),
    RequirementRow(
        id="leadership/preferred-election-requires-an-isr-member",
        text="ElectLeaders for the preferred leader returns PREFERRED_LEADER_NOT_AVAILABLE while that node is down, "
        "makes it the leader once it is in the ISR, and returns ELECTION_NOT_NEEDED if it already leads.",
        sources=(KIP_460,),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(preferred_election_returns_right_error),
        needs=_ALL,
        nodes_min=3,
        since=KRAFT,
    ),
    RequirementRow(
        id="epochs/replicas-truncate-where-epochs-diverge",
        text="A former leader that restarts truncates the records that the next leader did not have. It finds them by "
        "comparing leader epochs, not high watermarks, so this also holds after two failovers in a row. All replicas "
        "are then identical.",
        sources=(KIP_101, KIP_279),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(replicas_agree),
        needs=_ALL,
        nodes_min=3,
    ),
    RequirementRow(
        id="epochs/end-offset-of-an-old-epoch-is-returned",
        text="After failovers OffsetForLeaderEpoch returns the offset at which an older epoch's records end in the "
        "leader's log, so that a client can detect truncation.",
        sources=(KIP_101, KIP_320),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(epoch_end_offsets_are_correct),
        needs=_ALL,
        nodes_min=3,
    ),
    RequirementRow(
        id="epochs/fetch-returns-diverging-epoch",
        text="If the offset of a Fetch is beyond the end of its last fetched epoch in the leader's log, the response "
        "has a diverging epoch: the epoch and the end offset up to which the client's log can agree with the leader's.",
        sources=(KIP_320, KIP_595),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(diverging_epoch_is_returned),
        needs=_ALL,
        nodes_min=3,
    ),
    RequirementRow(
        id="storage/crashed-log-is-recovered",
        text="A broker that was killed starts again even if the end of a log is torn, and its indexes, producer "
        "snapshots, leader epochs and checkpoints are missing. It then has every record that was acknowledged under "
        "acks=all.",
        sources=(REPLICATION,),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(damaged_nodes_recover("disk")),
        needs=_ALL,
        nodes_min=3,
    ),
    RequirementRow(
        id="membership/dead-broker-leaves-and-returns",
        text="A broker that is killed is no longer listed as a broker of the cluster after broker.session.timeout.ms, "
        "and is listed again after it has started.",
        sources=(KIP_631, BROKER_SESSION_TIMEOUT),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=lambda target: (dead_broker_leaves(_session_timeout_ms(target)),),
        needs=_ALL,
        nodes_min=3,
    ),
    RequirementRow(
        id="quorum/created-topics-outlive-the-controller",
        text="Acknowledged metadata changes are not lost when the active controller is killed: each topic whose "
        "creation was acknowledged is known to every broker.",
        sources=(KIP_631, KIP_595),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(created_topics_are_kept),
        needs=_ALL,
        nodes_min=3,
        since=KRAFT,
    ),
    RequirementRow(
        id="quorum/partitions-are-served-without-the-controller",
        text="While the active controller is down, the other brokers still lead their partitions and acknowledge "
        "records.",
        sources=(KIP_631,),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(partitions_are_served_without_controller),
        needs=_ALL,
        nodes_min=3,
        since=KRAFT,
    ),
    RequirementRow(
        id="quorum/epoch-and-high-watermark-only-grow",
        text="The controller quorum has one leader per epoch, and neither the epoch nor the high watermark that "
        "DescribeQuorum returns decreases.",
        sources=(KIP_595,),
        scripts=_LEADERS_FAIL_OVER,
        history_checks=always(quorum_epoch_and_watermark_grow),
        needs=_ALL,
        nodes_min=3,
        since=KRAFT,
    ),
    # --- leaders that are shut down
    RequirementRow(
        id="leadership/controlled-shutdown-moves-leaders-first",
        text="During a controlled shutdown a broker's partitions get other leaders before its process ends, not after "
        "its session timeout; no acknowledged record is lost, and an idempotent producer gets no error.",
        sources=(GRACEFUL_SHUTDOWN, KIP_631),
        scripts=_ROLLING_BOUNCE,
        history_checks=lambda target: (shutdown_moves_leaders(_session_timeout_ms(target)),),
        needs=_DISKS,
        nodes_min=3,
    ),
    RequirementRow(
        id="metadata/rolling-restart-never-lowers-leader-epochs",
        text="While brokers are restarted one after the other, no broker returns a leader epoch in Metadata that is "
        "lower than one that it returned before.",
        sources=(KIP_320,),
        scripts=_ROLLING_BOUNCE,
        history_checks=always(metadata_never_goes_back),
        needs=_DISKS,
        nodes_min=3,
    ),
    RequirementRow(
        id="storage/emptied-replica-is-restored",
        text="A broker whose replica was deleted while it was down copies it from the leader before it is in the ISR "
        "again, and can then lead without data loss.",
        sources=(REPLICATION, KIP_497),
        scripts=_ROLLING_BOUNCE,
        history_checks=always(damaged_nodes_recover("wipe")),
        needs=_DISKS,
        nodes_min=3,
    ),
    # --- no member of the ISR
    RequirementRow(
        id="leadership/no-unclean-election-by-itself",
        text="With unclean.leader.election.enable=false a partition whose last ISR member is down has no leader until "
        "that member has restarted, and is served again afterwards.",
        sources=(UNCLEAN_LEADER_ELECTION, REPLICATION),
        scripts=_LAST_REPLICA_LOST,
        history_checks=always(offline_until_member_returns),
        needs=_ALL,
        nodes_min=3,
    ),
    RequirementRow(
        id="leadership/unclean-election-on-request",
        text="An unclean election by ElectLeaders makes a replica outside the ISR the leader, in a higher epoch; only "
        "a suffix of the log is lost, and the old leader truncates it when it restarts.",
        sources=(KIP_460, UNCLEAN_LEADER_ELECTION),
        scripts=_LAST_REPLICA_LOST,
        history_checks=always(unclean_election_takes_over, replicas_agree),
        needs=_ALL,
        nodes_min=3,
    ),
    RequirementRow(
        id="leadership/unclean-election-when-enabled",
        text="With unclean.leader.election.enable=true a replica outside the ISR becomes the leader when the last ISR "
        "member is down, in a higher epoch; only a suffix of the log is lost.",
        sources=(UNCLEAN_LEADER_ELECTION, REPLICATION),
        scripts=_UNCLEAN_ENABLED,
        history_checks=always(unclean_election_happens, replicas_agree),
        needs=_ALL,
        nodes_min=3,
        since="3.9.0",  # KAFKA-12670: KRaft did not support the setting before
    ),
    # --- leaders that are deposed
    RequirementRow(
        id="epochs/deposed-leader-acknowledges-nothing",
        text="A leader that was paused until another leader was elected acknowledges no acks=all record that was sent "
        "to it during the pause.",
        sources=(REPLICATION, KIP_320),
        scripts=_LEADER_PAUSED,
        history_checks=always(deposed_leader_acknowledges_nothing),
        needs=_DISKS,
        nodes_min=3,
    ),
    RequirementRow(
        id="epochs/client-behind-leader-is-fenced",
        text="After an election the new leader rejects Fetch, ListOffsets and OffsetForLeaderEpoch with "
        "FENCED_LEADER_EPOCH if their current leader epoch is lower than its own, and with UNKNOWN_LEADER_EPOCH if it "
        "is higher.",
        sources=(KIP_320,),
        scripts=_LEADER_PAUSED,
        history_checks=always(clients_with_other_epochs_are_rejected),
        needs=_DISKS,
        nodes_min=3,
    ),
    # --- reassignment
    RequirementRow(
        id="reassignment/nothing-is-lost-under-load",
        text="Replicas can be reassigned while records are produced, also with a log start offset above 0, and no "
        "acknowledged record is lost.",
        sources=(KIP_455,),
        scripts=_REASSIGNED,
        history_checks=always(reassignments_move_replicas),
        needs=_DISKS,
        nodes_min=3,
        since=KRAFT,
    ),
    RequirementRow(
        id="membership/broker-joins-and-leaves",
        text="A broker that joins a running cluster is listed as one of its brokers and can hold replicas; after it "
        "was shut down, UnregisterBroker removes it, and returns BROKER_ID_NOT_REGISTERED when it is repeated.",
        sources=(KIP_631,),
        scripts=_REASSIGNED,
        history_checks=always(broker_joins_and_leaves),
        needs=_DISKS,
        nodes_min=3,
        since=KRAFT,
    ),
)
