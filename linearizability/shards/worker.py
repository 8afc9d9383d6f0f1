"""The program of a worker process, started by `linearizability.shards.running`."""

from linearizability.shards.running import work

if __name__ == "__main__":
    work()
