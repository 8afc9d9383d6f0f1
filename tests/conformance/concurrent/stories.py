"""Stories: short valid histories of the scripts in `conformance.concurrent.fault_scripts`.

Apache Kafka 4.3.1 produced the histories. They are reduced to the rows that the history checks read, and their times
are rounded. A test changes or drops rows to plant a violation. Methods take times in seconds; rows have nanoseconds.
"""

SECOND_NS = 1_000_000_000
TOPIC = "t"
QUORUM = "__cluster_metadata"
REQUEST_TIME = "asked_ns"


def ns(seconds):
    return None if seconds is None else int(seconds * SECOND_NS)


class Table(list):
    def to_pylist(self):
        return [dict(row) for row in self]


class Story:
    """Fake of `History`: tables of rows that tests add, change and drop."""

    def __init__(self):
        self.rows = {"operations": Table(), "records": Table(), "states": Table(), "faults": Table()}

    def table(self, name):
        return self.rows[name]

    # --- writing

    def call(self, f, begin, end, error=None, *, topic=TOPIC, partition=0, node=1, **columns):
        op_id = len(self.rows["operations"]) + 1
        outcome = columns.pop("outcome", "ok" if error is None else "info")
        row = {"op_id": op_id, "f": f, "invoke_ns": ns(begin), "complete_ns": ns(end), "outcome": outcome}
        row |= {"error": error, "node": node, "topic": topic, "partition": partition, "attempts": 1}
        self.rows["operations"].append(row | {"acks": None, "producer_id": None} | columns)
        return op_id

    def produce(self, begin, end, value, offset, error=None, *, acks=-1, partition=0, **columns):
        op_id = self.call("produce", begin, end, error, acks=acks, partition=partition, **columns)
        self._record(op_id, "send", value, offset if error is None else None, None, partition)

    def replica(self, node, *entries, partition=0, topic=TOPIC):
        """Add the log of the replica on a node.

        :param entries: value and leader epoch of each record, from offset 0 on.
        """
        op_id = self.call("read_replica", 50, 51, node=node, topic=topic, partition=partition)
        for offset, (value, epoch) in enumerate(entries):
            self._record(op_id, "read", value, offset, epoch, partition, topic)

    def _record(self, op_id, direction, value, offset, epoch, partition, topic=TOPIC):
        row = {"op_id": op_id, "direction": direction, "value": value, "offset": offset, "leader_epoch": epoch}
        self.rows["records"].append(row | {"topic": topic, "partition": partition, "timestamp_ms": 1000 + value})

    def metadata(self, at, leader, epoch, isr, *, node=1, partition=0, topic=TOPIC):
        self._state("metadata", at, node, topic, partition, leader=leader, leader_epoch=epoch, isr=list(isr))

    def end(self, at, high_watermark, *, node=1):
        """Add a response of ListOffsets with the end offset of partition 0."""
        self._state("list_offsets", at, node, TOPIC, 0, high_watermark=high_watermark)

    def epoch_end(self, at, epoch, end_offset, source="offset_for_leader_epoch"):
        self._state(source, at, 3, TOPIC, 0, leader_epoch=epoch, log_end_offset=end_offset)

    def quorum(self, at, leader, epoch, high_watermark, *, node=2):
        described = {"leader": leader, "leader_epoch": epoch, "high_watermark": high_watermark}
        self._state("describe_quorum", at, node, QUORUM, 0, isr=[1, 2, 3], **described)

    def brokers(self, at, *nodes):
        """Add a response of DescribeCluster with these brokers."""
        self._state("describe_cluster", at, 2, QUORUM, 0, isr=list(nodes))

    def _state(self, source, at, node, topic, partition, **columns):
        row = {"source": source, REQUEST_TIME: ns(at), "answered_ns": ns(at + 0.01), "node": node, "topic": topic}
        nothing = dict.fromkeys(("leader", "leader_epoch", "isr", "high_watermark", "log_end_offset", "error"))
        self.rows["states"].append(row | {"partition": partition} | nothing | columns)

    def fault(self, kind, target, begin, end, argument=None):
        row = {"kind": kind, "target": target, "argument": argument, "inject_ns": ns(begin), "heal_ns": ns(end)}
        self.rows["faults"].append(row)

    # --- planting

    def change(self, table, where, **columns):
        """Set `columns` in all rows that have the values of `where`; fail if no row has them."""
        found = [row for row in self.rows[table] if all(row[name] == value for name, value in where.items())]
        assert found, f"no row of {table} has {where}"
        for row in found:
            row.update(columns)

    def change_states(self, at, where=None, **columns):
        """Set `columns` in the states that were requested at `at` and have the values of `where`."""
        self.change("states", {REQUEST_TIME: ns(at), **(where or {})}, **columns)

    def drop_states(self, at):
        self.drop("states", **{REQUEST_TIME: ns(at)})

    def drop(self, table, **where):
        found = [row for row in self.rows[table] if all(row[name] == value for name, value in where.items())]
        assert found, f"no row of {table} has {where}"
        for row in found:
            self.rows[table].remove(row)


def followers_cut_off():
    """Return the story of two followers that are cut off one after the other.

    Node 1 leads both partitions; node 2 is cut off at 1 s and node 3 at 6 s; both are back at 13 s. The metadata of
    node 2 shows the small ISR later than that of node 1.
    """
    story = Story()
    story.call("create_topic", 0, 0.1)
    for partition in (0, 1):
        story.metadata(0.2, 1, 0, (1, 2, 3), partition=partition)
    story.produce(0.3, 0.4, 0, 0)
    story.produce(0.3, 0.4, 1, 0, partition=1)
    story.fault("cut", "2->1", 1, 13, "requests")
    story.produce(1.5, 4.6, 2, 1)
    story.metadata(4.4, 1, 0, (1, 2, 3))
    story.metadata(4.7, 1, 0, (1, 3))
    story.fault("cut", "3->1", 6, 13, "requests")
    story.produce(7, 8, 3, None, "REQUEST_TIMED_OUT")
    story.metadata(9, 1, 0, (1,))
    story.metadata(9.2, 1, 0, (1, 3), node=2)
    story.produce(9.5, 9.6, 4, None, "NOT_ENOUGH_REPLICAS", outcome="fail")
    story.produce(9.7, 9.8, 5, 3, acks=1)
    story.end(10, 2)
    for at in (11, 12):
        story.metadata(at, 1, 0, (1,))
    for at in (1.2, 9, 12):
        story.metadata(at, 1, 0, (1, 2, 3), partition=1)
    story.metadata(14, 1, 0, (1, 2, 3))
    story.end(15, 4)
    return story


def leaders_fail_over():
    """Return the story of two failovers, by a kill and by a shutdown.

    Node 1 leads t-0 and is the active controller. It is killed at 1 s and restarts at 8 s. Node 2 then leads t-0 until
    its shutdown at 10 s, and node 3 until the preferred election of node 1 at 17 s. The topic `t-1` that is created at
    3 s is not partition 1 of the topic `t`.
    """
    story = Story()
    story.call("create_topic", 0, 0.1)
    story.metadata(0.2, 1, 0, (1, 2, 3))
    story.metadata(0.2, 2, 0, (2, 3, 1), partition=1)
    story.quorum(0.3, 1, 1, 50)
    story.brokers(0.4, 1, 2, 3)
    story.produce(0.5, 0.6, 0, 0)
    story.produce(0.8, 0.9, 1, 1, acks=1)
    story.fault("kill", "1", 1, 8)
    story.fault("disk", "1", 1.1, 8, "indexes deleted")
    story.quorum(2.5, 2, 2, 60)
    story.call("create_topic", 3, 3.1, topic="t-1")
    story.metadata(6.5, 2, 0, (2, 3), partition=1)
    story.produce(3, 6.9, 10, 0, partition=1)
    story.brokers(7, 2, 3)
    story.metadata(7.1, 2, 1, (2, 3), node=2)
    story.call("elect_preferred_leader", 7.2, 7.3, "PREFERRED_LEADER_NOT_AVAILABLE")
    story.produce(7.4, 7.5, 2, 1)
    story.brokers(9, 1, 2, 3)
    story.metadata(9.5, 2, 1, (2, 3), node=3)
    story.fault("shutdown", "2", 10, 11)
    story.fault("down", "2", 11, 15)
    story.metadata(11.5, 3, 2, (3,), node=3)
    story.quorum(12, 3, 3, 80)
    story.epoch_end(13, 0, 1)
    story.epoch_end(13.5, 0, 1, source="diverging_epoch")
    story.metadata(16, 3, 2, (1, 2, 3), node=3)
    story.call("elect_preferred_leader", 17, 17.1)
    story.metadata(18, 1, 3, (1, 2, 3), node=3)
    story.call("elect_preferred_leader", 19, 19.1, "ELECTION_NOT_NEEDED")
    story.metadata(20, 1, 3, (1, 2, 3), node=3)
    story.brokers(21, 1, 2, 3)
    for node in (1, 2, 3):
        story.replica(node, (0, 0), (2, 1))
        story.metadata(30, 2, 0, (2, 3), node=node, topic="t-1")
    return story


def rolling_bounce():
    """Return the story of a leader that restarts without its log.

    Node 1 leads. It is down from 2 s to 6 s. In this time its replica is deleted, and node 2 leads. Node 1 leads again
    from 10 s on.
    """
    story = Story()
    story.call("create_topic", 0, 0.1)
    story.metadata(0.2, 1, 0, (1, 2, 3))
    story.produce(0.5, 0.6, 0, 0, producer_id=-1, attempts=None)
    story.fault("shutdown", "1", 1, 2)
    story.fault("down", "1", 2, 6)
    story.fault("wipe", "1", 2.1, 6, "replica deleted")
    story.metadata(1.9, 2, 1, (2, 3), node=2)
    story.produce(2.5, 2.6, 1, 1, producer_id=-1, attempts=None)
    story.metadata(5.5, 2, 1, (2, 3), node=2)
    story.metadata(8, 2, 1, (1, 2, 3), node=2)
    story.metadata(8.5, 2, 1, (1, 2, 3), node=1)
    story.metadata(10, 1, 2, (1, 2, 3), node=2)
    story.metadata(10.5, 1, 2, (1, 2, 3), node=1)
    for node in (1, 2, 3):
        story.replica(node, (0, 0), (1, 1))
    return story


def last_replica_lost():
    """Return the story of an unclean election after the last in-sync replica is lost.

    Node 1 becomes the only ISR member. It is shut down at 5 s and at 12 s, and restarts at 9 s and at 17 s. The unclean
    election of node 2 at 14 s is during the second shutdown.
    """
    story = Story()
    story.call("create_topic", 0, 0.1)
    story.metadata(0.2, 1, 0, (1, 2), node=3)
    story.produce(0.5, 0.6, 0, 0)
    story.fault("cut", "2->1", 1, 16, "answers")
    story.metadata(4, 1, 0, (1,), node=3)
    story.produce(4.1, 4.2, 1, 1)
    for begin, end in ((5, 9), (12, 17)):
        story.fault("shutdown", "1", begin, begin + 1)
        story.fault("down", "1", begin + 1, end)
    story.metadata(6.5, None, 1, (1,), node=3)
    story.metadata(9.5, 1, 2, (1,), node=3)
    story.produce(10, 10.1, 2, 2)
    story.metadata(11, 1, 2, (1,), node=3)
    story.metadata(13.5, None, 3, (1,), node=3)
    story.fault("election", TOPIC, 14, 14.1, "unclean")
    story.call("elect_unclean_leader", 14, 14.1)
    story.metadata(14.5, 2, 4, (2,), node=3)
    story.produce(15, 15.1, 3, 1)
    story.metadata(20, 2, 4, (2, 1), node=3)
    for node in (1, 2):
        story.replica(node, (0, 0), (3, 4))
    return story


def unclean_enabled():
    """Return the story of an unclean election that `unclean.leader.election.enable` permits.

    Node 1 becomes the only ISR member, and is down from 5 to 9 s; node 2 leads from 6 s on.
    """
    story = Story()
    story.call("create_topic", 0, 0.1)
    story.metadata(0.2, 1, 0, (1, 2), node=3)
    story.produce(0.5, 0.6, 0, 0)
    story.fault("cut", "2->1", 1, 8, "answers")
    story.metadata(4, 1, 0, (1,), node=3)
    story.produce(4.1, 4.2, 1, 1)
    story.fault("shutdown", "1", 5, 5.5)
    story.fault("down", "1", 5.5, 9)
    story.metadata(6, 2, 1, (2,), node=3)
    story.produce(7, 7.1, 2, 1)
    story.metadata(12, 2, 1, (2, 1), node=3)
    for node in (1, 2):
        story.replica(node, (0, 0), (2, 1))
    return story


def leader_paused():
    """Return the story of a leader that is paused and replaced.

    Node 1 leads and is paused from 1 to 9 s; node 2 leads from 7 s on.
    """
    story = Story()
    story.call("create_topic", 0, 0.1)
    story.metadata(0.2, 1, 0, (1, 2, 3), node=3)
    story.produce(0.5, 0.6, 0, 0)
    story.fault("pause", "1", 1, 9)
    story.produce(2, 10, 1, None, "NOT_LEADER_OR_FOLLOWER")
    story.metadata(7.1, 2, 1, (2, 3), node=3)
    story.produce(7.5, 7.6, 2, 1, node=2)
    for f in ("fetch", "list_offsets", "offset_for_leader_epoch"):
        story.call(f"{f}_in_old_epoch", 8, 8.1, "FENCED_LEADER_EPOCH", node=2)
        story.call(f"{f}_in_epoch_to_come", 8.2, 8.3, "UNKNOWN_LEADER_EPOCH", node=2)
    story.metadata(11, 2, 1, (1, 2, 3), node=3)
    return story


def reassigned():
    """Return the story of a reassignment to a new node and back.

    Node 4 joins; the replicas move from nodes 1 and 2 to nodes 2 and 4, and back; then node 4 leaves.
    """
    story = Story()
    story.call("create_topic", 0, 0.1)
    story.metadata(0.2, 1, 0, (1, 2), node=3)
    story.brokers(0.3, 1, 2, 3)
    story.produce(0.5, 0.6, 0, 0)
    story.brokers(0.9, 1, 2, 3, 4)
    story.call("reassign", 1, 1.1)
    story.metadata(2, 2, 1, (2, 4), node=3)
    story.produce(2.5, 2.6, 1, 1)
    story.call("reassign", 3, 3.1)
    story.metadata(4, 1, 2, (1, 2), node=3)
    story.brokers(5, 1, 2, 3)
    story.call("unregister_broker", 6, 6.1, topic=None)
    story.call("unregister_broker", 6.2, 6.3, "BROKER_ID_NOT_REGISTERED", topic=None)
    story.call("list_offsets", 7, 7.1)
    return story
