"""Configuration of the quorum, with Apache Kafka's defaults.

Follows: org.apache.kafka.raft.QuorumConfig (KIP-595).
"""

from dataclasses import dataclass, field

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.log.config import LogConfig

_FIRST_ELECTION_MAX_MS = 30


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """The first five are Kafka's `controller.quorum.` properties, dots as underscores.

    :param fetch_max_wait_ms: how long a leader may hold a fetch; Kafka's raft client has it built in, as the next two.
    :param observer_session_timeout_ms: after this time without a fetch an observer is no longer described.
    :param first_election_max_ms: how long, at most, a voter without any history waits for a leader before it asks if it
        could be one; null for the election timeout, as Kafka does. Nothing rests on that timeout but that elections do
        not collide: a pre-vote (KIP-996) disturbs nobody who has a leader, and random jitter is left. So the nodes of
        a new cluster find a leader when the second of them is there, and not a second or two later.
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
        """The settings of a node."""
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
        """A leader that a majority has not fetched from for this long resigns (KIP-835)."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_quorum_epoch_timeout_ms(self) -> int:
        """A voter that has not fetched for this long is told again who leads."""
        return self.fetch_timeout_ms // 2
