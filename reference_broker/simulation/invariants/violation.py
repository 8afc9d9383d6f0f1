"""The exception for a violated invariant."""


class InvariantViolation(Exception):  # noqa: N818 - a verdict about a cluster, not an error of the program
    """Violation of an invariant.

    :param name: the name of the invariant in kebab case, such as `one-leader-per-epoch`.
    :param detail: the node, replica or request that violates it, and how.
    """

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail

    def __reduce__(self) -> tuple[type["InvariantViolation"], tuple[str, str]]:
        return type(self), (self.name, self.detail)
