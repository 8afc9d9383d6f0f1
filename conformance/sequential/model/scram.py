"""Model of SCRAM credentials and their description (`ScramControlManager`, KIP-554)."""

from typing import Final

from conformance.sequential.expectation import Expectation
from conformance.sequential.model.cluster import ModelCluster
from conformance.sequential.steps import AlterScramCredential, DescribeScramCredentials

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384


def alter_scram_credential(cluster: ModelCluster, step: AlterScramCredential) -> Expectation:
    """Set or delete the credential of one mechanism. The user's other credential stays."""
    credentials = cluster.credentials.setdefault(step.user, {})
    if step.iterations is None:
        return {"error": "RESOURCE_NOT_FOUND" if credentials.pop(step.mechanism, None) is None else "NONE"}
    if not ITERATIONS_MIN <= step.iterations <= ITERATIONS_MAX:
        return {"error": "UNACCEPTABLE_CREDENTIAL"}
    credentials[step.mechanism] = step.iterations
    return {"error": "NONE"}


def describe_scram_credentials(cluster: ModelCluster, step: DescribeScramCredentials) -> Expectation:
    """Return the iterations of each mechanism of the user; an error if there is none."""
    credentials = cluster.credentials.get(step.user)
    if not credentials:
        return {"error": "RESOURCE_NOT_FOUND", "credentials": ()}
    return {
        "error": "NONE",
        "credentials": tuple(sorted((int(mechanism), iterations) for mechanism, iterations in credentials.items())),
    }
