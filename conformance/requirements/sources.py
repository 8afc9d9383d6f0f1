"""Sources of Kafka's promises, which requirements cite."""

from typing import Final

from conformance.requirements.requirement import Source

_KIPS: Final = "https://cwiki.apache.org/confluence/display/KAFKA/"
_DOCUMENTATION: Final = "https://kafka.apache.org/documentation/#"
_PROTOCOL: Final = "https://kafka.apache.org/protocol"


def _kip(number: int, title: str, page: str) -> Source:
    """Return a Kafka improvement proposal as a source. `page` is the last part of its address."""
    return Source(f"KIP-{number}: {title}", _KIPS + page)


def _documentation(title: str, fragment: str) -> Source:
    """Return a section of Kafka's documentation as a source."""
    return Source(f"Kafka documentation, {title}", _DOCUMENTATION + fragment)


def _producer_config(name: str) -> Source:
    return _documentation(f"Producer Configs, {name}", f"producerconfigs_{name}")


def _broker_config(name: str) -> Source:
    return _documentation(f"Broker Configs, {name}", f"brokerconfigs_{name}")


def _topic_config(name: str) -> Source:
    return _documentation(f"Topic Configs, {name}", f"topicconfigs_{name}")


PROTOCOL: Final = Source("Kafka protocol guide", _PROTOCOL)
PROTOCOL_ERRORS: Final = Source("Kafka protocol guide, Error Codes", f"{_PROTOCOL}#protocol_error_codes")
PROTOCOL_FETCH: Final = Source("Kafka protocol guide: Fetch", f"{_PROTOCOL}#The_Messages_Fetch")
PROTOCOL_PRODUCE: Final = Source("Kafka protocol guide: Produce", f"{_PROTOCOL}#The_Messages_Produce")
PROTOCOL_NETWORK: Final = Source("Kafka protocol guide, Network", f"{_PROTOCOL}#protocol_network")

CONCEPTS: Final = _documentation("Main Concepts and Terminology", "intro_concepts_and_terms")
GUARANTEES: Final = _documentation("Guarantees", "intro_guarantees")
CONSUMER_POSITION: Final = _documentation("Consumer Position", "design_consumerposition")
SEMANTICS: Final = _documentation("Message Delivery Semantics", "semantics")
REPLICATION: Final = _documentation("Replication", "replication")
COMPACTION: Final = _documentation("Log Compaction", "compaction")
RECORD_BATCH: Final = _documentation("Record Batch", "recordbatch")
GRACEFUL_SHUTDOWN: Final = _documentation("Graceful shutdown", "basic_ops_restarting")

PRODUCER_ACKS: Final = _producer_config("acks")
MAX_IN_FLIGHT: Final = _producer_config("max.in.flight.requests.per.connection")
TOPIC_CONFIGS: Final = _documentation("Topic Configs", "topicconfigs")
TOPIC_MAX_MESSAGE_BYTES: Final = _topic_config("max.message.bytes")
TOPIC_TIMESTAMP_TYPE: Final = _topic_config("message.timestamp.type")
TOPIC_COMPRESSION_TYPE: Final = _topic_config("compression.type")
RETENTION_BYTES: Final = _topic_config("retention.bytes")
RETENTION_MS: Final = _topic_config("retention.ms")
MIN_INSYNC_REPLICAS: Final = _topic_config("min.insync.replicas")
UNCLEAN_LEADER_ELECTION: Final = _topic_config("unclean.leader.election.enable")
REPLICA_LAG_TIME_MAX: Final = _broker_config("replica.lag.time.max.ms")
BROKER_SESSION_TIMEOUT: Final = _broker_config("broker.session.timeout.ms")
OFFSET_METADATA_MAX: Final = _broker_config("offset.metadata.max.bytes")
SESSION_TIMEOUT_MIN: Final = _broker_config("group.min.session.timeout.ms")
SESSION_TIMEOUT_MAX: Final = _broker_config("group.max.session.timeout.ms")
TRANSACTION_TIMEOUT_MAX: Final = _broker_config("transaction.max.timeout.ms")
REQUEST_MAX: Final = _broker_config("socket.request.max.bytes")

KAFKA_2337: Final = Source(
    "KAFKA-2337: Verify that metric names will not collide when creating new topics",
    "https://issues.apache.org/jira/browse/KAFKA-2337",
)
KIP_32: Final = _kip(32, "Add timestamps to Kafka message", "KIP-32+-+Add+timestamps+to+Kafka+message")
KIP_35: Final = _kip(35, "Retrieving protocol version", "KIP-35+-+Retrieving+protocol+version")
KIP_62: Final = _kip(
    62,
    "Allow consumer to send heartbeats from a background thread",
    "KIP-62%3A+Allow+consumer+to+send+heartbeats+from+a+background+thread",
)
KIP_74: Final = _kip(74, "Add Fetch Response Size Limit in Bytes", "KIP-74%3A+Add+Fetch+Response+Size+Limit+in+Bytes")
KIP_79: Final = _kip(
    79,
    "ListOffsetRequest v1 and add timestamp search methods to new consumer",
    "KIP-79+-+ListOffsetRequest+v1+and+add+timestamp+search+methods+to+new+consumer",
)
KIP_82: Final = _kip(82, "Add Record Headers", "KIP-82+-+Add+Record+Headers")
KIP_98: Final = _kip(
    98,
    "Exactly Once Delivery and Transactional Messaging",
    "KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging",
)
KIP_101: Final = _kip(
    101,
    "Alter Replication Protocol to use Leader Epoch rather than High Watermark for Truncation",
    "KIP-101+-+Alter+Replication+Protocol+to+use+Leader+Epoch+rather+than+High+Watermark+for+Truncation",
)
KIP_107: Final = _kip(
    107,
    "Add deleteRecordsBefore() API in AdminClient",
    "KIP-107%3A+Add+deleteRecordsBefore%28%29+API+in+AdminClient",
)
KIP_110: Final = _kip(110, "Add Codec for ZStandard Compression", "KIP-110%3A+Add+Codec+for+ZStandard+Compression")
KIP_135: Final = _kip(
    135,
    "Send of null key to a compacted topic should throw non-retriable error back to user",
    "KIP-135+%3A+Send+of+null+key+to+a+compacted+topic+should+throw+non-retriable+error+back+to+user",
)
KIP_211: Final = _kip(
    211,
    "Revise Expiration Semantics of Consumer Group Offsets",
    "KIP-211%3A+Revise+Expiration+Semantics+of+Consumer+Group+Offsets",
)
KIP_320: Final = _kip(
    320,
    "Allow fetchers to detect and handle log truncation",
    "KIP-320%3A+Allow+fetchers+to+detect+and+handle+log+truncation",
)
KIP_360: Final = _kip(
    360,
    "Improve reliability of idempotent/transactional producer",
    "KIP-360%3A+Improve+reliability+of+idempotent%2Ftransactional+producer",
)
KIP_588: Final = _kip(
    588,
    "Allow producers to recover gracefully from transaction timeouts",
    "KIP-588%3A+Allow+producers+to+recover+gracefully+from+transaction+timeouts",
)
KIP_467: Final = _kip(
    467,
    "Augment ProduceResponse error messaging for specific culprit records",
    "KIP-467%3A+Augment+ProduceResponse+error+messaging+for+specific+culprit+records",
)
KIP_497: Final = _kip(497, "Add inter-broker API to alter ISR", "KIP-497%3A+Add+inter-broker+API+to+alter+ISR")
KIP_511: Final = _kip(
    511,
    "Collect and Expose Client's Name and Version in the Brokers",
    "KIP-511%3A+Collect+and+Expose+Client%27s+Name+and+Version+in+the+Brokers",
)
KIP_464: Final = _kip(
    464,
    "Defaults for AdminClient#createTopic",
    "KIP-464%3A+Defaults+for+AdminClient%23createTopic",
)
KIP_516: Final = _kip(516, "Topic Identifiers", "KIP-516%3A+Topic+Identifiers")
KIP_525: Final = _kip(
    525,
    "Return topic metadata and configs in CreateTopics response",
    "KIP-525+-+Return+topic+metadata+and+configs+in+CreateTopics+response",
)
KIP_730: Final = _kip(730, "Producer ID generation in KRaft mode", "KIP-730%3A+Producer+ID+generation+in+KRaft+mode")
KIP_734: Final = _kip(
    734,
    "Improve AdminClient.listOffsets to return timestamp and offset for the record with the largest timestamp",
    "KIP-734%3A+Improve+AdminClient.listOffsets+to+return+timestamp+and+offset+for+the+record+with+the+largest+timestamp",
)
KIP_937: Final = _kip(937, "Improve Message Timestamp Validation", "KIP-937%3A+Improve+Message+Timestamp+Validation")
KIP_4_METADATA: Final = _kip(
    4,
    "Command line and centralized administrative operations, metadata",
    "KIP-4+-+Command+line+and+centralized+administrative+operations",
)
KIP_405: Final = _kip(405, "Kafka Tiered Storage", "KIP-405%3A+Kafka+Tiered+Storage")
KIP_1005: Final = _kip(
    1005, "Expose EarliestLocalOffset and TieredOffset", "KIP-1005%3A+Expose+EarliestLocalOffset+and+TieredOffset"
)
KIP_133: Final = _kip(133, "Describe and Alter Configs Admin APIs", "KIP-133%3A+Describe+and+Alter+Configs+Admin+APIs")
KIP_183: Final = _kip(
    183,
    "Change PreferredReplicaLeaderElectionCommand to use AdminClient",
    "KIP-183+-+Change+PreferredReplicaLeaderElectionCommand+to+use+AdminClient",
)
KIP_195: Final = _kip(195, "AdminClient.createPartitions", "KIP-195%3A+AdminClient.createPartitions")
KIP_113: Final = _kip(
    113,
    "Support replicas movement between log directories",
    "KIP-113%3A+Support+replicas+movement+between+log+directories",
)
KIP_219: Final = _kip(219, "Improve quota communication", "KIP-219+-+Improve+quota+communication")
KIP_226: Final = _kip(226, "Dynamic Broker Configuration", "KIP-226+-+Dynamic+Broker+Configuration")
KIP_227: Final = _kip(
    227,
    "Introduce Incremental FetchRequests to Increase Partition Scalability",
    "KIP-227%3A+Introduce+Incremental+FetchRequests+to+Increase+Partition+Scalability",
)
KIP_279: Final = _kip(
    279,
    "Fix log divergence between leader and follower after fast leader fail over",
    "KIP-279%3A+Fix+log+divergence+between+leader+and+follower+after+fast+leader+fail+over",
)
KIP_1000: Final = _kip(
    1000, "List Client Metrics Configuration Resources", "KIP-1000%3A+List+Client+Metrics+Configuration+Resources"
)
KIP_1142: Final = _kip(
    1142,
    "Allow to list non-existent group which has dynamic config",
    "KIP-1142%3A+Allow+to+list+non-existent+group+which+has+dynamic+config",
)
KIP_322: Final = _kip(
    322,
    "Return new error code for DeleteTopics API when topic deletion disabled",
    "KIP-322%3A+Return+new+error+code+for+DeleteTopics+API+when+topic+deletion+disabled",
)
KIP_229: Final = _kip(229, "DeleteGroups API", "KIP-229%3A+DeleteGroups+API")
KIP_339: Final = _kip(
    339, "Create a new IncrementalAlterConfigs API", "KIP-339%3A+Create+a+new+IncrementalAlterConfigs+API"
)
KIP_345: Final = _kip(
    345,
    "Introduce static membership protocol to reduce consumer rebalances",
    "KIP-345%3A+Introduce+static+membership+protocol+to+reduce+consumer+rebalances",
)
KIP_394: Final = _kip(
    394,
    "Require member.id for initial join group request",
    "KIP-394%3A+Require+member.id+for+initial+join+group+request",
)
KIP_392: Final = _kip(
    392, "Allow consumers to fetch from closest replica", "KIP-392%3A+Allow+consumers+to+fetch+from+closest+replica"
)
KIP_430: Final = _kip(
    430,
    "Return Authorized Operations in Describe Responses",
    "KIP-430+-+Return+Authorized+Operations+in+Describe+Responses",
)
KIP_455: Final = _kip(
    455,
    "Create an Administrative API for Replica Reassignment",
    "KIP-455%3A+Create+an+Administrative+API+for+Replica+Reassignment",
)
KIP_460: Final = _kip(460, "Admin Leader Election RPC", "KIP-460%3A+Admin+Leader+Election+RPC")
KIP_482: Final = _kip(
    482,
    "The Kafka Protocol should Support Optional Tagged Fields",
    "KIP-482%3A+The+Kafka+Protocol+should+Support+Optional+Tagged+Fields",
)
KIP_496: Final = _kip(
    496, "Administrative API to delete consumer offsets", "KIP-496%3A+Administrative+API+to+delete+consumer+offsets"
)
KIP_518: Final = _kip(
    518, "Allow listing consumer groups per state", "KIP-518%3A+Allow+listing+consumer+groups+per+state"
)
KIP_534: Final = _kip(
    534,
    "Retain tombstones and transaction markers for approximately delete.retention.ms milliseconds",
    "KIP-534%3A+Retain+tombstones+and+transaction+markers+for+approximately+delete.retention.ms+milliseconds",
)
KIP_546: Final = _kip(
    546,
    "Add Client Quota APIs to the Admin Client",
    "KIP-546%3A+Add+Client+Quota+APIs+to+the+Admin+Client",
)
KIP_554: Final = _kip(
    554,
    "Add Broker-side SCRAM Config API",
    "KIP-554%3A+Add+Broker-side+SCRAM+Config+API",
)
KIP_569: Final = _kip(
    569,
    "DescribeConfigsResponse - Update the schema to include additional metadata information of the field",
    "KIP-569%3A+DescribeConfigsResponse+-+Update+the+schema+to+include+additional+metadata+information+of+the+field",
)
KIP_590: Final = _kip(
    590,
    "Redirect Zookeeper Mutation Protocols to The Controller",
    "KIP-590%3A+Redirect+Zookeeper+Mutation+Protocols+to+The+Controller",
)
KIP_595: Final = _kip(
    595, "A Raft Protocol for the Metadata Quorum", "KIP-595%3A+A+Raft+Protocol+for+the+Metadata+Quorum"
)
KIP_631: Final = _kip(631, "The Quorum-based Kafka Controller", "KIP-631%3A+The+Quorum-based+Kafka+Controller")
KIP_664: Final = _kip(
    664,
    "Provide tooling to detect and abort hanging transactions",
    "KIP-664%3A+Provide+tooling+to+detect+and+abort+hanging+transactions",
)
KIP_699: Final = _kip(
    699,
    "Update FindCoordinator to resolve multiple Coordinators at a time",
    "KIP-699%3A+Update+FindCoordinator+to+resolve+multiple+Coordinators+at+a+time",
)
KIP_700: Final = _kip(700, "Add Describe Cluster API", "KIP-700%3A+Add+Describe+Cluster+API")
KIP_709: Final = _kip(
    709,
    "Extend OffsetFetch requests to accept multiple group ids",
    "KIP-709%3A+Extend+OffsetFetch+requests+to+accept+multiple+group+ids",
)
KIP_848: Final = _kip(
    848,
    "The Next Generation of the Consumer Rebalance Protocol",
    "KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol",
)
KIP_853: Final = _kip(853, "KRaft Controller Membership Changes", "KIP-853%3A+KRaft+Controller+Membership+Changes")
KIP_860: Final = _kip(
    860,
    "Add client-provided option to guard against replication factor change during partition reassignments",
    "KIP-860%3A+Add+client-provided+option+to+guard+against+replication+factor+change+during+partition+reassignments",
)
KIP_919: Final = _kip(
    919,
    "Allow AdminClient to Talk Directly with the KRaft Controller Quorum",
    "KIP-919%3A+Allow+AdminClient+to+Talk+Directly+with+the+KRaft+Controller+Quorum+and+add+Controller+Registration",
)
KIP_951: Final = _kip(
    951, "Leader discovery optimisations for the client", "KIP-951%3A+Leader+discovery+optimisations+for+the+client"
)
KIP_966: Final = _kip(966, "Eligible Leader Replicas", "KIP-966%3A+Eligible+Leader+Replicas")
