"""A node of the KRaft quorum: elections and replication of `__cluster_metadata-0`.

It implements KIP-595, KIP-630, KIP-853 (without changes of the voter set), KIP-996 and KIP-1166.

Read `quorum_state` for the states and their transitions, `raft_client` for the actions of a node in each state, and
`leader_state` for the high watermark and check-quorum. `quorum_log` and `snapshots` are the files, `messages` and
`wire` the requests and responses.
"""
