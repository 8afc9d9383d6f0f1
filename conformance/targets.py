"""Properties of a target that follow from its name."""


def starts_nodes(name: str) -> bool:
    """Whether the number of nodes can be chosen: an existing cluster has its own."""
    return not name.startswith("bootstrap:")
