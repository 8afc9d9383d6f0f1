"""The active controller: what is asked of the cluster's metadata becomes records, or an error (KIP-500, KIP-631)."""

from reference_broker.core.controller.errors import ControllerError
from reference_broker.core.controller.single_node import PRODUCER_ID_BLOCK_SIZE, Controller
from reference_broker.core.controller.topics import NewTopic, PlannedTopic

__all__ = ["PRODUCER_ID_BLOCK_SIZE", "Controller", "ControllerError", "NewTopic", "PlannedTopic"]
