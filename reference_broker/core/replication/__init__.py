"""Replication of the partitions on this broker, as leader and as follower."""
