"""`kafkatrial doctor`: this machine, a damaged installation, and a machine without any prerequisite."""

from fixtures.network import namespace
from fixtures.targets.machine import inspect_machine
from kafkatrial.app import run_command
from kafkatrial.exit_codes import ExitCode

SOMETHING_TO_DO = ("run: ", "install", "run as root", "mount", "load the module", "echo +")


def test_on_this_machine(capsys):
    findings = inspect_machine()
    assert run_command(["doctor"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert all(finding.what in out for finding in findings)
    assert all(finding.missing.partition(";")[0][:60] in out for finding in findings if finding.missing)


def test_a_damaged_lock_of_an_installation_is_one_missing_prerequisite(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lock = tmp_path / "kafkatrial" / "apache-kafka" / "apache-kafka-4.9.9.lock.json"
    lock.parent.mkdir(parents=True)
    lock.write_text("{")
    missing = {finding.what: finding.missing for finding in inspect_machine()}
    assert missing["apache-kafka:4.9.9"] == (
        f"{lock} is not a lock: delete it, and run: kafkatrial targets install apache-kafka:4.9.9"
    )


def test_on_a_machine_without_any_prerequisite(tmp_path, monkeypatch, request):
    """Each missing prerequisite is reported in one line, with a remedy."""
    for name in ("PATH", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    namespace.why_no_namespace.cache_clear()
    request.addfinalizer(namespace.why_no_namespace.cache_clear)
    missing = {finding.what: finding.missing for finding in inspect_machine() if finding.missing}
    assert {"apache-kafka:4.3.1", "java", "wrong clocks", "link mesh", "packets"} <= missing.keys()
    for reason in missing.values():
        assert "\n" not in reason
        assert any(hint in reason for hint in SOMETHING_TO_DO), reason
