"""Configuration of the replica fetchers."""

from dataclasses import dataclass
from datetime import timedelta

from reference_broker.core.configuration.configuration import BrokerConfiguration


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Values of the properties `replica.fetch.*` and `replica.socket.timeout.ms`. `node_id` is this broker's id."""

    node_id: int
    max_wait: timedelta
    min_bytes: int
    max_bytes: int
    """`replica.fetch.response.max.bytes`: maximum size of the records in a response."""
    partition_max_bytes: int
    """`replica.fetch.max.bytes`: maximum size of the records of a partition in a response."""
    backoff_ms: int
    """`replica.fetch.backoff.ms`: delay of a partition after an error."""
    timeout_ms: int
    """`replica.socket.timeout.ms`: request timeout."""

    @classmethod
    def of(cls, node_id: int, configuration: BrokerConfiguration) -> "FetchSettings":
        """Read the configuration."""
        number = configuration.integer
        return cls(
            node_id=node_id,
            max_wait=timedelta(milliseconds=number("replica.fetch.wait.max.ms")),
            min_bytes=number("replica.fetch.min.bytes"),
            max_bytes=number("replica.fetch.response.max.bytes"),
            partition_max_bytes=number("replica.fetch.max.bytes"),
            backoff_ms=number("replica.fetch.backoff.ms"),
            timeout_ms=number("replica.socket.timeout.ms"),
        )
