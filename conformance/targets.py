"""What the suite needs to know of a target by its name alone."""


def starts_nodes(name: str) -> bool:
    """Whether a number of nodes may be asked for: an existing cluster has its own."""
    return not name.startswith("bootstrap:")
