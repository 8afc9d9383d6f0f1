"""Configuration of the quorum, with Apache Kafka's defaults.

Follows: org.apache.kafka.raft.QuorumConfig (KIP-595).
"""

from dataclasses import dataclass, field

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.log.config import LogConfig

_FIRST_ELECTION_MAX_MS = 30


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """Configuration of a quorum node. The first five fields are Kafka's `controller.quorum.` properties.

    :param fetch_max_wait_ms: maximum wait of a Fetch; a constant in Kafka.
    :param fetch_max_bytes: maximum size of the records in a Fetch response, or of a part of a snapshot.
    :param observer_session_timeout_ms: time without a fetch after which DescribeQuorum omits an observer; a constant in
        Kafka.
    :param first_election_max_ms: maximum of the first election timeout of a voter in epoch 0; null for the regular
        election timeout, as in Kafka. With a short first timeout, a new cluster elects a leader as soon as a majority
        of the voters runs. This is safe, because the pre-vote (KIP-996) does not disturb a quorum that has a leader.
    :param log: without a cleanup policy, because records are deleted only after a snapshot (KIP-630).
    """

    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 8 * 1024 * 1024
    observer_session_timeout_ms: int = 300_000
    first_election_max_ms: int | None = None
    log: LogConfig = field(default_factory=lambda: LogConfig(cleanup_policy=frozenset()))

    @classmethod
    def of(cls, configuration: BrokerConfiguration) -> "QuorumConfig":
        """Read the properties of a node, and set a short first election timeout."""
        return cls(
            election_timeout_ms=configuration.integer("controller.quorum.election.timeout.ms"),
            election_backoff_max_ms=configuration.integer("controller.quorum.election.backoff.max.ms"),
            fetch_timeout_ms=configuration.integer("controller.quorum.fetch.timeout.ms"),
            request_timeout_ms=configuration.integer("controller.quorum.request.timeout.ms"),
            retry_backoff_ms=configuration.integer("controller.quorum.retry.backoff.ms"),
            first_election_max_ms=_FIRST_ELECTION_MAX_MS,
            log=LogConfig(
                segment_bytes=configuration.integer("metadata.log.segment.bytes"),
                segment_ms=configuration.integer("metadata.log.segment.ms"),
                cleanup_policy=frozenset(),
            ),
        )

    @property
    def check_quorum_timeout_ms(self) -> int:
        """Time after which a leader resigns if no majority has fetched from it (KIP-595)."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_quorum_epoch_timeout_ms(self) -> int:
        """Interval at which the leader sends BeginQuorumEpoch to each voter that has not fetched during it."""
        return self.fetch_timeout_ms // 2
