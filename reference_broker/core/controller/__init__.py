"""The active controller: requests to change the cluster's metadata become records of the metadata log, or errors."""
