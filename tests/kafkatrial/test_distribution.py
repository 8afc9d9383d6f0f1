"""Wheel of kafkatrial, installed beside PyPI's `fixtures`, and used in a project with its own `fixtures` and `reports`.

A .pth file adds our site-packages to the new venv, so that almost no dependency is downloaded. The venv does not see
our editable installation, because .pth files in a directory added by a .pth file are not read.
"""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BESIDE = Path(__file__).with_name("beside.lock")
UV = Path(sys.executable).with_name("uv")

pytestmark = pytest.mark.slow

THEIR_TEST = """
import fixtures
import reports
from confluent_kafka import Consumer, Producer, TopicPartition


def test_round_trip(kafka_cluster):
    servers = {"bootstrap.servers": kafka_cluster.bootstrap_servers}
    producer = Producer(servers)
    producer.produce("greetings", b"hello")
    assert producer.flush(10) == 0
    consumer = Consumer({**servers, "group.id": "mine"})
    consumer.assign([TopicPartition("greetings", 0, 0)])
    assert consumer.poll(30).value() == b"hello"
    consumer.close()


def test_their_packages_are_theirs():
    assert (fixtures.OWNER, reports.OWNER) == ("the project", "the project")
"""

IMPORT_ALL = """
import importlib
import pkgutil
from pathlib import Path

import kafkatrial
from kafkatrial import suite

suite.activate()
from fixtures.disk.mounts import why_no_fuse

served_by_libfuse = {"fixtures.disk.daemon", "fixtures.disk.filesystem"} if why_no_fuse() else set()
here = Path(kafkatrial.__file__).parent
seen = []
for directory in (here.parent, here / "_suite"):
    for module in pkgutil.iter_modules([str(directory)]):
        if directory == here.parent and module.name not in {"kafkatrial", "linearizability"}:
            continue
        package = importlib.import_module(module.name)
        assert Path(package.__file__).is_relative_to(here.parent), package
        for inner in pkgutil.walk_packages(package.__path__, f"{module.name}."):
            if not inner.name.endswith(".__main__") and inner.name not in served_by_libfuse:
                assert Path(importlib.import_module(inner.name).__file__).is_relative_to(here.parent), inner.name
                seen.append(inner.name)
print(len(seen))
"""


def run(*command, cwd):
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the sdist from the tree and the wheel from the sdist, as for a release; return the wheel."""
    directory = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, ROOT, cwd=directory)
    (wheel,) = directory.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Return the interpreter of a venv with our wheel and PyPI's `fixtures`."""
    directory = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(directory)
    python = directory / "bin" / "python"
    run(UV, "pip", "install", "--python", python, "--no-deps", wheel, cwd=directory)
    run(UV, "pip", "install", "--python", python, "--no-deps", "--require-hashes", "-r", BESIDE, cwd=directory)
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=directory).strip())
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture
def project(tmp_path):
    for package in ("fixtures", "reports"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("OWNER = 'the project'\n")
    (tmp_path / "test_theirs.py").write_text(THEIR_TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return tmp_path


def test_only_two_packages_are_top_level(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert top == {"kafkatrial", "linearizability"}
    assert not [name for name in names if name.endswith(".pyc") or "/tests/" in name]
    bundled = {name.split("/")[2] for name in names if name.startswith("kafkatrial/_suite/")}
    assert bundled == {"chaos", "conformance", "fixtures", "reference_broker", "reports"}
    assert "kafkatrial/_suite/reports/templates/report.html.j2" in names


def test_every_module_of_the_package_can_be_imported(python, project):
    (project / "import_all.py").write_text(IMPORT_ALL)
    assert int(run(python, "import_all.py", cwd=project)) > 100


def test_the_command_line_runs(python, project):
    assert "produce/" in run(python.with_name("kafkatrial"), "requirements", cwd=project)


def test_a_users_test_has_a_cluster(python, project):
    out = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project)
    assert "2 passed" in out


def test_a_users_project_runs_the_suite(python, project):
    out = run(python, "-m", "pytest", "-q", "-m", "conformance", "-k", "offsets-are-dense", cwd=project)
    assert "1 passed" in out


def test_a_users_project_runs_chaos(python, project):
    out = run(python, "-m", "pytest", "-q", "-m", "chaos", "--collect-only", "-p", "no:cacheprovider", cwd=project)
    assert "chaos::generated-rounds[reference]" in out
