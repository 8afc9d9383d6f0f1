"""Adaptation of scripts to brokers with other defaults for new topics, or with automatic creation of topics.

The model knows only Kafka's defaults. If a broker's default differs, every step that creates a topic or removes
settings sets Kafka's default explicitly, so that model and broker start from the same topic. Scripts are printed
without these settings.

The timestamps of a script are fixed and old. Therefore its topics have unlimited retention, unless the script sets
another one.

The model never creates a topic automatically. Metadata cannot forbid this before version 4, so older requests that name
a topic which the script has not created before, or has deleted, are sent in version 4.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from conformance.sequential.steps import (
    AlterConfigs,
    ApiKey,
    AsClient,
    CreateTopic,
    DeleteTopic,
    DeleteTopicById,
    Eventually,
    IncrementalAlterConfigs,
    LongPoll,
    Merged,
    Metadata,
    On,
    OnEveryBroker,
    Operation,
    Pipelined,
    Produce,
    RawRequest,
    ResourceType,
    Script,
    Step,
    WithUnknownTags,
)

_FORBIDDING_VERSION: Final = 4
"""Lowest version of Metadata with `allow_auto_topic_creation`."""
_UNLIMITED: Final = {"retention.ms": "-1"}
_PRODUCING: Final = (Produce, Pipelined, LongPoll)


def without_automatic_creation(script: Script) -> Script:
    """Return the script with version 4 for older Metadata requests, unless all topics that they name exist."""
    existing: set[str] = set()
    steps = []
    for step in script.steps:
        steps.append(_forbidding(step, existing))
        for request in requests_of((step,)):
            match request:
                case CreateTopic(validate_only=False):
                    existing.add(request.topic)
                case DeleteTopic():
                    existing.discard(request.topic)
                case DeleteTopicById():
                    existing.clear()  # it may be any of them
    return Script(tuple(steps))


def _forbidding(step: Step, existing: Collection[str]) -> Step:
    match step:
        case Metadata(topics=topics, version=int(version)) if version < _FORBIDDING_VERSION:
            return step if {*(topics or ())} <= {*existing} else replace(step, version=_FORBIDDING_VERSION)
        case On() | OnEveryBroker() | Eventually() | AsClient() | WithUnknownTags():
            return replace(step, step=_forbidding(step.step, existing))
    return step


def with_unlimited_retention(script: Script) -> Script:
    """Return the script. If it produces records, its topics get retention.ms=-1, unless they set another value."""
    if not any(isinstance(request, _PRODUCING) for request in requests_of(script.steps)):
        return script
    return Script(tuple(_pinned(step, _UNLIMITED) if _creates_topics(step) else step for step in script.steps))


def _creates_topics(step: Step) -> bool:
    return any(map(_creates_topics, step.steps)) if isinstance(step, Merged) else isinstance(step, CreateTopic)


def requests_of(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps that have the requests: the inner steps of `Merged`, and of steps around others, such as `On`."""
    for step in steps:
        match step:
            case On() | OnEveryBroker() | Eventually() | AsClient() | WithUnknownTags():
                yield from requests_of((step.step,))
            case Merged():
                yield from requests_of(step.steps)
            case _:
                yield step


def deletes_topics(request: Step) -> bool:
    """Whether a step is a DeleteTopics request."""
    if isinstance(request, RawRequest):
        return request.api is ApiKey.DELETE_TOPICS
    return isinstance(request, DeleteTopic | DeleteTopicById)


def pinned(script: Script, settings: Mapping[str, str]) -> Script:
    """Return the script with these settings wherever it creates a topic or removes settings."""
    return Script(tuple(_pinned(step, settings) for step in script.steps)) if settings else script


def _pinned(step: Step, settings: Mapping[str, str]) -> Step:
    match step:
        case CreateTopic():
            return replace(step, configs=_with(settings, step.configs))
        case AlterConfigs(resource_type=ResourceType.TOPIC):
            return replace(step, configs=_with(settings, step.configs))
        case IncrementalAlterConfigs(resource_type=ResourceType.TOPIC):
            return replace(step, changes=tuple(_set_again(*change, settings) for change in step.changes))
        case On() | OnEveryBroker() | Eventually() | AsClient() | WithUnknownTags():
            return replace(step, step=_pinned(step.step, settings))
        case Merged():
            return replace(step, steps=tuple(_pinned(inner, settings) for inner in step.steps))
    return step


def _with(settings: Mapping[str, str], configs: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    named = {name for name, _ in configs}
    return (*((name, value) for name, value in settings.items() if name not in named), *configs)


def _set_again(
    name: str, operation: Operation, value: str | None, settings: Mapping[str, str]
) -> tuple[str, Operation, str | None]:
    """Return a change of a setting. The deletion of a pinned setting is replaced by setting it to its pinned value."""
    if operation is Operation.DELETE and name in settings:
        return name, Operation.SET, settings[name]
    return name, operation, value
