"""The log of one partition, on disk in Apache Kafka's format.

To be read in this order:
- `partition_log`: the way in, with `config` and `errors`. What a log holds, and every way in which it changes.
- `append_validation`, `producers`: why a batch is refused, or found to be there already; `snapshots` of the producers.
- `placed_batches`: what a follower takes from its leader.
- `segment`: a `.log` file (`batch_file`) and its two indexes (`index`).
- `loading`, `retention`: how segments are found again after a stop or a crash, and when they go.
- `epochs`, `checkpoints`: where each leader epoch began, and the small text files that say so.
"""
