"""Environment variables that more than one module reads."""

CONTROL_TOKEN = "KAFKATRIAL_CONTROL_TOKEN"  # noqa: S105  a name
"""Token that requests to the control interface must carry."""
CLIENT_SETTINGS = "KAFKATRIAL_CLIENT_SETTINGS"
"""Path of the file that `--client-settings` names; `fixtures.targets.connection_settings` reads it."""
TARGETS = "KAFKATRIAL_TARGETS"
"""Path of the file that `--targets` names; `fixtures.targets.recipe_file` reads it."""
