"""Clients that follow the leader of a partition, or the coordinator of a group, when it moves."""

from collections.abc import Callable
from typing import Final

from conformance.concurrent.trial_context import TrialContext
from fixtures.clients.recorded import RecordedClient

REQUEST_TIMEOUT_S: Final = 5.0


class FollowingClient:
    """One process of the history. Its requests go to the node that has a role, such as leader of a partition.

    :param find: sends a lookup of the role to the next node of the cluster, directs later requests to the node that the
        response names, and returns whether it names one.
    """

    def __init__(self, context: TrialContext, find: Callable[[RecordedClient], bool]) -> None:
        self._client = context.raw_client(timeout_s=REQUEST_TIMEOUT_S)
        self._find = find
        self._is_found = False

    def client(self) -> RecordedClient | None:
        """Return the client if the node with the role is known, or if a new lookup finds it; else None."""
        self._is_found = self._is_found or self._find(self._client)
        return self._client if self._is_found else None

    def reset(self) -> None:
        """Close the connections; the next call of `client` looks the node up again."""
        self._client.close()
        self._is_found = False


def leader_client(context: TrialContext, partition: int) -> FollowingClient:
    """Return a client that looks up the leader of a partition with Metadata requests."""
    return FollowingClient(context, lambda client: client.find_leader(context.topic, partition))


def coordinator_client(context: TrialContext, group: str) -> FollowingClient:
    """Return a client that looks up the coordinator of a group with FindCoordinator requests."""
    return FollowingClient(context, lambda client: client.find_coordinator(group))
