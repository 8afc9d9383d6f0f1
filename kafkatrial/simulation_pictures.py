"""Diagram and history of a counterexample, written beside its program."""

import shutil
from pathlib import Path
from typing import Final

from chaos.campaign.counterexample import Counterexample
from chaos.simulation.diagram import diagram_of
from chaos.simulation.recording import Record
from chaos.simulation.run import run
from chaos.simulation.seeding import seeded
from linearizability.history.saving import save as save_history
from reports.picture.space_time import space_time_page

DIAGRAM_NAME: Final = "diagram.html"
HISTORY_NAME: Final = "history"


def draw_counterexample(counterexample: Counterexample, directory: Path) -> None:
    """Run the trial again with every event recorded, and write its space-time diagram and its history.

    Existing ones are replaced. Raises `OSError` and `HistoryError`.
    """
    record = Record()
    trial = counterexample.trial
    with seeded(counterexample.defect):
        outcome = run(trial, record=record)
    page = space_time_page(diagram_of(counterexample, record, trial.cluster.nodes))
    (directory / DIAGRAM_NAME).write_text(page, encoding="utf-8")
    history = directory / HISTORY_NAME
    if history.exists():
        shutil.rmtree(history)
    save_history(outcome.history, history)
