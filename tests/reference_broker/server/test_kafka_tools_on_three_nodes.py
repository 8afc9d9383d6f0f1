"""Apache Kafka's command line tools on a cluster of three nodes, with the arguments of Kafka's documentation.

With `--target apache-kafka:4.3.1` the same tests run on Apache Kafka.
"""

import json
import re

import pytest

from fixtures.targets.catalogue import parse_target

pytestmark = [pytest.mark.java, pytest.mark.sampled(3)]

TOOLS = "org.apache.kafka.tools"
NODES = (1, 2, 3)
SESSION = {"broker.session.timeout.ms": "60000"}
"""A killed broker is not fenced during the rest of the tests, so that it can be the target of a reassignment."""


@pytest.fixture(scope="module")
def cluster(pytestconfig, tmp_path_factory):
    target = (pytestconfig.getoption("kafkatrial_target") or ["reference"])[0]
    work_dir = tmp_path_factory.mktemp("tools")
    with parse_target(target, nodes=len(NODES), properties=SESSION, work_dir=work_dir, mesh=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def tool(kafka_tool, cluster):
    """Return a function that runs a tool on the cluster and returns the lines of its output."""

    def run(main_class, *arguments, fails=False):
        bootstrap = ["--bootstrap-server", cluster.bootstrap_servers]
        return kafka_tool(main_class, [*bootstrap, *arguments], fails=fails).splitlines()

    return run


@pytest.fixture(scope="module")
def topics(tool):
    """Return a function that runs kafka-topics with its arguments as one string."""
    return lambda arguments, **expected: tool(f"{TOOLS}.TopicCommand", *arguments.split(), **expected)


@pytest.fixture(scope="module")
def configs(tool):
    """Return a function that runs kafka-configs with its arguments as one string."""
    return lambda arguments, **expected: tool("kafka.admin.ConfigCommand", *arguments.split(), **expected)


def partitions(described):
    """Return `leader replicas ISR` of each partition in the output of kafka-topics, with the ISR sorted."""
    found = re.findall(r"Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S*)", "\n".join(described))
    return [f"{leader} {replicas} {','.join(sorted(isr.split(',')))}" for leader, replicas, isr in found]


def test_topic_is_created_extended_and_deleted(topics):
    assert "Created topic life." in topics("--create --topic life --partitions 4 --replication-factor 3")
    [head, *rest] = topics("--describe --topic life")
    assert re.match(r"Topic: life\s+TopicId: \S+\s+PartitionCount: 4\s+ReplicationFactor: 3\s", head)
    leaders = [partition.split()[0] for partition in partitions(rest)]
    assert len(leaders) == 4
    assert set(leaders) == {"1", "2", "3"}
    assert {"".join(sorted(partition.split()[1])) for partition in partitions(rest)} == {",,123"}
    topics("--alter --topic life --partitions 5")
    assert len(partitions(topics("--describe --topic life"))) == 5
    topics("--delete --topic life")
    assert "life" not in topics("--list")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("--create --topic a/b", "Topic name is invalid: 'a/b' contains one or more characters other than ASCII"),
        ("--create --topic wide --replication-factor 4", "Unable to replicate the partition 4 time(s): The target"),
        ("--create --topic odd --config no.such=1", "Unknown topic config name: no.such"),
        ("--delete --topic nowhere", "Topic 'nowhere' does not exist as expected"),
    ],
)
def test_invalid_arguments_of_kafka_topics_are_rejected(topics, arguments, error):
    assert error in "\n".join(topics(arguments, fails=True))


def test_topic_configs(topics, configs):
    topics("--create --topic set --partitions 1 --replication-factor 3 --config segment.ms=60000")
    entity = "--entity-type topics --entity-name set"
    configs(f"--alter {entity} --add-config retention.ms=1234,cleanup.policy=[compact,delete]")
    assert [line.split(" synonyms")[0].strip() for line in configs(f"--describe {entity}")[1:]] == [
        "cleanup.policy=compact,delete sensitive=false",
        "retention.ms=1234 sensitive=false",
        "segment.ms=60000 sensitive=false",
    ]
    configs(f"--alter {entity} --delete-config retention.ms,cleanup.policy")
    everything = configs(f"--describe {entity} --all")
    shown = {name: rest for name, _, rest in (line.strip().partition("=") for line in everything[1:])}
    assert shown["cleanup.policy"].endswith("synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}")
    assert shown["segment.ms"] == "60000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.ms=60000}"
    assert len(shown) == 33
    error = "InvalidConfigurationException: Invalid value x for configuration retention.ms: Not a number of type"
    assert error in "\n".join(configs(f"--alter {entity} --add-config retention.ms=x", fails=True))


def test_broker_configs(configs):
    default, one = "--entity-type brokers --entity-default", "--entity-type brokers --entity-name 1"
    configs(f"--alter {one} --add-config log.retention.ms=7777")
    configs(f"--alter {default} --add-config message.max.bytes=2000000,log.retention.ms=9999")
    own, cluster_wide = "\n".join(configs("--describe --entity-type brokers")).split("Default configs")
    assert (
        "  log.retention.ms=7777 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=7777, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=9999, DEFAULT_CONFIG:log.retention.hours=168}"
    ) in own
    assert "  log.retention.ms=9999 sensitive=false" in cluster_wide
    assert "  message.max.bytes=2000000 sensitive=false" in cluster_wide
    described = "\n".join(configs(f"--describe {one} --all"))
    assert "  message.max.bytes=2000000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:" in described
    assert "  node.id=1 sensitive=false synonyms={STATIC_BROKER_CONFIG:node.id=1}" in described
    error = "Cannot update these configs dynamically: [node.id]"
    assert error in "\n".join(configs(f"--alter {one} --add-config node.id=7", fails=True))
    configs(f"--alter {one} --delete-config log.retention.ms")
    assert "log.retention.ms" not in "\n".join(configs(f"--describe {one}"))


def test_produced_records_are_counted_and_found_on_disk(topics, tool, kafka_tool, cluster):
    topics("--create --topic full --replica-assignment 1:2:3")
    *_, last = tool(f"{TOOLS}.VerifiableProducer", "--topic", "full", "--max-messages", "20", "--acks", "-1")
    assert {"sent": 20, "acked": 20}.items() <= json.loads(last).items()
    load = ["--topic", "full", "--num-records", "300", "--record-size", "100", "--throughput", "-1"]
    producer = ["--producer-props", f"bootstrap.servers={cluster.bootstrap_servers}", "acks=all"]
    assert "300 records sent" in kafka_tool(f"{TOOLS}.ProducerPerformance", [*load, *producer])
    assert tool(f"{TOOLS}.GetOffsetShell", "--topic", "full") == ["full:0:320"]
    *_, document = tool(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", "full")
    brokers = json.loads(document)["brokers"]
    assert [broker["broker"] for broker in brokers] == [1, 2, 3]
    for broker in brokers:
        [directory] = broker["logDirs"]
        assert [part["partition"] for part in directory["partitions"]] == ["full-0"]
        assert directory["partitions"][0]["size"] > 320 * 100 // 2
        assert directory["error"] is None
    [data] = cluster.log_directories(2)
    log = data / "full-0" / "00000000000000000000.log"
    dumped = kafka_tool(f"{TOOLS}.DumpLogSegments", ["--print-data-log", "--files", str(log)])
    assert dumped.count("| offset: ") == 320


def test_quorum_is_described(tool):
    status = dict(line.split(":", 1) for line in tool(f"{TOOLS}.MetadataQuorumCommand", "describe", "--status"))
    leader = status["LeaderId"].strip()
    assert int(leader) in NODES
    assert [voter["id"] for voter in json.loads(status["CurrentVoters"])] == [1, 2, 3]
    [head, *rows] = tool(f"{TOOLS}.MetadataQuorumCommand", "describe", "--replication")
    assert head.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    assert {row.split()[0]: row.split()[-1] for row in rows} == {
        str(node): "Leader" if str(node) == leader else "Follower" for node in NODES
    }


@pytest.fixture
def reassign(tool, tmp_path):
    """Return a function that runs kafka-reassign-partitions on one topic. `plan` maps its partitions to replicas."""

    def run(action, topic, plan, *options):
        moves = [{"topic": topic, "partition": index, "replicas": replicas} for index, replicas in plan.items()]
        file = tmp_path / "plan.json"
        file.write_text(json.dumps({"version": 1, "partitions": moves}))
        return tool(
            f"{TOOLS}.reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(file), action, *options
        )

    return run


def test_partitions_are_reassigned(topics, tool, reassign, tmp_path):
    topics("--create --topic moved --replica-assignment 1:2,2:3")
    wanted = tmp_path / "topics.json"
    wanted.write_text(json.dumps({"version": 1, "topics": [{"topic": "moved"}]}))
    generate = ["--topics-to-move-json-file", str(wanted), "--broker-list", "1,2,3", "--generate"]
    proposed = tool(f"{TOOLS}.reassign.ReassignPartitionsCommand", *generate)
    current, proposal = (json.loads(line)["partitions"] for line in proposed if line.startswith("{"))
    assert [part["replicas"] for part in current] == [[1, 2], [2, 3]]
    assert {len(part["replicas"]) for part in proposal} == {2}
    plan = {0: [3, 2], 1: [2, 1, 3]}
    assert "Successfully started partition reassignments for moved-0,moved-1" in reassign("--execute", "moved", plan)
    for _ in range(20):
        verified = "\n".join(reassign("--verify", "moved", plan))
        if "still in progress" not in verified:
            break
    assert "Reassignment of partition moved-0 is completed." in verified
    assert "Reassignment of partition moved-1 is completed." in verified
    assert partitions(topics("--describe --topic moved")) in (
        [f"{leader} 3,2 2,3", "2 2,1,3 1,2,3"] for leader in (2, 3)
    )


def test_preferred_leader_election(topics, tool, cluster):
    topics("--create --topic led --replica-assignment 3:1:2")
    cluster.processes.shut_down(3)
    cluster.processes.restart(3)
    election = f"{TOOLS}.LeaderElectionCommand"
    arguments = ["--topic", "led", "--partition", "0", "--election-type"]
    for _ in range(20):
        [partition] = partitions(topics("--describe --topic led"))
        if partition.endswith("1,2,3"):
            break
    assert partition == "1 3,1,2 1,2,3"
    assert "Successfully completed leader election (PREFERRED) for partitions led-0" in tool(
        election, *arguments, "preferred"
    )
    assert partitions(topics("--describe --topic led")) == ["3 3,1,2 1,2,3"]
    for kind in ("preferred", "unclean"):
        assert "Valid replica already elected for partitions led-0" in tool(election, *arguments, kind)
    nowhere = tool(election, "--topic", "nowhere", "--partition", "0", "--election-type", "preferred", fails=True)
    assert "UnknownTopicOrPartitionException: No such topic as nowhere" in "\n".join(nowhere)


def test_reassignment_to_a_killed_broker_is_cancelled(topics, tool, reassign, cluster):
    """This test must be the last in the file, because it kills a broker."""
    topics("--create --topic stuck --replica-assignment 1:2")
    cluster.processes.kill(3)
    assert "Successfully started partition reassignment for stuck-0" in reassign("--execute", "stuck", {0: [1, 3]})
    listed = "\n".join(tool(f"{TOOLS}.reassign.ReassignPartitionsCommand", "--list"))
    assert "stuck-0: replicas: 1,3,2. adding: 3. removing: 2." in listed
    # Without `--preserve-throttles`, the tool would try to remove the throttle of the killed broker, and fail.
    cancelled = reassign("--cancel", "stuck", {0: [1, 3]}, "--preserve-throttles")
    assert "Successfully cancelled partition reassignment for: stuck-0" in cancelled
    assert partitions(topics("--describe --topic stuck")) == ["1 1,2 1,2"]
