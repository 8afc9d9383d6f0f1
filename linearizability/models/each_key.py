"""Model of many independent objects, each with a key. An input is a pair: the key, and the input of its object."""

from dataclasses import replace
from typing import Any

from linearizability.model import Model, never_pipelined


def each_key(model: Model) -> Model:
    """Return a model in which each key has an object of the given model."""

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
