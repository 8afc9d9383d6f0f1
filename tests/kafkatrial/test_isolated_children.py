"""Isolation of child processes from the user's project: no child process imports a module of the project.

The project of these tests has hostile modules. Their names are those of modules of kafkatrial, of its dependencies and
of the standard library. A hostile module that is imported writes its name to a file and raises an error.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import chaos.targets  # noqa: F401 - registers `defective`
from chaos.campaign.workers import Job, in_order
from chaos.mutants.trial import CLEAN, Candidate, try_mutants
from fixtures.disk.fuse_disk import FuseDisk
from fixtures.disk.kinds import DiskKind, why_no_disk
from fixtures.network import namespace
from fixtures.targets.catalogue import parse_target
from fixtures.targets.cleanup import Cleanup
from fixtures.targets.processes import GuardedProcess
from kafkatrial.cluster import KafkaCluster
from linearizability.isolated_python import module_command, script_command
from linearizability.shards.running import Processes

pytestmark = pytest.mark.sampled(3)

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
OURS = ("chaos", "conformance", "fixtures", "kafkatrial", "linearizability", "reference_broker", "reports")
DEPENDENCIES = ("confluent_kafka", "crc32c", "docker", "duckdb", "hypothesis", "kio", "mfusepy", "numpy", "pyarrow")
IMPORTED_FILE = "imported"
HOSTILE_SOURCE = """
with open({imported_file!r}, "a") as file:
    file.write(__name__ + "\\n")
raise RuntimeError(__name__ + " is the user's")
"""


def enter_project(path, monkeypatch, packages, modules):
    """Write a project with hostile packages and modules, and make it the working directory."""
    source = HOSTILE_SOURCE.format(imported_file=str(path / IMPORTED_FILE))
    for package in packages:
        (path / package).mkdir()
        (path / package / "__init__.py").write_text(source)
    for module in modules:
        (path / f"{module}.py").write_text(source)
    monkeypatch.chdir(path)
    # Without the empty entry, which is the working directory, this process does not import the modules either.
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delenv("PYTHONPATH", raising=False)


def imported(path):
    file = path / IMPORTED_FILE
    return file.read_text().split() if file.exists() else []


@pytest.fixture
def everything_hostile(tmp_path, monkeypatch):
    """Enter a project with hostile modules for all packages of kafkatrial, dependencies and standard modules."""
    enter_project(tmp_path, monkeypatch, OURS, {*sys.stdlib_module_names, *DEPENDENCIES})
    yield tmp_path
    assert imported(tmp_path) == []


@pytest.fixture(params=[None, ".", "{project}"], ids=["no-path", "dot", "absolute"])
def hostile(request, tmp_path, monkeypatch):
    """Enter a project that may also be in PYTHONPATH.

    Python imports some modules before kafkatrial can remove the project from the path. The project does not have these.
    """
    enter_project(tmp_path, monkeypatch, set(OURS) - {"kafkatrial", "linearizability"}, {"struct", *DEPENDENCIES})
    if request.param is not None:
        monkeypatch.setenv("PYTHONPATH", request.param.format(project=tmp_path) + os.pathsep)
    yield tmp_path
    assert imported(tmp_path) == []


@pytest.fixture
def history(everything_hostile):
    """Copy a history into the project, because Spark writes a log file beside the history."""
    return shutil.copytree(ROOT / "examples" / "histories" / "lost-write", everything_hostile / "lost-write")


def run(*command, expected=0):
    done = subprocess.run(
        list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == expected, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_nodes_of_the_reference_broker(everything_hostile):
    with parse_target("reference", nodes=1) as target:
        assert target.nodes


def test_nodes_with_a_defect(everything_hostile):
    with parse_target("defective:flush-no-directory", nodes=1) as target:
        assert target.nodes


def test_a_cluster_for_a_users_tests(everything_hostile):
    with KafkaCluster.start(nodes=1) as cluster:
        assert len(cluster.nodes) == 1


def test_a_guarded_process(everything_hostile):
    command = module_command(ROOT, "json.tool", "--help")
    process = GuardedProcess(command, everything_hostile / "log")
    assert process.end_within(60)
    assert process.exit_status == 0


def test_a_cleanup_command(everything_hostile):
    written = everything_hostile / "written"
    cleanup = Cleanup(["touch", str(written)])
    cleanup.run()
    assert written.exists()


def test_a_disk_in_fuse(everything_hostile):
    if reason := why_no_disk(DiskKind.FUSE):
        pytest.skip(reason)
    (everything_hostile / "mounted").mkdir()
    disk = FuseDisk(everything_hostile / "kept", everything_hostile / "mounted", everything_hostile / "disk.log")
    try:
        disk.mount()
        assert list((everything_hostile / "mounted").iterdir()) == []
    finally:
        disk.unmount()


def test_the_probe_for_network_namespaces(everything_hostile):
    expected = namespace.why_no_namespace()
    namespace.why_no_namespace.cache_clear()
    assert namespace.why_no_namespace() == expected


def test_workers_of_the_checkers(everything_hostile):
    with Processes(2) as processes:
        assert list(processes([os.getpid, os.getpid])) != [os.getpid()] * 2


@pytest.mark.slow
def test_the_worker_of_a_mutant(everything_hostile):
    (result,) = try_mutants(iter([Candidate(CLEAN, ["1"])]), 0.1, workers=1)
    assert (result.killed_by, result.attempts) == ("", 1)


def test_workers_of_the_simulation(everything_hostile):
    results = in_order(Job(str, limit_s=120, overdue=str), iter(range(4)), workers=2)
    assert list(results) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("program", [[BIN / "kafkatrial"], [sys.executable, "-m", "kafkatrial"]], ids=["script", "-m"])
def test_the_requirements_command(hostile, program):
    assert "produce/" in run(*program, "requirements")


def test_a_run(hostile):
    run(BIN / "kafkatrial", "run", "--nodes", "1", "--seed", "1", "--out", hostile / "out", "produce/offsets-are-dense")


def test_a_campaign_of_the_simulation(everything_hostile):
    run(BIN / "kafkatrial", "simulate", "--seeds", "1..2", "--workers", "2", "--out", everything_hostile / "out")


@pytest.mark.slow
def test_the_prober_of_a_fuzzing_session(everything_hostile):
    out = everything_hostile / "out"
    run(BIN / "kafkatrial", "fuzz", "--seed", "1", "--seconds", "5", "--response-ms", "9000", "--out", out)
    assert json.loads((out / "summary.json").read_text())["probes"] > 0


def test_the_broker_command(hostile):
    assert "control http://127.0.0.1" in run(BIN / "kafkatrial", "broker", "--exit-with-stdin", "--nodes", "1")


@pytest.mark.parametrize("marker", ["chaos", "conformance"])
def test_the_pytest_plugin(everything_hostile, marker):
    (everything_hostile / "tests").mkdir()
    out = run(BIN / "pytest", "-q", "-m", marker, "--collect-only", "-p", "no:cacheprovider", "--rootdir", ".", "tests")
    assert f"{marker}::" in out


@pytest.mark.spark
@pytest.mark.slow
def test_spark(history):
    out = run(BIN / "kafkatrial", "check", history, "--engine", "spark", "--json", expected=1)
    assert json.loads(out)["verdict"] == "violation"


@pytest.mark.spark
@pytest.mark.slow
def test_a_spark_job(history, monkeypatch):
    home = Path(pytest.importorskip("pyspark").__file__).parent
    for name, value in {
        "SPARK_HOME": home,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }.items():
        monkeypatch.setenv(name, str(value))
    run(BIN / "kafkatrial", "spark-job", ".")
    submit = home / "bin" / "spark-submit"
    assert '"violation"' in run(submit, "--py-files", "kafkatrial.zip", "kafkatrial_job.py", history, expected=1)


@pytest.mark.parametrize("command", [[BIN / "kafkatrial"], [sys.executable, "-P", "-m", "kafkatrial"]], ids=str)
def test_no_module_of_the_working_directory_is_imported(tmp_path, monkeypatch, command):
    (tmp_path / "kafkatrial").mkdir()
    for name in ("types.py", "typer.py", "rich/__init__.py", "kafkatrial/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path)
    assert run(*command, "--version").startswith("kafkatrial ")


def test_python_m_imports_no_other_package_of_the_working_directory(tmp_path, monkeypatch):
    for name in ("kafkatrial", "rich", "typer"):
        (tmp_path / name).mkdir()
    for name in ("typer/__init__.py", "rich/__init__.py", "struct.py", "reference_broker.py"):
        (tmp_path / name).write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path)
    assert run(sys.executable, "-m", "kafkatrial", "--version").startswith("kafkatrial ")


def test_directories_of_pythonpath_come_last(tmp_path, monkeypatch):
    """PYTHONPATH may name dependencies that are installed nowhere else, but does not replace installed packages."""
    (tmp_path / "only_there.py").write_text("")
    (tmp_path / "struct.py").write_text("raise RuntimeError")
    (tmp_path / "program_of_the_test.py").write_text("import struct, sys, only_there, fixtures\nprint(sys.path)")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(tmp_path), str(ROOT / "absent")]))
    path = run(*module_command(ROOT, "program_of_the_test"))
    assert json.loads(path.replace("'", '"'))[-2:] == [str(tmp_path), str(ROOT / "absent")]


def test_a_script_has_only_the_standard_library(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint([entry for entry in sys.path if 'site-packages' in entry])")
    assert run(*script_command(script)) == "[]\n"
