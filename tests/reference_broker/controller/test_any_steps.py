"""Invariants of the controller after any sequence of steps by brokers, leaders and administrators.

After every step, for each partition:

- The leader, if there is one, is active and in the ISR. If there is none, the first member of the ISR is not active.
- The ISR is not empty and contains only replicas. If it has several members, all of them are active.
- Unless an unclean election was possible, the leader was in the ISR before the step.
- The epochs have not decreased, and each leader epoch has had only one leader.

At the end, a replay of the metadata records gives the same image.
"""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.controller.elections import UNCLEAN_ELECTION, ElectionType
from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.metadata.image import MetadataImage
from reference_broker.protocol.metadata_records import NO_LEADER
from tests.reference_broker.controller.scripted_controller import ScriptedController

BROKERS = (1, 2, 3)
TOPICS = {"orders": "123", "payments": "31", "single": "2"}

brokers = st.sampled_from(BROKERS)
topics = st.sampled_from(sorted(TOPICS))
steps = st.one_of(  # each is the name of a method of `Run`, and its arguments
    st.tuples(st.just("start"), brokers),
    st.tuples(st.just("unfence"), brokers),
    st.tuples(st.just("lag_behind"), brokers),
    st.tuples(st.just("fence"), brokers),
    st.tuples(st.just("shut_down"), brokers),
    st.tuples(st.just("advance"), st.sampled_from([500, 3_000, 9_001])),
    st.tuples(st.just("propose"), topics, st.lists(brokers, unique=True, min_size=1)),
    st.tuples(st.just("elect"), topics, st.sampled_from(ElectionType)),
    st.tuples(st.just("allow_unclean_election"), topics, st.sampled_from(["true", "false"])),
    st.tuples(st.just("fail_over")),
    st.tuples(st.just("unregister"), brokers),
)


@dataclass
class Run:
    """A controller with three brokers, and what the steps and checks so far have recorded.

    :ivar incarnations: how often each broker was restarted.
    :ivar leaders: the leader of each leader epoch, by topic and epoch.
    :ivar epochs: the last leader epoch and partition epoch of each topic's partition.
    :ivar is_unclean: whether an unclean election was requested or allowed.
    :ivar shutting_down: brokers that have requested a controlled shutdown. Like those of a real broker, all their later
        heartbeats request it too. Any other heartbeat could unfence such a broker and make it a leader, although it is
        registered as shutting down; Kafka's controller does the same (`brokerToAdd` in `ReplicationControlManager`).
    """

    controller: ScriptedController
    incarnations: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BROKERS, 0))
    leaders: dict[tuple[str, int], int] = field(default_factory=dict)
    epochs: dict[str, tuple[int, int]] = field(default_factory=dict)
    is_unclean: bool = False
    shutting_down: set[int] = field(default_factory=set)

    def start(self, broker_id):
        self.incarnations[broker_id] += 1
        self.shutting_down.discard(broker_id)
        self.controller.register(broker_id, self.incarnations[broker_id])

    def heartbeat(self, broker_id, **fields):
        if broker_id in self.controller.image.brokers:
            if broker_id in self.shutting_down:
                fields["want_shut_down"] = True
            self.controller.heartbeat(broker_id, **fields)

    def unfence(self, broker_id):
        self.heartbeat(broker_id)

    def lag_behind(self, broker_id):
        self.heartbeat(broker_id, current_metadata_offset=0)

    def fence(self, broker_id):
        self.heartbeat(broker_id, want_fence=True)

    def shut_down(self, broker_id):
        self.shutting_down.add(broker_id)
        self.heartbeat(broker_id)

    def advance(self, by_ms):
        self.controller.advance(by_ms)

    def propose(self, topic, members):
        if self.controller.partition(topic).leader in self.controller.image.brokers:
            self.controller.propose(topic, "".join(map(str, members)))

    def elect(self, topic, election_type):
        try:
            change = self.controller.controller.elections.elect_leader(topic, 0, election_type)
        except ControllerError:
            return
        self.is_unclean |= election_type is ElectionType.UNCLEAN
        self.controller.controller.write([change], lambda _: None, self.controller.now)

    def allow_unclean_election(self, topic, value):
        self.is_unclean |= value == "true"
        self.controller.configure(ResourceType.TOPIC, topic, UNCLEAN_ELECTION, value)

    def fail_over(self):
        self.controller.fail_over()

    def unregister(self, broker_id):
        self.controller.request("UnregisterBroker", 0, broker_id=broker_id)

    def check(self):
        for topic in TOPICS:
            self.check_partition(topic)

    def check_partition(self, topic):
        image, partition = self.controller.image, self.controller.partition(topic)
        assert partition.isr
        assert set(partition.isr) <= set(partition.replicas)
        assert all(image.is_active(broker_id) for broker_id in partition.isr) or len(partition.isr) == 1
        if partition.leader != NO_LEADER:
            assert partition.leader in partition.isr
            assert image.is_active(partition.leader)
        else:
            assert not image.is_active(partition.isr[0]), "an in-sync replica could lead"
        epochs = (partition.leader_epoch, partition.partition_epoch)
        assert all(new >= old for new, old in zip(epochs, self.epochs.get(topic, epochs), strict=True))
        self.epochs[topic] = epochs
        assert self.leaders.setdefault((topic, partition.leader_epoch), partition.leader) == partition.leader


@settings(max_examples=100)
@given(st.lists(steps, max_size=30))
def test_invariants_hold_after_any_steps(generated):
    controller = ScriptedController()
    controller.serve(*BROKERS)
    for topic, replicas in TOPICS.items():
        controller.create(topic, replicas)
    run = Run(controller)
    run.check()
    in_sync = {topic: set(controller.partition(topic).isr) for topic in TOPICS}
    for name, *arguments in generated:
        getattr(run, name)(*arguments)
        run.check()
        for topic, before in in_sync.items():
            partition = controller.partition(topic)
            assert run.is_unclean or partition.leader in before | {NO_LEADER}, "a leader that was not in sync"
            in_sync[topic] = set(partition.isr)
    assert controller.image.records() == replay(controller.log.records).records()


def replay(records):
    """Return the image that results from these records."""
    image = MetadataImage()
    for record in records:
        image.apply(record)
    return image
