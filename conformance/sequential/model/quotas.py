"""Model of client quotas, their description, and throttling (`ClientQuotaControlManager`, KIP-546, KIP-219)."""

from conformance.sequential.expectation import Expectation
from conformance.sequential.model.cluster import ModelCluster
from conformance.sequential.steps import AlterClientQuotas, DescribeClientQuotas


def alter_client_quotas(cluster: ModelCluster, step: AlterClientQuotas) -> Expectation:
    """Set and remove the named quotas; the others of the client stay."""
    if not step.validate_only:
        altered = cluster.quotas.get(step.client, {}) | dict(step.ops)
        cluster.quotas[step.client] = {key: value for key, value in altered.items() if value is not None}
    return {"error": "NONE"}


def describe_client_quotas(cluster: ModelCluster, step: DescribeClientQuotas) -> Expectation:
    """Return the quotas of the client."""
    quotas = cluster.quotas.get(step.client, {})
    return {"error": "NONE", "quotas": tuple(sorted((key, float(value)) for key, value in quotas.items())), "others": 0}


def as_client(cluster: ModelCluster, client: str, served: Expectation) -> Expectation:
    """Add `throttled` to a response: true if the client has a quota, because scripts always exceed it.

    Its connection is muted for the throttle time, if it has one.
    """
    return {**served, "throttled": bool(cluster.quotas.get(client)), "muted": "for the throttle time"}
