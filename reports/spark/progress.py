"""How far a judgement on Spark is: tasks done of those that are known, rows a second, and the time that is left.

On a driver of our own Spark's status tracker is asked; a Connect server tells its client. Rows are the plan's: a step
says how many it reads, and a task stands for its share of them. Stages that Spark has not begun are not counted, so
the time left is that of the step's stages so far.
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
    """Where a step stands."""

    step: str
    tasks_done: int
    tasks: int
    rows: int
    """Of the whole step; 0: not known."""
    elapsed_s: float
    ui: str | None = None
    """The address of Spark's own pages, where they are on."""

    @property
    def rows_per_s(self) -> float | None:
        """So far."""
        if not (self.rows and self.tasks_done and self.elapsed_s > 0):
            return None
        return self.rows * self.tasks_done / self.tasks / self.elapsed_s

    @property
    def left_s(self) -> float | None:
        """If what is left goes as fast as what is done."""
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


Tell = Callable[[Progress], None]
"""Called from a thread of its own."""


class Watch:
    """Knows the step and its stages; told of stages from another thread than of steps."""

    def __init__(self, tell: Tell, ui: str | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._ui = ui
        self._clock = clock
        self._lock = threading.Lock()
        self._step, self._rows, self._began_s = "", 0, clock()
        self._stages: dict[int, tuple[int, int]] = {}
        self._last: tuple[str, int, int] | None = None

    @contextmanager
    def step(self, name: str, rows: int = 0) -> Iterator[None]:
        """What is done inside; nothing is told outside of steps."""
        with self._lock:
            self._step, self._rows, self._began_s, self._stages = name, rows, self._clock(), {}
        try:
            yield
        finally:
            with self._lock:
                self._step = ""

    def saw(self, active: dict[int, tuple[int, int]]) -> None:
        """The stages that run now: tasks done and tasks, by stage id. One that was seen and runs no more is done."""
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
        self._tell(progress)


@contextmanager
def watching(spark: "SparkSession", tell: Tell | None) -> Iterator[Watch]:
    """A watch over the jobs of a session; without anybody to tell it costs nothing."""
    if tell is None:
        yield Watch(lambda _: None)
    elif type(spark).__module__.startswith("pyspark.sql.connect"):
        with _told_by_server(spark, Watch(tell)) as watch:
            yield watch
    else:
        with _asking_tracker(spark, Watch(tell, spark.sparkContext.uiWebUrl)) as watch:
            yield watch


@contextmanager
def _told_by_server(spark: "SparkSession", watch: Watch) -> Iterator[Watch]:
    def handle(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        watch.saw({stage.stage_id: (stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()})

    spark.registerProgressHandler(handle)  # type: ignore[arg-type]  # a function will do
    try:
        yield watch
    finally:
        spark.removeProgressHandler(handle)  # type: ignore[arg-type]


@contextmanager
def _asking_tracker(spark: "SparkSession", watch: Watch) -> Iterator[Watch]:
    tracker = spark.sparkContext.statusTracker()
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(INTERVAL_S):
            found = {stage: tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()}
            watch.saw({stage: (info.numCompletedTasks, info.numTasks) for stage, info in found.items() if info})

    asking = threading.Thread(target=ask, name="spark-progress", daemon=True)
    asking.start()
    try:
        yield watch
    finally:
        ended.set()
        asking.join()
