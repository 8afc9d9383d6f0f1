"""Log of one partition, on disk in Apache Kafka's format.

Read the modules in this order:
- `unified_log`, `config`, `errors`: the entry point for all reads and changes of a log.
- `append_validation`, `producer_state_manager`: rejection of invalid batches and detection of duplicates.
- `snapshots`: the files of the producer state.
- `placed_batches`: batches that a follower appends.
- `log_segment`: a `.log` file (`batch_file`) and its two indexes (`index`).
- `loading`, `retention`: loading of the segments after a stop or a crash, and the search for segments to delete.
- `leader_epoch_file_cache`, `checkpoints`: start offsets of the leader epochs, and the checkpoint files.
"""
