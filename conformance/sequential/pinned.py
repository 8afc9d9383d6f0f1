"""Scripts on brokers whose defaults for new topics differ from Apache Kafka's.

The settings that differ are set explicitly in every step that creates a topic or removes settings, so that the model,
which knows Kafka's defaults, and the broker start from the same topic. Scripts are printed without them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conformance.sequential.steps import (
    AlterConfigs,
    CreateTopic,
    Eventually,
    IncrementalAlterConfigs,
    On,
    OnEveryBroker,
    Operation,
    ResourceType,
    Script,
    Step,
    WithUnknownTags,
)


def pinned(script: Script, settings: Mapping[str, str]) -> Script:
    """Return the script with settings pinned; the same one if there are none."""
    return Script(tuple(_pinned(step, settings) for step in script.steps)) if settings else script


def _pinned(step: Step, settings: Mapping[str, str]) -> Step:
    match step:
        case CreateTopic():
            return replace(step, configs=_with(settings, step.configs))
        case AlterConfigs(resource_type=ResourceType.TOPIC):
            return replace(step, configs=_with(settings, step.configs))
        case IncrementalAlterConfigs(resource_type=ResourceType.TOPIC):
            return replace(step, changes=tuple(_set_again(*change, settings) for change in step.changes))
        case On() | OnEveryBroker() | Eventually() | WithUnknownTags():
            return replace(step, step=_pinned(step.step, settings))
    return step


def _with(settings: Mapping[str, str], configs: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    named = {name for name, _ in configs}
    return (*((name, value) for name, value in settings.items() if name not in named), *configs)


def _set_again(
    name: str, operation: Operation, value: str | None, settings: Mapping[str, str]
) -> tuple[str, Operation, str | None]:
    """Return a change; the deletion of a pinned setting becomes its value."""
    if operation is Operation.DELETE and name in settings:
        return name, Operation.SET, settings[name]
    return name, operation, value
