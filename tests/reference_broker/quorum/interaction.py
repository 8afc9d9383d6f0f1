"""Interpreter of quorum scripts, which are like etcd's interaction tests.

A script is a text file with comments and commands; each command is followed by `----` and its output. A command is a
verb with arguments; each verb is a function here. Messages wait in the network until a command delivers them, so a
script determines every order and every loss. Time advances only by `sleep` and `run`; `jitter` sets the random part of
the election timeouts.
"""

from collections.abc import Callable
from random import Random
from uuid import UUID

from reference_broker.core.clock import Now
from reference_broker.core.quorum.configuration import QuorumConfig
from reference_broker.core.quorum.effects import (
    HighWatermarkAdvanced,
    LeaderChanged,
    ResponseRejected,
    SendRequest,
    SendResponse,
    SnapshotInstalled,
)
from reference_broker.core.quorum.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    Response,
    VoteRequest,
    VoteResponse,
)
from reference_broker.core.quorum.quorum_state import Follower
from reference_broker.core.quorum.raft_client import KafkaRaftClient, NotLeaderError
from reference_broker.core.quorum.snapshots import encode_snapshot
from reference_broker.core.quorum.voters import ReplicaKey, Voter, VoterSet
from reference_broker.protocol.errors import ErrorCode
from reference_broker.protocol.record_batch import BatchHeader
from reference_broker.protocol.records import KeyValue, encode_batch
from reference_broker.simulation.disk import SimulatedDisk

WALL_START_MS = 1_700_000_000_000
WHOLE_BYTES = 1 << 20


class Interaction:
    """The quorum of one script."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.nodes: dict[int, KafkaRaftClient] = {}
        self.disks: dict[int, SimulatedDisk] = {}
        self.voters = VoterSet(())
        self.jitter_ms: dict[int, int] = {}
        self.network: list[tuple[int, int, SendRequest | SendResponse]] = []
        self.printed: list[str] = []

    def run(self, line: str) -> str:
        """Run a command and return its output."""
        self.printed = []
        verb, *arguments = line.split()
        VERBS[verb](self, *arguments)
        return "\n".join(self.printed) or "ok"

    def print(self, text: str) -> None:
        self.printed.append(text)

    def now(self) -> Now:
        return Now(WALL_START_MS + self.now_ms, self.now_ms)

    def start(self, node_id: int) -> None:
        self.nodes[node_id] = KafkaRaftClient(
            local=key(node_id),
            voters=self.voters,
            cluster_id="script",
            config=QuorumConfig(),
            disk=self.disks.setdefault(node_id, SimulatedDisk()),
            random_below=lambda bound: min(self.jitter_ms.get(node_id, 0), bound - 1),
            now=self.now(),
        )
        self.take(node_id)

    def take(self, node_id: int) -> None:
        """Add a node's messages to the network, and print its other effects."""
        for effect in self.nodes[node_id].take_effects():
            match effect:
                case SendRequest():
                    self.network.append((node_id, effect.voter_id, effect))
                case SendResponse():
                    self.network.append((node_id, effect.caller[0], effect))
                case LeaderChanged(-1, epoch):
                    self.print(f"{node_id}: epoch {epoch}, no leader")
                case LeaderChanged(leader_id, epoch, None):
                    self.print(f"{node_id}: epoch {epoch}, leader {leader_id}")
                case LeaderChanged(_, epoch, start):
                    self.print(f"{node_id}: leads epoch {epoch} from offset {start}")
                case HighWatermarkAdvanced():
                    self.print(f"{node_id}: high watermark {effect.offset}")
                case SnapshotInstalled():
                    self.print(f"{node_id}: installed snapshot {show(effect.snapshot_id)}")
                case ResponseRejected():
                    self.print(f"{node_id}: rejected a response of {effect.voter_id}: {effect.reason}")

    def deliver(self, source: int, destination: int, effect: SendRequest | SendResponse) -> None:
        self.print(f"{source}->{destination} {describe(effect)}")
        node = self.nodes.get(destination)
        if node is None:
            return
        if isinstance(effect, SendRequest):
            node.handle_request((source, effect.request_id), effect.request, self.now())
        else:
            node.handle_response(effect.caller[1], effect.response, self.now())
        self.take(destination)


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, UUID(int=node_id))


def show(end: OffsetAndEpoch) -> str:
    """Format a log end: `3@2` is end offset 3 after a record of epoch 2."""
    return f"{end.offset}@{end.epoch}"


def describe(effect: SendRequest | SendResponse) -> str:
    message = effect.request if isinstance(effect, SendRequest) else effect.response
    match message:
        case VoteRequest():
            kind = "pre-vote" if message.pre_vote else "vote"
            return f"{kind} in epoch {message.replica_epoch}, log {show(message.last)}?"
        case BeginQuorumEpochRequest():
            return f"{message.leader_id} leads epoch {message.leader_epoch}"
        case EndQuorumEpochRequest():
            successors = " ".join(str(candidate.id) for candidate in message.preferred_candidates)
            return f"{message.leader_id} resigns epoch {message.leader_epoch}, successors {successors or 'none'}"
        case FetchRequest():
            end = OffsetAndEpoch(message.fetch_offset, message.last_fetched_epoch)
            return f"fetch in epoch {message.current_leader_epoch} from {show(end)}"
        case FetchSnapshotRequest():
            return f"fetch snapshot {show(message.snapshot_id)} from byte {message.position}"
    return describe_response(message)


def describe_response(message: Response) -> str:
    known = f"epoch {message.leader_epoch}, leader {message.leader_id if message.leader_id >= 0 else 'unknown'}"
    if message.error is not ErrorCode.none:
        return f"{message.error.name.upper()}; {known}"
    match message:
        case VoteResponse():
            return f"{'granted' if message.vote_granted else 'rejected'}; {known}"
        case FetchResponse(diverging=OffsetAndEpoch()):
            return f"logs diverge at {show(message.diverging)}"
        case FetchResponse(snapshot_id=OffsetAndEpoch()):
            return f"snapshot {show(message.snapshot_id)} required"
        case FetchResponse():
            return f"{show_batches(message.records) or 'no records'}; high watermark {message.high_watermark}"
        case FetchSnapshotResponse():
            whole = "the rest" if message.position + len(message.data) == message.size else "a part"
            return f"{whole} of snapshot {show(message.snapshot_id)}"
    return f"ok; {known}"


def show_batches(records: bytes) -> str:
    """Format batches: `3@2` has offset 3 and epoch 2, `3-4@2` has two records, `L3@2` is a LeaderChange."""
    shown, position = [], 0
    while position < len(records):
        header = BatchHeader.parse(records, position)
        position += header.size_bytes
        offsets = f"{header.base_offset}" + (f"-{header.last_offset}" if header.last_offset_delta else "")
        shown.append(f"{'L' if header.is_control else ''}{offsets}@{header.leader_epoch}")
    return " ".join(shown)


# Verbs


def voters(quorum: Interaction, *ids: str) -> None:
    """Set the voters, before nodes are started."""
    quorum.voters = VoterSet(Voter(key(int(node_id))) for node_id in ids)


def jitter(quorum: Interaction, *jitters_ms: str) -> None:
    """Set the time that is added to the election timeout of nodes 1, 2, …."""
    quorum.jitter_ms = {node_id: int(jitter_ms) for node_id, jitter_ms in enumerate(jitters_ms, 1)}


def start(quorum: Interaction, *ids: str) -> None:
    """Start nodes on their disks. Nodes that are not voters are observers."""
    for node_id in ids:
        quorum.start(int(node_id))


def crash(quorum: Interaction, node_id: str) -> None:
    """Crash a node. Its unflushed data, its messages and the responses to it are lost; requests to it are kept."""
    number = int(node_id)
    del quorum.nodes[number]
    quorum.disks[number].cut_power(Random(0))
    quorum.network = [
        (source, destination, effect)
        for source, destination, effect in quorum.network
        if source != number and (destination != number or isinstance(effect, SendRequest))
    ]


def sleep(quorum: Interaction, for_ms: str) -> None:
    """Advance the time; every node acts at its deadlines."""
    end_ms = quorum.now_ms + int(for_ms)
    while True:
        due = [(node.deadline_ms, node_id) for node_id, node in quorum.nodes.items() if node.deadline_ms is not None]
        if not due or min(due)[0] > end_ms:
            break
        quorum.now_ms, node_id = min(due)
        quorum.nodes[node_id].poll(quorum.now())
        quorum.take(node_id)
    quorum.now_ms = end_ms


def deliver(quorum: Interaction, *links: str) -> None:
    """Deliver the waiting messages: all, or those on some links (`1->2`)."""
    waiting, quorum.network = quorum.network, []
    for source, destination, effect in waiting:
        if not links or f"{source}->{destination}" in links:
            quorum.deliver(source, destination, effect)
        else:
            quorum.network.append((source, destination, effect))


def run(quorum: Interaction, for_ms: str, *without: str) -> None:
    """Advance the time, deliver messages at once, and print the effects.

    `run 500 without 1 2` drops the messages from and to nodes 1 and 2.
    """
    end_ms = quorum.now_ms + int(for_ms)
    cut_off = {int(node_id) for node_id in without[1:]}
    effects: list[str] = []
    while True:
        waiting, quorum.network = quorum.network, []
        for source, destination, effect in waiting:
            if not cut_off & {source, destination}:
                quorum.printed = []
                quorum.deliver(source, destination, effect)
                effects += quorum.printed[1:]
        if waiting:
            continue
        due = [(node.deadline_ms, node_id) for node_id, node in quorum.nodes.items() if node.deadline_ms is not None]
        if not due or min(due)[0] > end_ms:
            break
        quorum.now_ms, node_id = min(due)
        quorum.printed = []
        quorum.nodes[node_id].poll(quorum.now())
        quorum.take(node_id)
        effects += quorum.printed
    quorum.now_ms = end_ms
    quorum.printed = [line for line in effects if not _is_superseded(line, effects)]


def _is_superseded(line: str, effects: list[str]) -> bool:
    """Whether the line reports a high watermark, and a later line reports another one of the same node."""
    subject, found, _ = line.partition(" high watermark ")
    return bool(found) and line != [other for other in effects if other.startswith(f"{subject}{found}")][-1]


def lose(quorum: Interaction, *links: str) -> None:
    """Drop the waiting messages: all, or those on some links."""
    kept = []
    for source, destination, effect in quorum.network:
        if not links or f"{source}->{destination}" in links:
            quorum.print(f"lost {source}->{destination} {describe(effect)}")
        else:
            kept.append((source, destination, effect))
    quorum.network = kept


def append(quorum: Interaction, node_id: str, count: str = "1") -> None:
    """Append a batch to the log of a leader."""
    node = quorum.nodes[int(node_id)]
    batch = encode_batch([KeyValue(None, b"record")] * int(count), quorum.now().wall_ms)
    try:
        quorum.print(f"log ends at {node.append([batch], node.state.epoch, quorum.now())}")
    except NotLeaderError as error:
        quorum.print(str(error))
    quorum.take(int(node_id))


def resign(quorum: Interaction, node_id: str) -> None:
    """Let a leader resign."""
    quorum.nodes[int(node_id)].resign(quorum.now())
    quorum.take(int(node_id))


def snapshot(quorum: Interaction, node_id: str, end_offset: str) -> None:
    """Take a snapshot, and delete the log before it."""
    node = quorum.nodes[int(node_id)]
    data = encode_snapshot(0, [[KeyValue(None, b"state")]], last_contained_log_timestamp_ms=0, now_ms=WALL_START_MS)
    snapshot_id = node.create_snapshot(int(end_offset), data)
    node.log.delete_before_snapshot(snapshot_id, quorum.now().wall_ms)
    quorum.print(f"snapshot {show(snapshot_id)}, log starts at {node.log.start_offset}")


def state(quorum: Interaction, *ids: str) -> None:
    """Print the states of nodes."""
    for node_id in map(int, ids or quorum.nodes):
        node = quorum.nodes[node_id]
        election = node.election
        leader = f", leader {election.leader_id}" if election.leader_id >= 0 else ""
        voted = f", voted for {election.voted.id}" if election.voted else ""
        fetched = ", has fetched" if isinstance(node.state, Follower) and node.state.has_fetched else ""
        quorum.print(f"{node_id}: {node.state.role.value} in epoch {election.epoch}{leader}{voted}{fetched}")


def log(quorum: Interaction, *ids: str) -> None:
    """Print logs and high watermarks."""
    for node_id in map(int, ids or quorum.nodes):
        node = quorum.nodes[node_id]
        start_offset = node.log.start_offset
        batches = show_batches(node.log.read(start_offset, WHOLE_BYTES)) or "empty"
        snapshot_id = node.log.snapshots.latest
        before = f"snapshot {show(snapshot_id)}; " if snapshot_id else ""
        quorum.print(f"{node_id}: {before}{batches}; high watermark {node.high_watermark}")


def disk(quorum: Interaction, node_id: str) -> None:
    """Print the quorum-state file of a node."""
    path = "__cluster_metadata-0/quorum-state"
    files = quorum.disks[int(node_id)].files
    quorum.print(bytes(files[path]).decode())


def quorum_(quorum: Interaction, node_id: str) -> None:
    """Print the quorum as its leader describes it, with times in milliseconds since the start of the script."""
    description = quorum.nodes[int(node_id)].describe(quorum.now())
    if description is None:
        quorum.print("not the leader")
        return
    leader = f"leader {description.leader_id}, epoch {description.leader_epoch}"
    quorum.print(f"{leader}, high watermark {description.high_watermark}")
    for kind, replicas in (("voter", description.voters), ("observer", description.observers)):
        for replica in replicas:
            fetched, caught_up = (
                time_ms - WALL_START_MS if time_ms >= 0 else "never"
                for time_ms in (replica.last_fetch_timestamp_ms, replica.last_caught_up_timestamp_ms)
            )
            times = f"fetched {fetched}, caught up {caught_up}"
            quorum.print(f"{kind} {replica.key.id}: end {replica.log_end_offset}, {times}")


VERBS: dict[str, Callable[..., None]] = {
    "append": append,
    "crash": crash,
    "deliver": deliver,
    "disk": disk,
    "log": log,
    "lose": lose,
    "jitter": jitter,
    "quorum": quorum_,
    "resign": resign,
    "run": run,
    "sleep": sleep,
    "snapshot": snapshot,
    "start": start,
    "state": state,
    "voters": voters,
}
