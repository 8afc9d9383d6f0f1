"""The defect that a run has, by its name."""

from contextlib import AbstractContextManager, nullcontext


def seeded(defect: str) -> AbstractContextManager[None]:
    """Inside, the broker has this defect; none, where the name is empty. Raises `UnknownDefectError`."""
    if not defect:
        return nullcontext()
    from chaos.defects import registry  # most runs have none, and all defects together take a while to load

    return registry.defect(defect).seeded()
