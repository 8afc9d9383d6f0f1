"""One module per command: its function, which returns the exit code, and `EXAMPLES` for the end of its help."""
