"""A node of the KRaft quorum: elections and replication of `__cluster_metadata-0`.

The package implements KIP-595, KIP-630, KIP-853 (without changes of the voter set), KIP-996 and KIP-1166.

- `quorum_state`: the states of a node, and the transitions between them. `election_state` is their durable part.
- `raft_client`: the actions of a node in each state. Its inputs are `messages`, its outputs `effects`.
- `leader_state`: the high watermark and check-quorum.
- `quorum_log`, `snapshots`: the log and its snapshots on the disk.
- `wire`: conversion of the messages to and from the protocol's schemas.
"""
