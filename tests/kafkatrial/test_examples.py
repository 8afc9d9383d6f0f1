"""Programs under `examples/clients` and findings under `examples/fuzz`, started as documented."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kafkatrial.exit_codes import ExitCode

_TARGETS = ["reference", pytest.param("apache-kafka:4.3.1", marks=pytest.mark.java)]


@pytest.mark.nightly
@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize(("delivery_timeout_s", "is_duplicated"), [(20, True), (120, False)])
def test_an_expired_batch_is_duplicated_only_if_the_delivery_timeout_is_short(
    target, delivery_timeout_s, is_duplicated
):
    options = ["--delivery-timeout", str(delivery_timeout_s)]
    command = [sys.executable, "examples/clients/expired_batch.py", target, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    counts = json.loads(done.stdout)
    assert (counts["duplicated"] > 0, done.returncode) == (is_duplicated, int(is_duplicated))
    assert counts["outcomes"].get("_MSG_TIMED_OUT", 0) > 0 or not is_duplicated


@pytest.mark.parametrize(
    ("program", "target", "differences"),
    [
        ("different_responses", "reference", 0),
        ("rejected_partitions", "reference", 0),
        pytest.param("different_responses", "apache-kafka:4.3.1", 5, marks=[pytest.mark.java, pytest.mark.nightly]),
        pytest.param("different_responses", "apache-kafka:3.9.2", 5, marks=[pytest.mark.java, pytest.mark.nightly]),
        pytest.param("rejected_partitions", "apache-kafka:4.3.1", 1, marks=[pytest.mark.java, pytest.mark.nightly]),
    ],
)
def test_responses_that_differ_are_marked(program, target, differences):
    command = [sys.executable, f"examples/clients/{program}.py", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout.count("\n   ! "), done.returncode) == (differences, int(differences > 0)), done.stderr


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("reference", 0),
        pytest.param("apache-kafka:4.3.1", 1, marks=[pytest.mark.java, pytest.mark.nightly]),
        pytest.param("apache-kafka:3.9.2", 1, marks=[pytest.mark.java, pytest.mark.nightly]),
    ],
)
def test_requests_that_are_costly_to_parse(target, code):
    command = [sys.executable, "examples/clients/parsed_requests.py", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    assert done.stdout.count(" times: a response after ") == 5
    assert done.stdout.endswith("the broker ended\n" if code else "the broker runs\n")


@pytest.mark.nightly
@pytest.mark.java
@pytest.mark.parametrize("target", ["apache-kafka:4.3.1", "apache-kafka:3.9.2"])
def test_a_damaged_subscription_blocks_a_group(target):
    command = [sys.executable, "examples/clients/damaged_subscription.py", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout.count("no response in 30 s"), done.returncode) == (2, 1), done.stderr


@pytest.mark.parametrize("file", sorted(Path("examples/fuzz").iterdir()), ids=lambda file: file.stem)
@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("reference", ExitCode.OK),
        pytest.param("apache-kafka:4.3.1", ExitCode.VIOLATION, marks=[pytest.mark.java, pytest.mark.nightly]),
        pytest.param("apache-kafka:3.9.2", ExitCode.VIOLATION, marks=[pytest.mark.java, pytest.mark.nightly]),
    ],
)
def test_requests_that_end_a_node_of_apache_kafka(file, target, code):
    command = [sys.executable, "-m", "kafkatrial", "fuzz", "--replay", file, "--target", target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
