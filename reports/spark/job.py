"""The program for `spark-submit`: judge run directories that every executor can read.

    spark-submit --master MASTER --py-files kafkatrial.zip kafkatrial_job.py RUN…

Prints a line of JSON for each run, as `kafkatrial check --json` does, with the run's path. The exit codes are those of
`kafkatrial check`: 0 for ok, 1 for a violation, 3 for a failed job, 4 for invalid input (a damaged history, a path that
is not a run) or if Spark cannot be used, 6 for unknown. `kafkatrial spark-job DIR` writes the two files.
"""

import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from linearizability.history.errors import HistoryError, HistoryNotWrittenError
from linearizability.judgement import Verdict
from linearizability.printable import one_line
from reports.spark.check import judge_with_spark
from reports.spark.errors import EngineFailedError, EngineUnavailableError
from reports.spark.session import spark_session

_FAILED: Final = 3
_USAGE: Final = 4
_CODES: Final = {Verdict.OK: 0, Verdict.UNKNOWN: 6, Verdict.VIOLATION: 1}
"""Exit codes, from the best verdict to the worst."""


def main(runs: Sequence[str]) -> int:
    """Judge every run, print the judgements, and return the exit code."""
    if not runs:
        return _print_error("name at least one run directory", _USAGE)
    found = {Verdict.OK}
    try:
        with spark_session():
            for run in runs:
                judgement = judge_with_spark(Path(run))
                found.add(judgement.verdict)
                sys.stdout.write(json.dumps({"run": run, **judgement.as_json()}) + "\n")
    except (HistoryNotWrittenError, EngineFailedError) as error:
        return _print_error(str(error), _FAILED)
    except (HistoryError, EngineUnavailableError) as error:
        return _print_error(str(error), _USAGE)
    except Exception:  # noqa: BLE001 - Python would exit with 1, which means a violation
        traceback.print_exc()
        return _FAILED
    return next(code for verdict, code in reversed(_CODES.items()) if verdict in found)


def _print_error(line: str, code: int) -> int:
    sys.stderr.write(f"kafkatrial: {one_line(line)}\n")
    return code
