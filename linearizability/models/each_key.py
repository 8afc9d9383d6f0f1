"""Model of many objects with keys, derived from the model of one: an input is a pair of the key and its input."""

from dataclasses import replace
from typing import Any

from linearizability.model import Model, never_pipelined


def each_key(model: Model) -> Model:
    """Return the model of one object for every key; the keys are independent."""

    def partition(given: tuple[Any, Any]) -> Any:
        key, own = given
        return key if model.partition is None else (key, model.partition(own))

    def pipelined(given: tuple[Any, Any]) -> bool:
        return model.pipelined(given[1])

    return replace(
        model,
        step=lambda state, given, output: model.step(state, given[1], output),
        pure=lambda given, output: model.pure(given[1], output),
        partition=partition,
        pipelined=never_pipelined if model.pipelined is never_pipelined else pipelined,
        describe_operation=lambda given, output: model.describe_operation(given[1], output),
    )
