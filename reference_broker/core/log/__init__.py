"""The log of one partition, on disk in Apache Kafka's format.

`partition_log` is the way in. Below it: `segment` (a `.log` file with its two indexes), `index`, `epochs` (which leader
epoch began where), `producers` (idempotence), `append_validation` (what a client's batch must keep), `checkpoints` (the
small text files), `config`.
"""
