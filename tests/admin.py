"""Admin client of a started cluster, and the names of the topics in the cluster."""

from confluent_kafka.admin import AdminClient


def admin_of(cluster):
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def topics_of(cluster):
    """Return the names of all topics except Kafka's internal ones."""
    return {name for name in admin_of(cluster).list_topics(timeout=10).topics if not name.startswith("__")}
