"""The active controller: what is asked of the cluster's metadata becomes records, or an error (KIP-500, KIP-631)."""
