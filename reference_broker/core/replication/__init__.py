"""Replication: what a broker does for the partitions placed on it, as leader and as follower."""
