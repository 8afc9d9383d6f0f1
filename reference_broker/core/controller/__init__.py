"""The active controller: requests to change the cluster's metadata become records of its log, or an error."""
