"""Limits of a saved trial's numbers: a file with others would fail in the middle of a run, or take unbounded work."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Final

from chaos.trial.trial import Trial
from conformance.value_json import NotAValueError

NUMBER_MAX: Final = 2**31 - 1
DURATION_MAX_MS: Final = 3_600_000
"""Of one field, and of all phases together: workloads become one step for each of their pauses."""
STEPS_MAX: Final = 100_000
"""Clients' steps, each as often as it is repeated."""
_SIGNED: Final = frozenset({"acks", "api_key", "api_version", "before", "by_ms", "epoch_ahead", "epochs_ago", "offset"})
_SIGNED_64: Final = frozenset({"seed", "timestamp", "rate_ppm"})
_LEAST: Final[Mapping[str, int]] = {"nodes": 1, "partitions": 1, "replication_factor": 1, "records": 1, "total": 1}
_MOST: Final[Mapping[str, int]] = {"nodes": 9, "partitions": 1_000, "replication_factor": 9, "records": 100_000}
_REPEATED: Final = ("times", "batches", "copies")


def check_limits(trial: Trial) -> None:
    """Raise `NotAValueError` for the first number that no run can use."""
    for at, name, number in _numbers(trial, "trial"):
        least, most = _range(at, name)
        if not least <= number <= most:
            raise NotAValueError(f"{at} is {number}; it lies between {least} and {most}")
    if trial.steady_ms + trial.end_ms + trial.healed_ms > DURATION_MAX_MS:
        raise NotAValueError(f"the phases of a trial last at most {DURATION_MAX_MS} ms together")
    steps = sum(_repetitions(step) for client in trial.stepping for step in client.steps)
    if steps > STEPS_MAX:
        raise NotAValueError(
            f"the clients of a trial have at most {STEPS_MAX} steps, repetitions included, not {steps}"
        )


def _range(at: str, name: str) -> tuple[int, int]:
    if name in _SIGNED_64:
        return -(2**63), 2**63 - 1
    if name in _SIGNED:
        return -NUMBER_MAX - 1, 2**63 - 1
    least = 1 if name == "pause_ms" and ".steps" not in at else _LEAST.get(name, 0)
    return least, DURATION_MAX_MS if name.endswith("_ms") else _MOST.get(name, NUMBER_MAX)


def _numbers(value: object, at: str) -> Iterator[tuple[str, str, int]]:
    """Return the path, the name and the value of each number in a field."""
    if isinstance(value, tuple):
        for place, part in enumerate(value):
            yield from _numbers(part, f"{at}[{place}]")
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            part = getattr(value, field.name)
            if isinstance(part, int) and not isinstance(part, bool):
                yield f"{at}.{field.name}", field.name, part
            else:
                yield from _numbers(part, f"{at}.{field.name}")


def _repetitions(step: object) -> int:
    return max(1, *(getattr(step, name, 1) for name in _REPEATED))
