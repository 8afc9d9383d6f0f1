"""The marker of a clean stop, in Kafka's format: `.kafka_cleanshutdown` holds the epoch that the broker had.

It is the last thing that a node writes, and taken away as soon as the next run has read it: so no crash later on finds
one that says that all logs are whole.
"""

import json

from reference_broker.core.disk import Disk

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
_NOT_SAID = -1


def take_marker(disk: Disk) -> int | None:
    """The broker epoch of the run that stopped cleanly, -1 if the marker does not say; null if it did not stop so."""
    if not disk.exists(CLEAN_SHUTDOWN_FILE):
        return None
    content = disk.read(CLEAN_SHUTDOWN_FILE, 0, disk.size(CLEAN_SHUTDOWN_FILE))
    disk.delete(CLEAN_SHUTDOWN_FILE)
    disk.flush_directory("")
    try:
        return int(json.loads(content)["brokerEpoch"])
    except (ValueError, TypeError, KeyError):
        return _NOT_SAID


def write_marker(disk: Disk, broker_epoch: int) -> None:
    """Everything is durable."""
    disk.replace(CLEAN_SHUTDOWN_FILE, json.dumps({"version": 0, "brokerEpoch": broker_epoch}).encode())
