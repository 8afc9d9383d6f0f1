"""Installation of a run's defect by its name."""

from contextlib import AbstractContextManager, nullcontext


def seeded(defect: str) -> AbstractContextManager[None]:
    """Install a defect in the broker inside the context; none if the name is empty. Raises `UnknownDefectError`."""
    if not defect:
        return nullcontext()
    from chaos.defects import registry  # slow to import, and not needed by most runs

    return registry.defect(defect).seeded()
