"""Admin client of a started cluster, and its topics."""

from confluent_kafka.admin import AdminClient


def admin_of(cluster):
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def topics_of(cluster):
    """Return the topics of the cluster, without Kafka's internal topics."""
    return {name for name in admin_of(cluster).list_topics(timeout=10).topics if not name.startswith("__")}
