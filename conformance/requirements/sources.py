"""Sources of Kafka's promises, which requirements cite."""

from typing import Final

from conformance.requirements.requirement import Source

_KIPS: Final = "https://cwiki.apache.org/confluence/display/KAFKA/"


def kip(number: int, title: str, page: str) -> Source:
    """Return a Kafka improvement proposal as a source. `page` is the last part of its address."""
    return Source(f"KIP-{number}: {title}", _KIPS + page)


PROTOCOL: Final = Source("Kafka protocol guide", "https://kafka.apache.org/protocol")
PROTOCOL_ERRORS: Final = Source(
    "Kafka protocol guide, Error Codes", "https://kafka.apache.org/protocol#protocol_error_codes"
)
PROTOCOL_FETCH: Final = Source("Kafka protocol guide: Fetch", "https://kafka.apache.org/protocol#The_Messages_Fetch")
PROTOCOL_NETWORK: Final = Source("Kafka protocol guide, Network", "https://kafka.apache.org/protocol#protocol_network")
RECORD_BATCH: Final = Source("Kafka documentation, Record Batch", "https://kafka.apache.org/documentation/#recordbatch")
PRODUCER_ACKS: Final = Source(
    "Kafka documentation, Producer Configs, acks", "https://kafka.apache.org/documentation/#producerconfigs_acks"
)
TOPIC_CONFIGS: Final = Source(
    "Kafka documentation, Topic Configs", "https://kafka.apache.org/documentation/#topicconfigs"
)
TOPIC_MAX_MESSAGE_BYTES: Final = Source(
    "Kafka documentation, Topic Configs, max.message.bytes",
    "https://kafka.apache.org/documentation/#topicconfigs_max.message.bytes",
)
TOPIC_TIMESTAMP_TYPE: Final = Source(
    "Kafka documentation, Topic Configs, message.timestamp.type",
    "https://kafka.apache.org/documentation/#topicconfigs_message.timestamp.type",
)
TOPIC_COMPRESSION_TYPE: Final = Source(
    "Kafka documentation, Topic Configs, compression.type",
    "https://kafka.apache.org/documentation/#topicconfigs_compression.type",
)
RETENTION_BYTES: Final = Source(
    "Kafka documentation, Topic Configs, retention.bytes",
    "https://kafka.apache.org/documentation/#topicconfigs_retention.bytes",
)
RETENTION_MS: Final = Source(
    "Kafka documentation, Topic Configs, retention.ms",
    "https://kafka.apache.org/documentation/#topicconfigs_retention.ms",
)
COMPACTION: Final = Source("Kafka documentation, Log Compaction", "https://kafka.apache.org/documentation/#compaction")
REPLICATION: Final = Source("Kafka documentation, Replication", "https://kafka.apache.org/documentation/#replication")
GUARANTEES: Final = Source(
    "Kafka documentation, Guarantees", "https://kafka.apache.org/documentation/#intro_guarantees"
)
CONSUMER_POSITION: Final = Source(
    "Kafka documentation, Consumer Position", "https://kafka.apache.org/documentation/#design_consumerposition"
)
OFFSET_METADATA_MAX: Final = Source(
    "Kafka documentation, Broker Configs, offset.metadata.max.bytes",
    "https://kafka.apache.org/documentation/#brokerconfigs_offset.metadata.max.bytes",
)
REQUEST_MAX: Final = Source(
    "Kafka documentation, Broker Configs, socket.request.max.bytes",
    "https://kafka.apache.org/documentation/#brokerconfigs_socket.request.max.bytes",
)

KIP_32: Final = kip(32, "Add timestamps to Kafka message", "KIP-32+-+Add+timestamps+to+Kafka+message")
KIP_35: Final = kip(35, "Retrieving protocol version", "KIP-35+-+Retrieving+protocol+version")
KIP_74: Final = kip(74, "Add Fetch Response Size Limit in Bytes", "KIP-74%3A+Add+Fetch+Response+Size+Limit+in+Bytes")
KIP_79: Final = kip(
    79,
    "ListOffsetRequest v1 and add timestamp search methods to new consumer",
    "KIP-79+-+ListOffsetRequest+v1+and+add+timestamp+search+methods+to+new+consumer",
)
KIP_82: Final = kip(82, "Add Record Headers", "KIP-82+-+Add+Record+Headers")
KIP_98: Final = kip(
    98,
    "Exactly Once Delivery and Transactional Messaging",
    "KIP-98+-+Exactly+Once+Delivery+and+Transactional+Messaging",
)
KIP_101: Final = kip(
    101,
    "Alter Replication Protocol to use Leader Epoch rather than High Watermark for Truncation",
    "KIP-101+-+Alter+Replication+Protocol+to+use+Leader+Epoch+rather+than+High+Watermark+for+Truncation",
)
KIP_107: Final = kip(
    107,
    "Add deleteRecordsBefore() API in AdminClient",
    "KIP-107%3A+Add+deleteRecordsBefore%28%29+API+in+AdminClient",
)
KIP_110: Final = kip(110, "Add Codec for ZStandard Compression", "KIP-110%3A+Add+Codec+for+ZStandard+Compression")
KIP_135: Final = kip(
    135,
    "Send of null key to a compacted topic should throw non-retriable error back to user",
    "KIP-135+%3A+Send+of+null+key+to+a+compacted+topic+should+throw+non-retriable+error+back+to+user",
)
KIP_211: Final = kip(
    211,
    "Revise Expiration Semantics of Consumer Group Offsets",
    "KIP-211%3A+Revise+Expiration+Semantics+of+Consumer+Group+Offsets",
)
KIP_320: Final = kip(
    320,
    "Allow fetchers to detect and handle log truncation",
    "KIP-320%3A+Allow+fetchers+to+detect+and+handle+log+truncation",
)
KIP_360: Final = kip(
    360,
    "Improve reliability of idempotent/transactional producer",
    "KIP-360%3A+Improve+reliability+of+idempotent%2Ftransactional+producer",
)
KIP_467: Final = kip(
    467,
    "Augment ProduceResponse error messaging for specific culprit records",
    "KIP-467%3A+Augment+ProduceResponse+error+messaging+for+specific+culprit+records",
)
KIP_511: Final = kip(
    511,
    "Collect and Expose Client's Name and Version in the Brokers",
    "KIP-511%3A+Collect+and+Expose+Client%27s+Name+and+Version+in+the+Brokers",
)
KIP_516: Final = kip(516, "Topic Identifiers", "KIP-516%3A+Topic+Identifiers")
KIP_525: Final = kip(
    525,
    "Return topic metadata and configs in CreateTopics response",
    "KIP-525+-+Return+topic+metadata+and+configs+in+CreateTopics+response",
)
KIP_730: Final = kip(730, "Producer ID generation in KRaft mode", "KIP-730%3A+Producer+ID+generation+in+KRaft+mode")
KIP_734: Final = kip(
    734,
    "Improve AdminClient.listOffsets to return timestamp and offset for the record with the largest timestamp",
    "KIP-734%3A+Improve+AdminClient.listOffsets+to+return+timestamp+and+offset+for+the+record+with+the+largest+timestamp",
)
KIP_937: Final = kip(937, "Improve Message Timestamp Validation", "KIP-937%3A+Improve+Message+Timestamp+Validation")
KIP_4_METADATA: Final = kip(
    4,
    "Command line and centralized administrative operations, metadata",
    "KIP-4+-+Command+line+and+centralized+administrative+operations",
)
KIP_405: Final = kip(405, "Kafka Tiered Storage", "KIP-405%3A+Kafka+Tiered+Storage")
KIP_1005: Final = kip(
    1005, "Expose EarliestLocalOffset and TieredOffset", "KIP-1005%3A+Expose+EarliestLocalOffset+and+TieredOffset"
)
KIP_133: Final = kip(133, "Describe and Alter Configs Admin APIs", "KIP-133%3A+Describe+and+Alter+Configs+Admin+APIs")
KIP_183: Final = kip(
    183,
    "Change PreferredReplicaLeaderElectionCommand to use AdminClient",
    "KIP-183+-+Change+PreferredReplicaLeaderElectionCommand+to+use+AdminClient",
)
KIP_195: Final = kip(195, "AdminClient.createPartitions", "KIP-195%3A+AdminClient.createPartitions")
KIP_113: Final = kip(
    113,
    "Support replicas movement between log directories",
    "KIP-113%3A+Support+replicas+movement+between+log+directories",
)
KIP_219: Final = kip(219, "Improve quota communication", "KIP-219+-+Improve+quota+communication")
KIP_226: Final = kip(226, "Dynamic Broker Configuration", "KIP-226+-+Dynamic+Broker+Configuration")
KIP_227: Final = kip(
    227,
    "Introduce Incremental FetchRequests to Increase Partition Scalability",
    "KIP-227%3A+Introduce+Incremental+FetchRequests+to+Increase+Partition+Scalability",
)
KIP_279: Final = kip(
    279,
    "Fix log divergence between leader and follower after fast leader fail over",
    "KIP-279%3A+Fix+log+divergence+between+leader+and+follower+after+fast+leader+fail+over",
)
KIP_339: Final = kip(
    339, "Create a new IncrementalAlterConfigs API", "KIP-339%3A+Create+a+new+IncrementalAlterConfigs+API"
)
KIP_394: Final = kip(
    394,
    "Require member.id for initial join group request",
    "KIP-394%3A+Require+member.id+for+initial+join+group+request",
)
KIP_392: Final = kip(
    392, "Allow consumers to fetch from closest replica", "KIP-392%3A+Allow+consumers+to+fetch+from+closest+replica"
)
KIP_430: Final = kip(
    430,
    "Return Authorized Operations in Describe Responses",
    "KIP-430+-+Return+Authorized+Operations+in+Describe+Responses",
)
KIP_455: Final = kip(
    455,
    "Create an Administrative API for Replica Reassignment",
    "KIP-455%3A+Create+an+Administrative+API+for+Replica+Reassignment",
)
KIP_460: Final = kip(460, "Admin Leader Election RPC", "KIP-460%3A+Admin+Leader+Election+RPC")
KIP_482: Final = kip(
    482,
    "The Kafka Protocol should Support Optional Tagged Fields",
    "KIP-482%3A+The+Kafka+Protocol+should+Support+Optional+Tagged+Fields",
)
KIP_534: Final = kip(
    534,
    "Retain tombstones and transaction markers for approximately delete.retention.ms milliseconds",
    "KIP-534%3A+Retain+tombstones+and+transaction+markers+for+approximately+delete.retention.ms+milliseconds",
)
KIP_546: Final = kip(
    546,
    "Add Client Quota APIs to the Admin Client",
    "KIP-546%3A+Add+Client+Quota+APIs+to+the+Admin+Client",
)
KIP_590: Final = kip(
    590,
    "Redirect Zookeeper Mutation Protocols to The Controller",
    "KIP-590%3A+Redirect+Zookeeper+Mutation+Protocols+to+The+Controller",
)
KIP_595: Final = kip(
    595, "A Raft Protocol for the Metadata Quorum", "KIP-595%3A+A+Raft+Protocol+for+the+Metadata+Quorum"
)
KIP_700: Final = kip(700, "Add Describe Cluster API", "KIP-700%3A+Add+Describe+Cluster+API")
KIP_709: Final = kip(
    709,
    "Extend OffsetFetch requests to accept multiple group ids",
    "KIP-709%3A+Extend+OffsetFetch+requests+to+accept+multiple+group+ids",
)
KIP_860: Final = kip(
    860,
    "Add client-provided option to guard against replication factor change during partition reassignments",
    "KIP-860%3A+Add+client-provided+option+to+guard+against+replication+factor+change+during+partition+reassignments",
)
KIP_919: Final = kip(
    919,
    "Allow AdminClient to Talk Directly with the KRaft Controller Quorum",
    "KIP-919%3A+Allow+AdminClient+to+Talk+Directly+with+the+KRaft+Controller+Quorum+and+add+Controller+Registration",
)
KIP_951: Final = kip(
    951, "Leader discovery optimisations for the client", "KIP-951%3A+Leader+discovery+optimisations+for+the+client"
)
KIP_966: Final = kip(966, "Eligible Leader Replicas", "KIP-966%3A+Eligible+Leader+Replicas")
