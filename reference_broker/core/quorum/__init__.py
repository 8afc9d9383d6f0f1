"""A node of the KRaft quorum: elections and replication of `__cluster_metadata-0` (KIP-595, 630, 853, 996, 1166).

Read `quorum_state` for the states and their transitions, `raft_client` for what a node does in them, `leader_state` for
the high watermark and check-quorum. Apart from them: `quorum_log` and `snapshots` on the disk, `messages` and `wire`.
"""
