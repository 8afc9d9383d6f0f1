"""Definitions of all topic properties and of the broker properties in use, with the defaults of Apache Kafka 4.3.

Follows: org.apache.kafka.storage.internals.log.LogConfig, kafka.server.KafkaConfig.

Topics have all of Kafka's properties, including those of unsupported features, since clients set and compare them.
Brokers have the properties that the reference broker uses, and those that are the defaults of topic properties.
"""

import re
from collections.abc import Callable

from reference_broker.core.configuration.key import INT_MAX, LONG_MAX, ConfigKey, ConfigType, Value

_BOOLEAN, _STRING, _INT, _SHORT, _LONG, _DOUBLE, _LIST = ConfigType

_DAY_MS = 86_400_000
_MEBIBYTE = 1024 * 1024
_THROTTLED_REPLICAS = re.compile(r"([0-9]+:[0-9]+)?(,[0-9]+:[0-9]+)*|\*")
_COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _same(name: str) -> tuple[tuple[str, int], ...]:
    """Return the only synonym of a topic property, which has the same unit."""
    return ((name, 1),)


def _validate_gzip_level(value: Value) -> str | None:
    return None if value == -1 or value in range(1, 10) else "Value must be between 1 and 9 or equal to -1"


def _validate_throttled_replicas(role: str) -> Callable[[Value], str | None]:
    reason = (
        f"{role}.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
    return lambda value: None if _THROTTLED_REPLICAS.fullmatch(str(value).strip()) else reason


_TOPIC = (
    ConfigKey("cleanup.policy", _LIST, "delete", allowed=("compact", "delete"), synonyms=_same("log.cleanup.policy")),
    ConfigKey(
        "compression.gzip.level", _INT, "-1", synonyms=_same("compression.gzip.level"), validator=_validate_gzip_level
    ),
    ConfigKey("compression.lz4.level", _INT, "9", 1, 17, synonyms=_same("compression.lz4.level")),
    ConfigKey("compression.type", _STRING, "producer", allowed=_COMPRESSION_TYPES, synonyms=_same("compression.type")),
    ConfigKey("compression.zstd.level", _INT, "3", -131072, 22, synonyms=_same("compression.zstd.level")),
    ConfigKey("delete.retention.ms", _LONG, f"{_DAY_MS}", 0, synonyms=_same("log.cleaner.delete.retention.ms")),
    ConfigKey("file.delete.delay.ms", _LONG, "60000", 0, synonyms=_same("log.segment.delete.delay.ms")),
    ConfigKey("flush.messages", _LONG, f"{LONG_MAX}", 1, synonyms=_same("log.flush.interval.messages")),
    ConfigKey(
        "flush.ms",
        _LONG,
        f"{LONG_MAX}",
        0,
        synonyms=(("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    ),
    ConfigKey("follower.replication.throttled.replicas", _LIST, "", validator=_validate_throttled_replicas("follower")),
    ConfigKey("index.interval.bytes", _INT, "4096", 0, synonyms=_same("log.index.interval.bytes")),
    ConfigKey("leader.replication.throttled.replicas", _LIST, "", validator=_validate_throttled_replicas("leader")),
    ConfigKey("local.retention.bytes", _LONG, "-2", -2, synonyms=_same("log.local.retention.bytes")),
    ConfigKey("local.retention.ms", _LONG, "-2", -2, synonyms=_same("log.local.retention.ms")),
    ConfigKey("max.compaction.lag.ms", _LONG, f"{LONG_MAX}", 1, synonyms=_same("log.cleaner.max.compaction.lag.ms")),
    ConfigKey("max.message.bytes", _INT, f"{_MEBIBYTE + 12}", 0, synonyms=_same("message.max.bytes")),
    ConfigKey(
        "message.timestamp.after.max.ms", _LONG, "3600000", 0, synonyms=_same("log.message.timestamp.after.max.ms")
    ),
    ConfigKey(
        "message.timestamp.before.max.ms",
        _LONG,
        f"{LONG_MAX}",
        0,
        synonyms=_same("log.message.timestamp.before.max.ms"),
    ),
    ConfigKey(
        "message.timestamp.type",
        _STRING,
        "CreateTime",
        allowed=("CreateTime", "LogAppendTime"),
        synonyms=_same("log.message.timestamp.type"),
    ),
    ConfigKey("min.cleanable.dirty.ratio", _DOUBLE, "0.5", 0, 1, synonyms=_same("log.cleaner.min.cleanable.ratio")),
    ConfigKey("min.compaction.lag.ms", _LONG, "0", 0, synonyms=_same("log.cleaner.min.compaction.lag.ms")),
    ConfigKey("min.insync.replicas", _INT, "1", 1, synonyms=_same("min.insync.replicas")),
    ConfigKey("preallocate", _BOOLEAN, "false", synonyms=_same("log.preallocate")),
    ConfigKey("remote.log.copy.disable", _BOOLEAN, "false"),
    ConfigKey("remote.log.delete.on.disable", _BOOLEAN, "false"),
    ConfigKey("remote.storage.enable", _BOOLEAN, "false"),
    ConfigKey("retention.bytes", _LONG, "-1", synonyms=_same("log.retention.bytes")),
    ConfigKey(
        "retention.ms",
        _LONG,
        f"{7 * _DAY_MS}",
        -1,
        synonyms=(("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    ),
    ConfigKey("segment.bytes", _INT, f"{1024 * _MEBIBYTE}", _MEBIBYTE, synonyms=_same("log.segment.bytes")),
    ConfigKey("segment.index.bytes", _INT, f"{10 * _MEBIBYTE}", 4, synonyms=_same("log.index.size.max.bytes")),
    ConfigKey(
        "segment.jitter.ms",
        _LONG,
        "0",
        0,
        synonyms=(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    ),
    ConfigKey("segment.ms", _LONG, f"{7 * _DAY_MS}", 1, synonyms=(("log.roll.ms", 1), ("log.roll.hours", 3_600_000))),
    ConfigKey("unclean.leader.election.enable", _BOOLEAN, "false", synonyms=_same("unclean.leader.election.enable")),
)

TOPIC_CONFIG_KEYS = {key.name: key for key in _TOPIC}
"""Every topic property by name, in order of names."""


def _like(topic_property: str, name: str) -> ConfigKey:
    """Return the broker property that is the default of a topic property, with the same type and bounds."""
    key = TOPIC_CONFIG_KEYS[topic_property]
    return ConfigKey(name, key.type, key.default, key.minimum, key.maximum, key.allowed, validator=key.validator)


_SOLE_SYNONYMS = tuple(_like(key.name, key.synonyms[0][0]) for key in _TOPIC if len(key.synonyms) == 1)

_BROKER = (
    *_SOLE_SYNONYMS,
    ConfigKey("advertised.listeners", _LIST, None),
    ConfigKey("auto.create.topics.enable", _BOOLEAN, "true"),
    ConfigKey("auto.leader.rebalance.enable", _BOOLEAN, "true"),
    ConfigKey("broker.heartbeat.interval.ms", _INT, "2000"),
    ConfigKey("broker.rack", _STRING, None),
    ConfigKey("broker.session.timeout.ms", _INT, "9000"),
    ConfigKey("controlled.shutdown.enable", _BOOLEAN, "true"),
    ConfigKey("controller.listener.names", _LIST, None),
    ConfigKey("controller.quorum.election.backoff.max.ms", _INT, "1000"),
    ConfigKey("controller.quorum.election.timeout.ms", _INT, "1000"),
    ConfigKey("controller.quorum.fetch.timeout.ms", _INT, "2000"),
    ConfigKey("controller.quorum.request.timeout.ms", _INT, "2000"),
    ConfigKey("controller.quorum.retry.backoff.ms", _INT, "20"),
    ConfigKey("controller.quorum.voters", _LIST, ""),
    ConfigKey("default.replication.factor", _INT, "1"),
    ConfigKey("delete.topic.enable", _BOOLEAN, "true"),
    ConfigKey("fetch.max.bytes", _INT, f"{55 * _MEBIBYTE}", 1024),
    ConfigKey("initial.broker.registration.timeout.ms", _INT, "60000"),
    ConfigKey("inter.broker.listener.name", _STRING, "PLAINTEXT"),
    ConfigKey("leader.imbalance.check.interval.seconds", _LONG, "300", 1),
    ConfigKey("listeners", _LIST, "PLAINTEXT://:9092"),
    ConfigKey("log.dirs", _LIST, None),
    ConfigKey("log.flush.interval.ms", _LONG, None),
    ConfigKey("log.flush.offset.checkpoint.interval.ms", _INT, "60000", 0),
    ConfigKey("log.flush.scheduler.interval.ms", _LONG, f"{LONG_MAX}"),
    ConfigKey("log.initial.task.delay.ms", _LONG, "30000", 0),
    ConfigKey("log.retention.check.interval.ms", _LONG, "300000", 1),
    ConfigKey("log.retention.hours", _INT, "168"),
    ConfigKey("log.retention.minutes", _INT, None),
    ConfigKey("log.retention.ms", _LONG, None),
    ConfigKey("log.roll.hours", _INT, "168", 1),
    ConfigKey("log.roll.jitter.hours", _INT, "0", 0),
    ConfigKey("log.roll.jitter.ms", _LONG, None),
    ConfigKey("log.roll.ms", _LONG, None),
    ConfigKey("metadata.log.max.record.bytes.between.snapshots", _LONG, f"{20 * _MEBIBYTE}", 1),
    ConfigKey("metadata.log.max.snapshot.interval.ms", _LONG, "3600000", 0),
    ConfigKey("metadata.log.segment.bytes", _INT, f"{1024 * _MEBIBYTE}", 8 * _MEBIBYTE),
    ConfigKey("metadata.log.segment.ms", _LONG, f"{7 * _DAY_MS}"),
    ConfigKey("metadata.max.idle.interval.ms", _INT, "500", 0),
    ConfigKey("metadata.max.retention.bytes", _LONG, f"{100 * _MEBIBYTE}"),
    ConfigKey("metadata.max.retention.ms", _LONG, f"{7 * _DAY_MS}"),
    ConfigKey("node.id", _INT, None, 0),
    ConfigKey("num.partitions", _INT, "1", 1),
    ConfigKey("offset.metadata.max.bytes", _INT, "4096"),
    ConfigKey("offsets.commit.timeout.ms", _INT, "5000", 1),
    ConfigKey("offsets.topic.num.partitions", _INT, "50", 1),
    ConfigKey("offsets.topic.replication.factor", _SHORT, "3", 1),
    ConfigKey("offsets.topic.segment.bytes", _INT, f"{100 * _MEBIBYTE}", 1),
    ConfigKey("process.roles", _LIST, None),
    ConfigKey("producer.id.expiration.check.interval.ms", _INT, "600000", 1),
    ConfigKey("producer.id.expiration.ms", _INT, f"{_DAY_MS}", 1),
    ConfigKey("replica.fetch.backoff.ms", _INT, "1000", 0),
    ConfigKey("replica.fetch.max.bytes", _INT, f"{_MEBIBYTE}", 0),
    ConfigKey("replica.fetch.min.bytes", _INT, "1"),
    ConfigKey("replica.fetch.response.max.bytes", _INT, f"{10 * _MEBIBYTE}", 0),
    ConfigKey("replica.fetch.wait.max.ms", _INT, "500"),
    ConfigKey("replica.high.watermark.checkpoint.interval.ms", _LONG, "5000"),
    ConfigKey("replica.lag.time.max.ms", _LONG, "30000"),
    ConfigKey("replica.socket.timeout.ms", _INT, "30000"),
    ConfigKey("socket.request.max.bytes", _INT, f"{100 * _MEBIBYTE}", 1, INT_MAX),
    ConfigKey("unclean.leader.election.interval.ms", _LONG, "300000", 1),
)

BROKER_CONFIG_KEYS = {key.name: key for key in _BROKER}
"""Every broker property by name."""

DYNAMIC_BROKER_CONFIGS = frozenset(key.name for key in _SOLE_SYNONYMS) | {
    "log.flush.interval.ms",
    "log.retention.ms",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "producer.id.expiration.ms",
}
"""Broker properties that can be changed dynamically; all others are read-only. Kafka can also change `listeners`."""

BROKER_SYNONYMS = {
    name: names
    for names in (tuple(name for name, _ in key.synonyms) for key in _TOPIC if len(key.synonyms) > 1)
    for name in names
    if name != "log.flush.scheduler.interval.ms"
}
"""Synonyms of broker properties, in order of precedence. As in Kafka (`brokerConfigSynonyms`),
`log.flush.scheduler.interval.ms` is a synonym of `log.flush.interval.ms`, but has none itself."""
