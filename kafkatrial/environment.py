"""Environment variables that more than one module reads."""

CONTROL_TOKEN = "KAFKATRIAL_CONTROL_TOKEN"  # noqa: S105  a name
"""Token that requests to the control interface must carry."""
