"""Brokers of the metadata image, as replication needs them: broker epochs, and eligibility for the ISR.

Follows: kafka.cluster.Partition (KIP-841, KIP-903).
"""

from collections.abc import Callable
from dataclasses import dataclass

from reference_broker.core.metadata.image import MetadataImage

UNKNOWN_BROKER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class BrokerRun:
    """One incarnation of a broker, identified by its broker epoch; -1 if the broker epoch is unknown."""

    node_id: int
    broker_epoch: int


class Brokers:
    """The brokers of the cluster.

    :param image: returns the latest image.
    """

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image

    def live_epoch(self, node_id: int) -> int | None:
        """Return the broker epoch of a broker; null if it is fenced or not registered."""
        broker = self._image().brokers.get(node_id)
        return None if broker is None or broker.fenced else broker.broker_epoch

    def may_join_isr(self, node_id: int, fetch_epoch: int | None) -> bool:
        """Whether a broker is unfenced, not in controlled shutdown (KIP-841), and has fetched with its epoch (KIP-903).

        :param fetch_epoch: the broker epoch in the broker's last fetch. Null: it has not fetched. -1: the fetch had no
            broker epoch, and only the other conditions count.
        """
        broker = self._image().brokers.get(node_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown or fetch_epoch is None:
            return False
        return fetch_epoch in {UNKNOWN_BROKER_EPOCH, broker.broker_epoch}

    def is_past(self, run: BrokerRun) -> bool:
        """Whether a later incarnation of the same broker is registered and not fenced."""
        live_epoch = self.live_epoch(run.node_id)
        return run.broker_epoch != UNKNOWN_BROKER_EPOCH and live_epoch is not None and live_epoch > run.broker_epoch
