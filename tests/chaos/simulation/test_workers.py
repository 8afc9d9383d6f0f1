"""Results come in order, whoever works; and what does not end, or dies, is dealt with."""

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from chaos.simulation.workers import WorkerError, in_order


@dataclass(frozen=True)
class Squares:
    """Works on even numbers for longer than on odd ones; `stuck` never ends, `deadly` kills, `wrong` raises."""

    stuck: int = -1
    deadly: int = -1
    wrong: int = -1

    @contextmanager
    def __call__(self):
        yield self.work

    def work(self, number):
        if number == self.stuck:
            time.sleep(600)
        if number == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == self.wrong:
            raise RuntimeError("no square")
        time.sleep(0.002 * (number % 2 == 0))
        return number * number, os.getpid()


def squares(opening, numbers, **arguments):
    settings = {"workers": 2, "limit_s": 60, "overdue": lambda number: (-number, 0)} | arguments
    return in_order(opening, iter(numbers), **settings)


def children():
    return multiprocessing.active_children()


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_numbers(workers):
    results = list(squares(Squares(), range(40), workers=workers))
    assert [square for square, _ in results] == [number**2 for number in range(40)]
    assert len({pid for _, pid in results}) == workers
    assert not children()


def test_an_endless_range_is_drawn_from_only_as_far_as_needed():
    drawn = []
    numbers = (drawn.append(number) or number for number in itertools.count())
    with closing(squares(Squares(), numbers)) as results:
        assert [square for square, _ in itertools.islice(results, 5)] == [0, 1, 4, 9, 16]
    assert len(drawn) < 100
    assert not children()


def test_what_takes_too_long_is_given_up_and_the_rest_goes_on():
    results = list(squares(Squares(stuck=3), range(8), limit_s=1.5))
    assert [square for square, _ in results] == [0, 1, 4, -3, 16, 25, 36, 49]


def test_a_worker_is_replaced_after_so_many_numbers():
    results = list(squares(Squares(), range(9), workers=1, recycled_after=3))
    assert [len(list(group)) for _, group in itertools.groupby(pid for _, pid in results)] == [3, 3, 3]


def test_a_worker_that_dies_or_fails_is_an_error_that_names_the_number():
    with pytest.raises(WorkerError, match=r"seed 5: its process died with exit code -9"):
        list(squares(Squares(deadly=5), range(20)))
    with pytest.raises(WorkerError, match=r"seed 6: [^$]*RuntimeError: no square"):
        list(squares(Squares(wrong=6), range(20)))
    assert not children()


def test_workers_end_when_their_parent_is_gone(tmp_path):
    program = f"""
import itertools, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_workers import Squares, squares
if __name__ == "__main__":
    for square, pid in squares(Squares(), itertools.count()):
        print(pid, flush=True)
"""
    file = tmp_path / "parent.py"
    file.write_text(program)
    with subprocess.Popen([sys.executable, file], stdout=subprocess.PIPE, text=True) as parent:
        worker = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    psutil.wait_procs([worker], timeout=20)
    assert not worker.is_running()
