"""A node of the KRaft quorum: elections and replication of `__cluster_metadata-0` (KIP-595, 630, 853, 996, 1166).

Read `states` for the table of transitions, `quorum_state` for how they are made, `node` for what happens on each input,
`quorum_log` for what is on disk.
"""
