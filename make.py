"""The work of `make trial` and `make test`, after the Makefile has created `.venv`.

A step is a command; its command line is printed before it runs. Its output is printed at once, unless the step runs
beside another one; then it is printed when both have ended. If a tool (Java, Go) is missing, the steps that need
it are skipped with one line; with CI=true that is a failure, because such a line would be overlooked.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TextIO

from fixtures.targets.install import DEFAULT_KAFKA_VERSION, install
from fixtures.targets.jars import locked_versions
from fixtures.targets.java import find_java
from fixtures.targets.target import NotInstalledError, TargetError, UnknownTargetError
from kafkatrial.exit_codes import ExitCode

BIN = Path(sys.executable).parent  # noqa: TID251
KAFKA = f"apache-kafka:{DEFAULT_KAFKA_VERSION}"
"""The target on which tests run, besides the reference broker."""
OTHER_KAFKAS = tuple(f"apache-kafka:{version}" for version in locked_versions() if version != DEFAULT_KAFKA_VERSION)
"""The other versions of Apache Kafka. A test starts each of them."""
KFAKE = "docs/examples/kfake"
CI_FINDING = "power-cut"
"""Part of the names of the findings that CI reproduces. `make nightly` reproduces all, and runs generated rounds."""
IN_PARALLEL = (f"--numprocesses={len(os.sched_getaffinity(0)) + 1}", "--dist=loadfile")
"""One process more than there are cores, because about half of the tests wait for clusters.

The tests of a file run in the same process, so that the clusters of the file are started once.
"""
SLOWEST = "--durations=30"
SUITE_TIMEOUT = "--timeout=3000"
"""Limit for a requirement, in seconds. The first one also waits for others, which are checked side by side."""
SAMPLE = "--sample"
"""Run one part of the tests marked `sampled`. The part changes daily; `make nightly` runs all of them."""
FAILED = Path(".pytest_cache/make/v/cache/lastfailed")
CACHE = f"--override-ini=cache_dir={FAILED.parents[2]}"
"""A separate cache for the tests, because the suite runs at the same time and uses the default cache."""
TESTS_FAILED = 1
"""pytest's exit code if all tests ran and some failed."""
REPEATED_MAX = 3
"""The maximum number of failed tests that are repeated, as in the build of Apache Kafka (`maxTestRetryFailures`)."""


class Stop(Exception):  # noqa: N818  not always an error
    """Signal to end with an exit code. The reason has been printed already."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Tools:
    """Whether this machine has the tools that are not in `.venv`.

    :ivar kafka: whether there is a Java, with which Apache Kafka and Spark run.
    """

    kafka: bool
    toxiproxy: bool

    @property
    def deselected_markers(self) -> tuple[str, ...]:
        """The markers of tests that cannot run here."""
        without_java = () if self.kafka else ("java", "spark")
        return without_java if self.toxiproxy else (*without_java, "toxiproxy")


def main() -> int:
    """Run the task of the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="make.py", description=__doc__)
    tasks = parser.add_subparsers(dest="task", required=True)
    tasks.add_parser("test", help="everything that CI runs")
    trial = tasks.add_parser("trial", help="the suite on the reference broker, and on Apache Kafka with --kafka")
    trial.add_argument("--kafka", metavar="VERSION", help="for example 4.3.1")
    arguments = parser.parse_args()
    try:
        if arguments.task == "test":
            test()
        else:
            run_trial(arguments.kafka)
    except Stop as stop:
        return stop.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def run_trial(kafka_version: str | None) -> None:
    """Run the suite on the reference broker and, side by side, on Apache Kafka if a version is given."""
    targets = ["reference"]
    if kafka_version:
        targets.append(f"apache-kafka:{kafka_version}")
        if not install_kafka(targets[-1], needed=True):
            raise Stop(ExitCode.USAGE)
    install_toxiproxy(needed=False)
    step("kafkatrial", "run", *(f"--target={target}" for target in targets))


def test() -> None:
    """Run the linters, the tests, and the suite on real targets through pytest."""
    is_ci = os.environ.get("CI") == "true"
    with ThreadPoolExecutor(1) as pool:  # Go compiles while the programs in Java are downloaded
        toxiproxy = pool.submit(install_go_programs, needed=is_ci)
        lint()
        tools = Tools(kafka=install_java_programs(needed=is_ci), toxiproxy=toxiproxy.result())
    if is_ci and tools.deselected_markers:  # the missing tool has been printed
        raise Stop(ExitCode.USAGE)
    targets = ["reference", KAFKA] if tools.kafka else ["reference"]
    on_targets = [f"--target={target}" for target in targets]
    suite = [
        ["pytest", "-m", "conformance", SUITE_TIMEOUT, *on_targets],
        ["pytest", "-m", "chaos", "-k", CI_FINDING, *on_targets],
    ]
    with running_beside(suite):
        run_tests(_deselecting(tools.deselected_markers))


def lint() -> None:
    """Run the linters."""
    step("ruff", "check", ".")
    step("ruff", "format", "--check", ".")
    step("mypy")
    step("lint-imports")
    step("python", "-m", "tools.language")


def install_java_programs(*, needed: bool) -> bool:
    """Install each version of Apache Kafka, and Spark. Return False if there is no Java."""
    if not install_kafka(KAFKA, needed=needed):
        return False
    for target in OTHER_KAFKAS:
        install_kafka(target, needed=needed)
    step("kafkatrial", "targets", "install", "spark")
    return True


def install_go_programs(*, needed: bool) -> bool:
    """Install Toxiproxy and build kfake. Return False if there is neither Toxiproxy nor Go."""
    is_installed = install_toxiproxy(needed=needed)
    build_kfake(needed=needed)
    return is_installed


def run_tests(selection: Sequence[str]) -> None:
    """Run the tests. If at most `REPEATED_MAX` tests fail, repeat these once, one after the other.

    Raises `Stop` if more tests fail, if a repeated test fails again, or if pytest fails for another reason. A test of
    processes and real time may fail because the machine was busy. A test that passes when it is repeated is printed as
    flaky. A flaky test is a defect too, but not one of the change under test.
    """
    FAILED.unlink(missing_ok=True)
    code = _run(["pytest", CACHE, SAMPLE, *IN_PARALLEL, SLOWEST, *selection], sys.stdout)
    failed = list(json.loads(FAILED.read_text())) if code == TESTS_FAILED and FAILED.exists() else []
    if code and not 0 < len(failed) <= REPEATED_MAX:
        raise Stop(code)
    if failed:
        say(f"failed, and repeated alone: {', '.join(failed)}")
        step("pytest", CACHE, "--last-failed", *selection)
        say(f"flaky, passed when repeated: {', '.join(failed)}")


def install_kafka(target: str, *, needed: bool) -> bool:
    """Install Apache Kafka. Return False if there is no Java, or if the version of the target is unknown."""
    try:
        java = find_java()
        say(f"Java {java.version}: {install(target, _progress)}")
    except (NotInstalledError, UnknownTargetError) as error:
        return _missing(error, f"tests on {target} and on Spark", needed=needed)
    except TargetError as error:
        say(f"failed: {error}")
        raise Stop(ExitCode.INTERNAL) from error
    return True


def install_toxiproxy(*, needed: bool) -> bool:
    """Install Toxiproxy. Return False if there is neither Toxiproxy nor Go."""
    try:
        say(f"Toxiproxy: {install('toxiproxy', _progress)}")
    except NotInstalledError as error:
        return _missing(error, "tests that cut links", needed=needed)
    except TargetError as error:
        say(f"failed: {error}")
        raise Stop(ExitCode.INTERNAL) from error
    return True


def build_kfake(*, needed: bool) -> None:
    """Build the broker of the example in docs/targets.md. Without Go, skip it, or raise `Stop` if it is needed."""
    if go := shutil.which("go"):
        say(f"building {KFAKE} with Go")
        if subprocess.call([go, "build", "-C", KFAKE, "."]):
            raise Stop(ExitCode.INTERNAL)
        return
    _missing(NotInstalledError("Go is not on PATH"), "the test of the example in docs/targets.md", needed=needed)
    if needed:
        raise Stop(ExitCode.USAGE)


def _missing(error: Exception, skipped: str, *, needed: bool) -> bool:
    """Print why a tool is missing, and return False."""
    say(f"failed: {error}" if needed else f"skipped: {skipped}: {error}")
    return False


def _deselecting(markers: tuple[str, ...]) -> list[str]:
    return ["-m", " and ".join(f"not {marker}" for marker in ("nightly", *markers))]


def _progress(text: str, done: int, total: int) -> None:
    if done in {0, total} or done % 25 == 0:
        say(f"{text} ({done}/{total})")


@contextmanager
def running_beside(commands: Sequence[Sequence[str]]) -> Iterator[None]:
    """Run commands one after the other while the body runs. After both have ended, print the output of the commands.

    The commands mostly wait for clusters, as the tests do; therefore two cores suffice for both. Raises `Stop` if a
    command fails.
    """
    for command in commands:
        say(f"{shlex.join(command)}, beside the next step")
    is_over = Event()
    with tempfile.TemporaryFile("w+", errors="replace") as output, ThreadPoolExecutor(1) as pool:
        beside = pool.submit(_run_held_back, commands, output, is_over)
        try:
            yield
        except BaseException:
            is_over.set()
            raise
        finally:
            code = beside.result()
            output.seek(0)
            shutil.copyfileobj(output, sys.stdout)
            sys.stdout.flush()
    if code:
        raise Stop(code)


def _run_held_back(commands: Sequence[Sequence[str]], output: TextIO, is_over: Event) -> int:
    """Run commands until one fails or `is_over` is set. Return the exit code of the failed command, or else 0."""
    for command in commands:
        if is_over.is_set():
            break
        if code := _run(command, output):
            return code
    return 0


def step(*command: str) -> None:
    """Run a tool; raise `Stop` with its exit code if it fails."""
    if code := _run(command, sys.stdout):
        raise Stop(code)


def _run(command: Sequence[str], output: TextIO) -> int:
    """Run a tool, and write its output to `output`. Return the exit code with which make must end, or 0."""
    say(shlex.join(command), output)
    began = time.monotonic()
    is_held_back = output is not sys.stdout
    code = subprocess.call(
        [BIN / command[0], *command[1:]],
        stdout=output if is_held_back else None,
        stderr=subprocess.STDOUT if is_held_back else None,
    )
    if code:
        say(f"failed with {code}: {command[0]}", output)
        return code if code > 0 else ExitCode.INTERRUPTED
    say(f"{command[0]} took {time.monotonic() - began:.0f} s", output)
    return 0


def say(line: str, output: TextIO | None = None) -> None:
    """Write a line of progress, and flush it, so that it precedes the output of the next command."""
    output = output or sys.stdout
    output.write(f"make: {line}\n")
    output.flush()


if __name__ == "__main__":
    sys.exit(main())
