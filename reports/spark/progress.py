"""Progress of a judgement on Spark: tasks done and tasks known, rows per second, and the remaining time.

In our own driver the progress comes from Spark's status tracker; a Connect server sends it to its client. Rows are not
counted but estimated: a step declares how many rows it reads, and each finished task counts for an equal share. Stages
that Spark has not begun are unknown, so the remaining time is only that of the stages known so far.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERVAL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a step."""

    step: str
    tasks_done: int
    tasks: int
    rows: int
    """Rows of the whole step; 0 if unknown."""
    elapsed_s: float
    ui: str | None = None
    """The address of Spark's UI, if it is enabled."""

    @property
    def rows_per_s(self) -> float | None:
        """Rows per second so far."""
        if not (self.rows and self.tasks_done and self.elapsed_s > 0):
            return None
        return self.rows * self.tasks_done / self.tasks / self.elapsed_s

    @property
    def left_s(self) -> float | None:
        """The remaining time, if the remaining tasks are as fast as the completed ones."""
        if not self.tasks_done:
            return None
        return self.elapsed_s * (self.tasks - self.tasks_done) / self.tasks_done

    def __str__(self) -> str:
        parts = [f"{self.step}: {self.tasks_done}/{self.tasks} tasks"]
        if self.rows_per_s is not None:
            parts.append(f"{self.rows_per_s:,.0f} rows/s")
        if self.left_s is not None:
            parts.append(f"{self.left_s:.0f} s left")
        return ", ".join(parts) + (f" ({self.ui})" if self.ui else "")


Listener = Callable[[Progress], None]
"""Function that receives the progress, in a separate thread."""


class Watch:
    """State of a step and its stages, which are reported from different threads."""

    def __init__(
        self, on_progress: Listener, ui: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._on_progress = on_progress
        self._ui = ui
        self._clock = clock
        self._lock = threading.Lock()
        self._step, self._rows, self._began_s = "", 0, clock()
        self._stages: dict[int, tuple[int, int]] = {}
        self._last: tuple[str, int, int] | None = None

    @contextmanager
    def step(self, name: str, rows: int = 0) -> Iterator[None]:
        """Report progress under this name while the context is open.

        Nothing is reported outside of steps. `rows` is the number of rows that the step reads; 0 if unknown.
        """
        with self._lock:
            self._step, self._rows, self._began_s, self._stages = name, rows, self._clock(), {}
        try:
            yield
        finally:
            with self._lock:
                self._step = ""

    def update(self, active: dict[int, tuple[int, int]]) -> None:
        """Set the running stages: the numbers of done and of all tasks by stage id. A missing stage has ended."""
        with self._lock:
            if not self._step:
                return
            ended = {stage: (tasks, tasks) for stage, (_, tasks) in self._stages.items() if stage not in active}
            self._stages = {**ended, **active}
            done, tasks = (
                (sum(counts) for counts in zip(*self._stages.values(), strict=True)) if self._stages else (0, 0)
            )
            now = self._step, done, tasks
            if not tasks or now == self._last:
                return
            self._last = now
            progress = Progress(*now, self._rows, self._clock() - self._began_s, self._ui)
        self._on_progress(progress)


@contextmanager
def watching(spark: "SparkSession", on_progress: Listener | None) -> Iterator[Watch]:
    """Yield a watch over the jobs of a session; without a listener it costs nothing."""
    if on_progress is None:
        yield Watch(lambda _: None)
    elif type(spark).__module__.startswith("pyspark.sql.connect"):
        with _reported_by_server(spark, Watch(on_progress)) as watch:
            yield watch
    else:
        with _polling_tracker(spark, Watch(on_progress, spark.sparkContext.uiWebUrl)) as watch:
            yield watch


@contextmanager
def _reported_by_server(spark: "SparkSession", watch: Watch) -> Iterator[Watch]:
    def handle(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        watch.update({stage.stage_id: (stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()})

    spark.registerProgressHandler(handle)  # type: ignore[arg-type]  # a function will do
    try:
        yield watch
    finally:
        spark.removeProgressHandler(handle)  # type: ignore[arg-type]


@contextmanager
def _polling_tracker(spark: "SparkSession", watch: Watch) -> Iterator[Watch]:
    tracker = spark.sparkContext.statusTracker()
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(INTERVAL_S):
            found = {stage: tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()}
            watch.update({stage: (info.numCompletedTasks, info.numTasks) for stage, info in found.items() if info})

    polling = threading.Thread(target=poll, name="spark-progress", daemon=True)
    polling.start()
    try:
        yield watch
    finally:
        ended.set()
        polling.join()
