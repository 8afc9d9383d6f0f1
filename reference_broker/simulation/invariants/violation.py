"""What is thrown when a cluster does what it never may."""


class InvariantViolation(Exception):  # noqa: N818 - a verdict about a cluster, no error of the program
    """An invariant does not hold.

    :param name: of the invariant, in kebab-case: `one-leader-per-epoch`.
    :param detail: who has broken it, and how.
    """

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name
        self.detail = detail

    def __reduce__(self) -> tuple[type["InvariantViolation"], tuple[str, str]]:
        return type(self), (self.name, self.detail)
