"""Residue of a killed command: its run is unfinished, and the next command removes its temporary folders."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until

KAFKATRIAL = Path(sys.executable).with_name("kafkatrial")
COMMANDS = {
    "broker": ["broker", "--nodes", "1", "--exit-with-stdin"],
    "run": ["run", "--nodes", "1", "--out", "out"],
}


def folders(temporary):
    return [path for path in temporary.glob("kafkatrial-*") if path.is_dir()]


def start(command, environment, cwd):
    return subprocess.Popen(
        [KAFKATRIAL, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=cwd,
    )


@pytest.mark.slow
def test_a_run_that_is_killed_before_its_first_verdict_is_unfinished(tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with start(COMMANDS["run"], {**os.environ, "TMPDIR": str(temporary)}, tmp_path) as killed:
        wait_until(lambda: any(temporary.glob("kafkatrial-*/1/data/*")))
        children = psutil.Process(killed.pid).children(recursive=True)
        killed.kill()
    psutil.wait_procs(children, 60)
    check = subprocess.run([KAFKATRIAL, "check", tmp_path / "out"], check=False, capture_output=True, text=True)
    assert (check.returncode, "unfinished: 0 of " in check.stdout) == (6, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_folders_of_a_killed_command_are_removed_at_the_next_start(name, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with start(COMMANDS[name], environment, tmp_path) as killed:
        wait_until(lambda: any(temporary.glob("kafkatrial-*/1/data/*")))
        children = psutil.Process(killed.pid).children(recursive=True)
        killed.kill()
    psutil.wait_procs(children, 60)
    assert folders(temporary)
    with start(COMMANDS["broker"], environment, tmp_path) as following:
        following.stdin.close()
        following.wait(120)
    assert folders(temporary) == []
