"""Seeding of a defect into the broker, by the name of the defect."""

from contextlib import AbstractContextManager, nullcontext


def seeded(defect: str) -> AbstractContextManager[None]:
    """Return a context in which the broker has this defect, none if it is empty. Raises `UnknownDefectError`."""
    if not defect:
        return nullcontext()
    from chaos.defects import registry  # slow to import, and not needed by most runs

    return registry.defect(defect).seeded()
