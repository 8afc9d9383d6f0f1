"""User interfaces of kafkatrial: command line, pytest plugin, and control interface over HTTP."""
