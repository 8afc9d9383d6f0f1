"""Model of client quotas, their description, and throttling (`ClientQuotaControlManager`, KIP-546, KIP-219)."""

from conformance.sequential.expectation import Expectation
from conformance.sequential.model.cluster import ModelCluster
from conformance.sequential.steps import AlterClientQuotas, DescribeClientQuotas


def alter_client_quotas(cluster: ModelCluster, step: AlterClientQuotas) -> Expectation:
    """Set and remove the named quotas; the others of the client stay."""
    if not step.validate_only:
        altered = cluster.quotas.get((step.client, step.user), {}) | dict(step.ops)
        cluster.quotas[step.client, step.user] = {key: value for key, value in altered.items() if value is not None}
    return {"error": "NONE"}


def describe_client_quotas(cluster: ModelCluster, step: DescribeClientQuotas) -> Expectation:
    """Return the quotas of the client, and unless the request is strict, those of users with this client."""
    quotas = cluster.quotas.get((step.client, None), {})
    with_user = sum(
        client == step.client and user is not None for (client, user), found in cluster.quotas.items() if found
    )
    return {
        "error": "NONE",
        "quotas": tuple(sorted((key, float(value)) for key, value in quotas.items())),
        "others": 0 if step.strict else with_user,
    }


def as_client(cluster: ModelCluster, client: str, served: Expectation) -> Expectation:
    """Add `throttled` to a response: true if the client has a quota, because scripts always exceed it.

    The connection is muted for the throttle time of the response, if there is one.
    """
    throttled = bool(cluster.quotas.get((client, None)))
    return {**served, "throttled": throttled, "muted": "for the throttle time"}
