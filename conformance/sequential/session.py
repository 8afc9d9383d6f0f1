"""Execution of scripts on one target: what the target must offer, and the settings that its topics get.

`ScriptRun` executes the steps of one script, and `Routing` sends their requests.
"""

from collections.abc import Mapping
from typing import Final

from conformance.sequential import timeouts
from conformance.sequential.connections import Connections, TargetDown
from conformance.sequential.model import expected
from conformance.sequential.pinned import (
    deletes_topics,
    pinned,
    requests_of,
    with_unlimited_retention,
    without_automatic_creation,
)
from conformance.sequential.response import Response
from conformance.sequential.script_run import ScriptRun
from conformance.sequential.steps import (
    AfterCleanup,
    AwaitSessionTimeout,
    Cleanup,
    DescribeTopicPartitions,
    OffsetCommit,
    Script,
)
from conformance.sequential.symbols import (
    SESSION_TIMEOUT_MS,
    SHORT_SESSION_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    ScriptSymbols,
)
from fixtures.clients.broker_defaults import broker_settings, settings_to_pin
from fixtures.clients.raw import UnsupportedApi
from fixtures.targets.target import ExistingCluster, Target

_PAGE: Final = 100
_METADATA: Final = 100
"""More partitions, and more bytes of metadata, than any script has."""
CLEANUP_PERIOD_MAX_MS: Final = 2_000
"""Maximum period of a cleanup that a script awaits."""
_FIRST_CHECK: Final = "log.initial.task.delay.ms"
"""The time from the start of a broker to its first check of the logs."""
_CLEANER: Final = "log.cleaner.enable"
_CREATES: Final = "auto.create.topics.enable"
_DELETES: Final = "delete.topic.enable"
_SESSION_TIMEOUT_MIN: Final = "group.min.session.timeout.ms"
_SESSION_TIMEOUT_MAX: Final = "group.max.session.timeout.ms"
_SHORT_SESSION_MAX_MS: Final = 15_000
"""Longest session timeout for whose end a script waits."""
_TRANSACTION_MAX: Final = "transaction.max.timeout.ms"
_PAGE_MAX: Final = "max.request.partition.size.limit"
"""The maximum number of partitions in a DescribeTopicPartitions response."""
_METADATA_MAX: Final = "offset.metadata.max.bytes"
_SETTINGS: Final = (
    *(_CREATES, _DELETES, _SESSION_TIMEOUT_MIN, _SESSION_TIMEOUT_MAX),
    *(_TRANSACTION_MAX, _PAGE_MAX, _METADATA_MAX),
)


class Session:
    """One target and its connections, for any number of scripts. A context manager.

    :param unique: suffix that makes the names of this session's topics unique.
    """

    def __init__(self, target: Target, unique: str) -> None:
        self._target = target
        self._connections = Connections(target)
        self._unique = unique
        self._scripts_run = 0
        self._pinned_settings: Mapping[str, str] | None = None
        self._creates_topics = False
        self._deletes_topics = True
        self._page_max = _PAGE
        self._metadata_max = _METADATA
        self._session_timeout_ms = SESSION_TIMEOUT_MS
        self._short_session_timeout_ms = SHORT_SESSION_TIMEOUT_MS
        self._transaction_timeout_ms = TRANSACTION_TIMEOUT_MS
        self._opened_s = self._connections.transport.monotonic()
        self._checks_logs_from_s = 0.0
        """Time from which on a broker that was started with this session checks its logs for retention."""
        self._unfinished: list[ScriptRun] = []
        """Runs whose topics could not be deleted, because the target did not respond."""

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Delete the topics that are left. Stop at the first script whose topics cannot be deleted now either.

        On an existing cluster, `ExistingCluster.delete_topics` then deletes the rest, even if the target has stopped.
        """
        self._connections.close()
        for run in self._unfinished:
            if not run.finish():
                break
        self._connections.close()
        if isinstance(self._target, ExistingCluster):
            self._target.delete_topics([topic for run in self._unfinished for topic in run.topics])

    def reconnect(self) -> None:
        """Close the connections: the target was started again, perhaps on other ports."""
        self._connections.close()

    def pinned(self, script: Script) -> Script:
        """Return the script as this session sends it: with Kafka's defaults set where the target has others."""
        if self._pinned_settings is None:
            with self._connections.fresh_client() as client:
                node = self._connections.nodes[0].id
                self._pinned_settings = settings_to_pin(client, node)
                self._adapt_to(broker_settings(client, node, _SETTINGS))
        script = without_automatic_creation(script) if self._creates_topics else script
        return pinned(with_unlimited_retention(script), self._pinned_settings)

    def _adapt_to(self, settings: Mapping[str, str | None]) -> None:
        """Set what scripts may do, and the timeouts that they send, by the settings that a broker describes."""
        self._creates_topics = settings.get(_CREATES) == "true"
        self._deletes_topics = settings.get(_DELETES) != "false"
        known = {name: int(value) for name, value in settings.items() if value is not None and value.isdecimal()}
        lowest_ms = known.get(_SESSION_TIMEOUT_MIN, SHORT_SESSION_TIMEOUT_MS)
        highest_ms = max(lowest_ms, known.get(_SESSION_TIMEOUT_MAX, SESSION_TIMEOUT_MS))
        self._session_timeout_ms = min(max(SESSION_TIMEOUT_MS, lowest_ms), highest_ms)
        self._short_session_timeout_ms = min(max(SHORT_SESSION_TIMEOUT_MS, lowest_ms), highest_ms)
        self._page_max = known.get(_PAGE_MAX, _PAGE)
        self._metadata_max = known.get(_METADATA_MAX, _METADATA)
        self._transaction_timeout_ms = min(TRANSACTION_TIMEOUT_MS, known.get(_TRANSACTION_MAX, TRANSACTION_TIMEOUT_MS))

    def _require_settings(self, script: Script) -> None:
        """Raise `UnsupportedApi` if a request of the script is excluded by settings that a broker describes."""
        for request in requests_of(script.steps):
            if not self._deletes_topics and deletes_topics(request):
                raise UnsupportedApi(f"the broker does not delete topics: {_DELETES} is false")
            if self._page_max < _PAGE and isinstance(request, DescribeTopicPartitions):
                text = f"{_PAGE_MAX} is {self._page_max}, which limits the responses that a script compares"
                raise UnsupportedApi(text)
            if self._short_session_timeout_ms > _SHORT_SESSION_MAX_MS and isinstance(request, AwaitSessionTimeout):
                text = f"{_SESSION_TIMEOUT_MIN} is {self._short_session_timeout_ms}, too long for a script to wait for"
                raise UnsupportedApi(text)
            length = len((request.metadata or "").encode()) if isinstance(request, OffsetCommit) else 0
            if length > self._metadata_max:
                raise UnsupportedApi(f"{_METADATA_MAX} is {self._metadata_max}, and a script commits {length} bytes")

    def _require_frequent_cleanup(self, script: Script) -> None:
        """Raise `UnsupportedApi` if a cleanup that the script awaits is disabled, too rare, or has no described period.

        Also determine the time from which on the broker checks its logs for retention.
        """
        for name in sorted({str(step.by) for step in script.steps if isinstance(step, AfterCleanup)}):
            settings = self._connections.described((name, _FIRST_CHECK, _CLEANER))
            found, described_ms = settings.get(name), settings.get(_FIRST_CHECK) or ""
            first_check_ms = int(described_ms) if described_ms.isdecimal() else timeouts.FIRST_CHECK_MS
            self._checks_logs_from_s = self._opened_s + first_check_ms / 1000
            if name == Cleanup.COMPACTION and settings.get(_CLEANER) == "false":
                raise UnsupportedApi(f"the broker does not compact topics: {_CLEANER} is false")
            if found is None or not found.isdecimal():
                raise UnsupportedApi(f"the broker does not offer this cleanup: it does not describe {name}")
            if int(found) > CLEANUP_PERIOD_MAX_MS:
                raise UnsupportedApi(f"{name} is {found}, and a script awaits at most {CLEANUP_PERIOD_MAX_MS}")

    def run(self, script: Script) -> tuple[Response, ...]:
        """Send the steps in order; return one response for each. Raises `TargetDown`, `NotReady`, `UnsupportedApi`."""
        script = self.pinned(script)
        self._require_settings(script)
        self._require_frequent_cleanup(script)
        self._scripts_run += 1
        unique = f"{self._unique}-{self._scripts_run}"
        symbols = ScriptSymbols(
            unique,
            self._connections.nodes,
            self._session_timeout_ms,
            self._short_session_timeout_ms,
            self._transaction_timeout_ms,
        )
        run = ScriptRun(self._connections, symbols, self._checks_logs_from_s)
        try:
            steps = zip(script.steps, expected(script), strict=True)
            return tuple(run.step(step, expectation) for step, expectation in steps)
        except TargetDown as error:
            error.step = run.steps_begun - 1
            raise
        finally:
            if not run.finish():
                self._unfinished.append(run)
