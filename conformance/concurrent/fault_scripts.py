"""Scripts in which nodes and links fail: fixed sequences of moves, with record counts that depend on the seed.

Each script tests several requirements. A topic has three replicas and `min.insync.replicas` 2 unless the script needs
less. If a leader must have records that are not replicated, its responses to the followers' fetches are cut. It is not
enough to cut the fetches: a fetch that is already pending at the leader would deliver the records.
"""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.trial.moves import (
    AwaitBrokers,
    AwaitController,
    AwaitIsr,
    AwaitLeader,
    Begin,
    DeleteRecordsToEnd,
    ElectLeader,
    FetchFromEnd,
    Heal,
    Move,
    MoveReplicas,
    ProbeLeaderEpochs,
    ProduceBatch,
    StartBroker,
    StopBroker,
    UnregisterNewcomer,
)
from conformance.trial.phased_clients import (
    AwaitNodeFault,
    MetadataWatcher,
    OneShotProducer,
    PipelinedProducer,
    SendRecords,
    TopicCreator,
    Trickle,
)
from conformance.trial.trial import Client, Placement, Topic, Trial
from conformance.trial.workloads import Tail
from fixtures.clients.administration import Election
from fixtures.clients.steps import Flush, Idle
from fixtures.faults import CutConnections, Damage, DamageDisk, Kill, Lost, Node, Pause, Role, ShutDown
from fixtures.targets.target import Target

_COUNT = st.integers(1, 40)
_LAG_TIME_MAX_MS_DEFAULT = 30_000
_LEADER, _FOLLOWER, _LAST = Role.FIRST_REPLICA, Role.SECOND_REPLICA, Role.THIRD_REPLICA
_TWO_IN_SYNC = (("min.insync.replicas", "2"),)
_ONE_IN_SYNC = (("min.insync.replicas", "1"),)


def lag_time_max_ms(target: Target) -> int:
    """Return `replica.lag.time.max.ms` of a target."""
    return int(target.cluster_properties.get("replica.lag.time.max.ms", _LAG_TIME_MAX_MS_DEFAULT))


def _load(records: int, partition: int = 0) -> tuple[Client, ...]:
    """Return an idempotent producer, which sends before, during and after the faults, and a consumer.

    The producer has one request in flight. With more, librdkafka 2.16 may send a later request to a new leader before
    an earlier one, and the leader returns OUT_OF_ORDER_SEQUENCE_NUMBER. The client then bumps its producer epoch and
    writes a record twice (observed on Apache Kafka 4.3.1 in one shutdown of ten). The cluster is correct in this case.
    """
    producer = PipelinedProducer(
        partition,
        in_flight_max=1,
        steady=(SendRecords(records), Flush()),
        faulty=(Trickle(pause_ms=50),),
        healed=(SendRecords(records),),
    )
    return (producer, Tail())


def followers_cut_off(target: Target) -> SearchStrategy[Trial]:
    """Generate scripts that lose the fetches of one follower, and then those of the other one, too.

    The leader does not change, and partition 1 gets no records during the faults.
    """
    lag_ms = lag_time_max_ms(target)

    def build(counts: tuple[int, int, int]) -> Trial:
        first, delayed, alone = counts
        faulty = (Idle(100), SendRecords(delayed), Idle(lag_ms), SendRecords(delayed), Flush())
        clients: list[Client] = [
            OneShotProducer(idempotent=True, steady=(SendRecords(first),), faulty=faulty, healed=(SendRecords(1),)),
            PipelinedProducer(
                linger_ms=5, steady=(SendRecords(first), Flush()), faulty=faulty, healed=(SendRecords(1),)
            ),
            OneShotProducer(partition=1, steady=(SendRecords(first),)),
            MetadataWatcher(),
        ]
        moves: tuple[Move, ...] = (
            Begin(CutConnections(_FOLLOWER, _LEADER)),
            AwaitIsr(2),
            Idle(1_000),
            Begin(CutConnections(_LAST, _LEADER)),
            Idle(1_000),
            ProduceBatch(_LEADER, alone, timeout_ms=1_000),
            AwaitIsr(1),
            # A leader that has not applied its new ISR yet may append the first batch without acknowledging it.
            ProduceBatch(_LEADER, alone),
            ProduceBatch(_LEADER, alone),
            ProduceBatch(_LEADER, alone, acks=1),
            FetchFromEnd(_LEADER),
            Idle(1_000),
            FetchFromEnd(_LEADER),
            Heal(),
            AwaitIsr(3),
        )
        settings = Topic(partitions=2, properties=_TWO_IN_SYNC, placement=Placement.ONE_LEADER)
        return Trial(topics=(settings,), clients=tuple(clients), moves=moves)

    return st.tuples(_COUNT, _COUNT, st.integers(1, 5)).map(build)


def leaders_fail_over(_: Target) -> SearchStrategy[Trial]:
    """Generate failures of two leaders that have unreplicated records, and their later restarts (KIP-101, KIP-279).

    The first leader is also the active controller. It is killed while topics are created, and restarts with a torn log
    and without checkpoints, snapshots and indexes. It cannot fetch from the second leader, because their link is cut.
    Then the second leader is shut down, and the third leads in the next epoch. The log of the first leader has no
    records of the second leader's epoch. Partition 1 is led by a node other than the controller.
    """

    def build(counts: tuple[int, int]) -> Trial:
        records, alone = counts
        unreplicated = (Begin(CutConnections(node, _LEADER, Lost.ANSWERS)) for node in (_FOLLOWER, _LAST))
        damages = (Damage.TORN_TAIL, Damage.CHECKPOINTS, Damage.SNAPSHOTS, Damage.INDEXES)
        moves: tuple[Move, ...] = (
            Idle(300),
            *unreplicated,
            ProduceBatch(_LEADER, alone, acks=1),
            Begin(Kill(_LEADER)),
            Heal(),
            *(Begin(DamageDisk(_LEADER, what)) for what in damages),
            AwaitController(_LEADER),
            AwaitLeader(_FOLLOWER),
            AwaitBrokers(2),
            ElectLeader(),
            Begin(CutConnections(_LEADER, _FOLLOWER, Lost.ANSWERS)),
            Heal(_LEADER),
            AwaitBrokers(3),
            Begin(CutConnections(_LAST, _FOLLOWER, Lost.ANSWERS)),
            ProduceBatch(_FOLLOWER, alone + 1, acks=1),
            Begin(ShutDown(_FOLLOWER)),
            Heal(),
            AwaitLeader(_LAST),
            AwaitIsr(2),
            ProduceBatch(_LAST, records),
            ProbeLeaderEpochs(_LAST),
            Heal(_FOLLOWER),
            AwaitIsr(3),
            ElectLeader(),
            AwaitLeader(_LEADER),
            ElectLeader(),
        )
        watchers = tuple(MetadataWatcher(node, cluster=True) for node in (_FOLLOWER, _LAST))
        creator = TopicCreator(_FOLLOWER, topics_max=10, pause_ms=200)
        settings = Topic(partitions=2, properties=_TWO_IN_SYNC, placement=Placement.CONTROLLER_LEADS)
        clients = (*_load(records), *_load(records, partition=1)[:1], creator, *watchers)
        return Trial(topics=(settings,), clients=clients, moves=moves)

    return st.tuples(_COUNT, st.integers(1, 5)).map(build)


def rolling_bounce(_: Target) -> SearchStrategy[Trial]:
    """Generate restarts of all nodes, one after the other. After each, the script waits until the ISR is full again.

    One node restarts without its replica of the topic, another one without index files.

    Producer snapshots are kept. Without them, Kafka assumes that a cleanly closed log has no idempotent producers, and
    does not detect their retries (4.3.1: a duplicate). Only after a crash does Kafka rebuild the snapshots.
    """

    def build(records: int) -> Trial:
        def bounce(node: Node, *damages: Damage) -> tuple[Move, ...]:
            return (
                Begin(ShutDown(node)),
                *(Begin(DamageDisk(node, what)) for what in damages),
                Heal(node),
                AwaitIsr(3),
            )

        moves = (
            *bounce(_LEADER, Damage.REPLICA),
            *bounce(_FOLLOWER, Damage.INDEXES),
            *bounce(_LAST),
            ElectLeader(),
            AwaitLeader(_LEADER),
        )
        watchers = tuple(MetadataWatcher(node, period_ms=100) for node in (_LEADER, _FOLLOWER, _LAST))
        return Trial(topics=(Topic(properties=_TWO_IN_SYNC),), clients=(*_load(records), *watchers), moves=moves)

    return _COUNT.map(build)


def last_in_sync_replica_lost(_: Target) -> SearchStrategy[Trial]:
    """Generate two shutdowns of a leader whose follower lags.

    After the first shutdown the leader restarts; after the second, an unclean election makes the follower the leader.

    With `min.insync.replicas` 1 the leader alone acknowledges. The follower's link is cut until the follower leads.
    """

    def build(counts: tuple[int, int]) -> Trial:
        records, alone = counts
        offline = (Begin(ShutDown(_LEADER)), AwaitLeader(None), Idle(1_000))
        moves: tuple[Move, ...] = (
            Begin(CutConnections(_FOLLOWER, _LEADER, Lost.ANSWERS)),
            Idle(100),
            ProduceBatch(_LEADER, alone),
            AwaitIsr(1),
            ProduceBatch(_LEADER, records),
            *offline,
            ProduceBatch(_FOLLOWER, alone),
            ElectLeader(),
            Heal(_LEADER),
            AwaitLeader(_LEADER),
            ProduceBatch(_LEADER, alone),
            FetchFromEnd(_LEADER),
            *offline,
            ElectLeader(Election.UNCLEAN),
            AwaitLeader(_FOLLOWER),
            ProduceBatch(_FOLLOWER, records),
            Heal(),
            Heal(_LEADER),
            AwaitIsr(2),
        )
        clients = (
            OneShotProducer(idempotent=True, steady=(SendRecords(records),)),
            Tail(),
            MetadataWatcher(Role.OUTSIDER, period_ms=100),
        )
        return Trial(topics=(Topic(replication_factor=2, properties=_ONE_IN_SYNC),), clients=clients, moves=moves)

    return st.tuples(_COUNT, st.integers(1, 5)).map(build)


def unclean_election_enabled(_: Target) -> SearchStrategy[Trial]:
    """Generate a shutdown of a leader whose follower lags, with unclean leader election enabled."""

    def build(counts: tuple[int, int]) -> Trial:
        records, alone = counts
        moves: tuple[Move, ...] = (
            Begin(CutConnections(_FOLLOWER, _LEADER, Lost.ANSWERS)),
            Idle(100),
            ProduceBatch(_LEADER, alone),
            AwaitIsr(1),
            ProduceBatch(_LEADER, records),
            Begin(ShutDown(_LEADER)),
            AwaitLeader(_FOLLOWER),
            ProduceBatch(_FOLLOWER, records),
            Heal(),
            Heal(_LEADER),
            AwaitIsr(2),
        )
        properties = (*_ONE_IN_SYNC, ("unclean.leader.election.enable", "true"))
        clients = (
            OneShotProducer(idempotent=True, steady=(SendRecords(records),)),
            MetadataWatcher(Role.OUTSIDER, period_ms=100),
        )
        return Trial(topics=(Topic(replication_factor=2, properties=properties),), clients=clients, moves=moves)

    return st.tuples(_COUNT, st.integers(1, 5)).map(build)


def leader_paused(_: Target) -> SearchStrategy[Trial]:
    """Generate a pause of the leader of partition 0 until another leader is elected.

    The paused node is not the active controller.
    """

    def build(records: int) -> Trial:
        moves: tuple[Move, ...] = (
            Idle(300),
            Begin(Pause(_LEADER)),
            AwaitLeader(_FOLLOWER),
            ProduceBatch(_FOLLOWER, records),
            ProbeLeaderEpochs(_FOLLOWER),
            Heal(_LEADER),
            AwaitIsr(3),
        )
        deposed = OneShotProducer(
            records_leader_epoch=False, steady=(SendRecords(records),), faulty=(AwaitNodeFault(), SendRecords(records))
        )
        unsafe = OneShotProducer(acks=1, steady=(SendRecords(1),), faulty=(Trickle(pause_ms=100),))
        clients = (deposed, unsafe, *_load(records), *_load(records, partition=1)[:1], MetadataWatcher(_LAST))
        settings = Topic(partitions=2, properties=_TWO_IN_SYNC, placement=Placement.CONTROLLER_FOLLOWS)
        return Trial(topics=(settings,), clients=clients, moves=moves)

    return _COUNT.map(build)


def reassigned_under_load(_: Target) -> SearchStrategy[Trial]:
    """Generate reassignments under load, also to a broker that joins the cluster and leaves it again."""

    def build(records: int) -> Trial:
        moves: tuple[Move, ...] = (
            Idle(200),
            DeleteRecordsToEnd(),
            MoveReplicas((_FOLLOWER, Role.OUTSIDER)),
            Idle(200),
            StartBroker(),
            AwaitBrokers(4),
            MoveReplicas((Role.NEWCOMER, _LEADER)),
            Idle(200),
            MoveReplicas((_LEADER, _FOLLOWER)),
            StopBroker(),
            AwaitBrokers(3),
            UnregisterNewcomer(),
            UnregisterNewcomer(),
        )
        clients = (*_load(records), MetadataWatcher(Role.OUTSIDER, period_ms=100, cluster=True))
        return Trial(topics=(Topic(replication_factor=2, properties=_ONE_IN_SYNC),), clients=clients, moves=moves)

    return _COUNT.map(build)
