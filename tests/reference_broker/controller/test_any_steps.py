"""Invariants of the controller after any sequence of steps by brokers, leaders and administrators.

After every step, a leader is active and in the ISR. An ISR contains only replicas, all of them active unless it has one
member. Epochs never decrease, and each leader epoch has one leader. At the end, a replay of the records gives the same
image.
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
steps = st.one_of(
    st.tuples(st.just("start"), brokers),
    st.tuples(st.just("serve"), brokers),
    st.tuples(st.just("lag"), brokers),
    st.tuples(st.just("fence"), brokers),
    st.tuples(st.just("leave"), brokers),
    st.tuples(st.just("wait"), st.sampled_from([500, 3_000, 9_001])),
    st.tuples(st.just("propose"), topics, st.lists(brokers, unique=True, min_size=1)),
    st.tuples(st.just("elect"), topics, st.sampled_from(ElectionType)),
    st.tuples(st.just("permit"), topics, st.sampled_from(["true", "false"])),
    st.tuples(st.just("fail_over")),
    st.tuples(st.just("unregister"), brokers),
)


@dataclass
class History:
    """A cluster, and its observed leaders and epochs."""

    controller: ScriptedController
    lives: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BROKERS, 0))
    leaders: dict[tuple[str, int], int] = field(default_factory=dict)
    epochs: dict[str, tuple[int, int]] = field(default_factory=dict)
    unclean: bool = False
    shutting_down: set[int] = field(default_factory=set)
    """Brokers that requested their shutdown, and continue to request it. If such a broker wanted to be unfenced again,
    it would be elected although its registration is in controlled shutdown, as in Kafka (`brokerToAdd` in
    ReplicationControlManager)."""

    def start(self, broker_id):
        self.lives[broker_id] += 1
        self.shutting_down.discard(broker_id)
        self.controller.register(broker_id, self.lives[broker_id])

    def heartbeat(self, broker_id, **fields):
        if broker_id in self.controller.image.brokers:
            if broker_id in self.shutting_down:
                fields["want_shut_down"] = True
            self.controller.heartbeat(broker_id, **fields)

    def serve(self, broker_id):
        self.heartbeat(broker_id)

    def lag(self, broker_id):
        self.heartbeat(broker_id, current_metadata_offset=0)

    def fence(self, broker_id):
        self.heartbeat(broker_id, want_fence=True)

    def leave(self, broker_id):
        self.shutting_down.add(broker_id)
        self.heartbeat(broker_id)

    def wait(self, for_ms):
        self.controller.advance(for_ms)

    def propose(self, topic, members):
        if self.controller.partition(topic).leader in self.controller.image.brokers:
            self.controller.propose(topic, "".join(map(str, members)))

    def elect(self, topic, election_type):
        try:
            change = self.controller.controller.elections.elect_leader(topic, 0, election_type)
        except ControllerError:
            return
        self.unclean |= election_type is ElectionType.UNCLEAN
        self.controller.controller.write([change], lambda _: None, self.controller.now)

    def permit(self, topic, value):
        self.unclean |= value == "true"
        self.controller.configure(ResourceType.TOPIC, topic, UNCLEAN_ELECTION, value)

    def fail_over(self):
        self.controller.fail_over()

    def unregister(self, broker_id):
        self.controller.request("UnregisterBroker", 0, broker_id=broker_id)

    def check(self):
        for topic in TOPICS:
            self.check_partition(topic)

    def check_partition(self, topic):
        image, now = self.controller.image, self.controller.partition(topic)
        assert now.isr
        assert set(now.isr) <= set(now.replicas)
        assert all(image.is_active(broker_id) for broker_id in now.isr) or len(now.isr) == 1
        if now.leader != NO_LEADER:
            assert now.leader in now.isr
            assert image.is_active(now.leader)
        else:
            assert not image.is_active(now.isr[0]), "an in-sync replica could lead"
        epoch = (now.leader_epoch, now.partition_epoch)
        assert all(new >= old for new, old in zip(epoch, self.epochs.get(topic, epoch), strict=True))
        self.epochs[topic] = epoch
        assert self.leaders.setdefault((topic, now.leader_epoch), now.leader) == now.leader


@settings(max_examples=100)
@given(st.lists(steps, max_size=30))
def test_invariants_hold_after_any_steps(story):
    controller = ScriptedController()
    controller.serve(*BROKERS)
    for topic, replicas in TOPICS.items():
        controller.create(topic, replicas)
    history = History(controller)
    history.check()
    in_sync = {topic: set(controller.partition(topic).isr) for topic in TOPICS}
    for name, *arguments in story:
        getattr(history, name)(*arguments)
        history.check()
        for topic, before in in_sync.items():
            now = controller.partition(topic)
            assert history.unclean or now.leader in before | {NO_LEADER}, "a leader that was not in sync"
            in_sync[topic] = set(now.isr)
    assert controller.image.records() == replayed(controller.log.records).records()


def replayed(records):
    image = MetadataImage()
    for record in records:
        image.apply(record)
    return image
