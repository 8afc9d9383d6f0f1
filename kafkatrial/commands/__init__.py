"""One module per command. A command returns its exit code."""
