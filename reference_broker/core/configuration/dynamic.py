"""Settings that change while a node runs (KIP-226): they come with the metadata."""

from reference_broker.core.configuration.configuration import BrokerConfiguration
from reference_broker.core.configuration.resource import ResourceType
from reference_broker.core.metadata.delta import MetadataDelta
from reference_broker.core.metadata.image import CLUSTER_DEFAULT, MetadataImage


def follow(configuration: BrokerConfiguration, image: MetadataImage, delta: MetadataDelta, node_id: int) -> None:
    """Let a node's configuration be what the metadata says of it, before anybody acts on the change."""
    if delta.everything or any(resource_type == ResourceType.BROKER for resource_type, _ in delta.configs):
        configuration.set_dynamic(
            image.overrides(ResourceType.BROKER, str(node_id)), image.overrides(ResourceType.BROKER, CLUSTER_DEFAULT)
        )
