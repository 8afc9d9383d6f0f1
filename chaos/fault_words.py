"""The words of which faults are made: who is struck, what of a link or a disk, and how."""

from enum import Enum, StrEnum

from fixtures.faults.damage import Damage
from fixtures.targets.controls import Held, Listener

__all__ = ["Damage", "Errno", "FileKind", "Held", "Keeps", "Listener", "Node", "Operation", "Place", "Role"]


class Role(Enum):
    """A node, or the clients, by what it is at the moment of the injection."""

    LEADER = "leader"
    """Leads the first partition."""
    FOLLOWER = "follower"
    """The first other replica in its in-sync set."""
    LAST_FOLLOWER = "last-follower"
    """The last other replica of the assignment, in sync or not."""
    COORDINATOR = "coordinator"
    """Coordinates the group that clients commit in."""
    CONTROLLER = "controller"
    """Leads the controller quorum."""
    STANDBY = "standby"
    """The first voter that does not."""
    CLIENTS = "clients"
    """All of them; only an end of a link, never a node."""


Node = int | Role
Place = int | Role
"""An end of a link: a node or the clients."""


class Keeps(StrEnum):
    """What becomes of bytes on a link that is cut."""

    BYTES = "bytes"
    """They arrive once it is healed, as TCP sends them again."""
    NOTHING = "nothing"
    """They are gone, and so is the connection; both ends hear of that when the link is healed."""


class Errno(StrEnum):
    """How an operation of a disk fails."""

    EIO = "EIO"
    ENOSPC = "ENOSPC"


class Operation(StrEnum):
    """An operation of a disk."""

    APPEND = "append"
    FLUSH = "flush"
    READ = "read"
    REPLACE = "replace"
    TRUNCATE = "truncate"
    DELETE = "delete"


class FileKind(StrEnum):
    """A kind of file, by how its name ends."""

    LOG = ".log"
    INDEX = ".index"
    TIME_INDEX = ".timeindex"
    SNAPSHOT = ".snapshot"
    CHECKPOINT = "-checkpoint"
