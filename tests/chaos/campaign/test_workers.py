"""Process pool of a campaign: results in order for any number of workers; a worker that hangs or dies is replaced."""

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from chaos.campaign.workers import Job, WorkerError, in_order
from tests.waiting import wait_until


@dataclass(frozen=True)
class Squares:
    """Work that squares numbers. The number `stuck` hangs, `deadly` kills its worker, and `wrong` raises an error."""

    stuck: int = -1
    deadly: int = -1
    wrong: int = -1

    def __call__(self, number):
        if number == self.stuck:
            time.sleep(600)
        if number == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == self.wrong:
            raise RuntimeError("no square")
        time.sleep(0.002 * (number % 2 == 0))  # so that results arrive out of order
        return number * number, os.getpid()


@dataclass(frozen=True)
class TouchFiles:
    """Work that writes a file for each number, and hangs for 0."""

    directory: str

    def __call__(self, number):
        if number == 0:
            time.sleep(600)
        Path(self.directory, f"done-{number}").touch()
        return number


def stop_and_square(number):
    """Square a number. For 1, stop this process first; a shell continues it after 1.5 s."""
    if number == 1:
        subprocess.Popen(["/bin/sh", "-c", f"sleep 1.5; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)
    return number * number, os.getpid()


def spin(number):
    """Use processor time without end."""
    while True:
        number += 1


def results_of(work, numbers, *, workers=2, **settings):
    """Return the results of the work. The result of an overdue number n is -n, with process id 0."""
    settings = {"limit_s": 60, "overdue": lambda number: (-number, 0)} | settings
    return in_order(Job(work, **settings), iter(numbers), workers)


def children():
    return multiprocessing.active_children()


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_numbers(workers):
    results = list(results_of(Squares(), range(40), workers=workers))
    assert [square for square, _ in results] == [number**2 for number in range(40)]
    assert len({pid for _, pid in results}) == workers
    assert not children()


def test_an_endless_range_is_read_only_as_far_as_needed():
    taken = []
    numbers = (taken.append(number) or number for number in itertools.count())
    with closing(results_of(Squares(), numbers)) as results:
        assert [square for square, _ in itertools.islice(results, 5)] == [0, 1, 4, 9, 16]
    assert len(taken) < 100
    assert not children()


def test_an_item_that_takes_too_long_is_cancelled_and_the_rest_continues():
    results = list(results_of(Squares(stuck=3), range(8), limit_s=0.2))
    assert [square for square, _ in results] == [0, 1, 4, -3, 16, 25, 36, 49]


def test_an_item_that_uses_too_much_processor_time_is_cancelled():
    assert list(results_of(spin, [3], limit_s=0.5)) == [(-3, 0)]


def test_an_item_whose_process_is_stopped_for_longer_than_the_limit_is_not_cancelled():
    results = list(results_of(stop_and_square, range(3), workers=1, limit_s=1.0))
    assert [square for square, _ in results] == [0, 1, 4]


def test_a_worker_is_replaced_after_a_number_of_items():
    results = list(results_of(Squares(), range(9), workers=1, recycled_after=3))
    assert [len(list(group)) for _, group in itertools.groupby(pid for _, pid in results)] == [3, 3, 3]


def test_a_worker_that_dies_or_fails_is_an_error_that_names_the_number():
    with pytest.raises(WorkerError, match=r"seed 5: its process died with exit code -9"):
        list(results_of(Squares(deadly=5), range(20)))
    with pytest.raises(WorkerError, match=r"seed 6: [^$]*RuntimeError: no square"):
        list(results_of(Squares(wrong=6), range(20)))
    assert not children()


def test_workers_end_when_their_parent_is_killed(tmp_path):
    program = f"""
import itertools, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_workers import Squares, results_of
if __name__ == "__main__":
    for square, pid in results_of(Squares(), itertools.count()):
        print(pid, flush=True)
"""
    file = tmp_path / "parent.py"
    file.write_text(program)
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE, text=True) as parent:
        parent.stdout.readline()
        workers = psutil.Process(parent.pid).children(recursive=True)  # psutil omits a worker that ends meanwhile
        parent.kill()
    assert workers
    assert psutil.wait_procs(workers, timeout=20)[1] == []


def test_a_process_that_dies_may_be_a_result():
    results = list(results_of(Squares(deadly=5), range(8), died=lambda number, code: (code, number)))
    assert [square for square, _ in results] == [0, 1, 4, 9, 16, -9, 36, 49]


def test_forked_workers_share_preloaded_modules_and_each_item_has_a_new_worker():
    results = list(results_of(Squares(), range(6), workers=2, recycled_after=1, preloaded=["json"]))
    assert [square for square, _ in results] == [number**2 for number in range(6)]
    assert len({pid for _, pid in results}) == 6


@pytest.mark.parametrize("preloaded", [(), ("json",)], ids=["spawned", "forked"])
def test_ctrl_c_yields_the_received_results_and_interrupts_no_worker(tmp_path, preloaded):
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_workers import TouchFiles, results_of
if __name__ == "__main__":
    try:
        for number in results_of(TouchFiles({str(tmp_path)!r}), range(40), preloaded={preloaded}):
            print(number, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""
    file = tmp_path / "parent.py"
    file.write_text(program)
    with subprocess.Popen(
        [sys.executable, file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        wait_until(lambda: len(list(tmp_path.glob("done-*"))) == 39)
        os.killpg(parent.pid, signal.SIGINT)
        out, err = parent.communicate(timeout=60)
    assert out.splitlines()[-1] == "interrupted"
    assert out.splitlines()[:30] == [str(number) for number in range(1, 31)]
    assert "Traceback" not in err
