"""Environment variables that more than one module reads."""

CONTROL_TOKEN = "KAFKATRIAL_CONTROL_TOKEN"  # noqa: S105  a name
"""Token that requests to the control interface must carry."""
TARGETS = "KAFKATRIAL_TARGETS"
"""Path of the file that `--targets` names; `fixtures.targets.recipe_file` reads it."""
