"""Pictures of violations, one page each: for `kafkatrial check --picture`, and in a run's `failures/<n>/`.

A page shows the first piece of evidence of one anomaly. The page of the first violation has the requested name. In the
names of further pages `-2`, `-3` and so on follow the stem.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kafkatrial.errors import UsageError
from linearizability.check_file import FileJudgement
from linearizability.finding import Finding
from linearizability.history.reader import History, open_history
from linearizability.history.run import RUN_FILE, RunInfo
from linearizability.judgement import Anomaly, Judgement, Verdict
from reports.picture.page import anomaly_page, verification_page
from reports.results import Results

FILE_NAME = "picture.html"


def picture_histories(file: Path, histories: Mapping[str, Path], judgements: Mapping[str, Judgement]) -> list[Path]:
    """Write a page for each violation in some histories; return the paths.

    Raises:
        UsageError: a page cannot be written.
        HistoryError: a history cannot be read.
    """
    return _write(
        file,
        (page for name, found in judgements.items() for page in _pages(open_history(histories[name]), found.anomalies)),
    )


def picture_file(file: Path, found: FileJudgement) -> list[Path]:
    """Write a page for each violation in an imported history file (with a model: the first one). Return the paths."""
    if found.verification is not None:
        is_violation = found.verification.verdict is Verdict.VIOLATION
        return _write(file, [verification_page(found.verification)] if is_violation else [])
    return _write(file, _pages(found.history, found.judgement.anomalies) if found.history is not None else [])


def picture_failures(results: Results, run_dir: Path) -> None:
    """Write the pages of each failure that has a history into the failure's directory.

    Raises what `picture_histories` raises.
    """
    for finding in results.outcomes:
        if finding.failure_dir and finding.judgement is not None:
            anomalies = finding.judgement.anomalies
            history = _history_of(finding, run_dir)
            if history is not None:
                _write(run_dir / "failures" / Path(finding.failure_dir).name / FILE_NAME, _pages(history, anomalies))


def _pages(history: History, anomalies: Iterable[Anomaly]) -> Iterator[str]:
    for anomaly in anomalies:
        if anomaly.verdict is Verdict.VIOLATION and anomaly.evidence:
            yield anomaly_page(history, anomaly.name, anomaly.evidence[0])


def _write(file: Path, pages: Iterable[str]) -> list[Path]:
    written = []
    for number, page in enumerate(pages, start=1):
        path = file if number == 1 else file.with_stem(f"{file.stem}-{number}")
        try:
            if path.is_fifo():  # opening it would wait for a reader
                raise UsageError(f"cannot write the picture {path}: a FIFO, not a regular file")
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write the picture {path}: {error.strerror}") from error
        written.append(path)
    return written


def _history_of(finding: Finding, run_dir: Path) -> History | None:
    """Return a history of the target with all topics of a failure's evidence; None if there is none.

    The history of the failed requirement is preferred to those of other requirements.
    """
    target_dir = run_dir / "histories" / finding.target.replace(":", "-")
    requirement_dir = target_dir / finding.requirement.replace("/", "-")
    assert finding.judgement is not None
    topics = {row.topic for anomaly in finding.judgement.anomalies for row in anomaly.evidence if row.topic is not None}
    for directory in (requirement_dir, *sorted(target_dir.glob("*"))):
        if (directory / RUN_FILE).exists() and topics <= RunInfo.read(directory).topics.keys():
            return open_history(directory)
    return None
