"""The page of Kafka's classes: it is up to date, each class exists, and a header in another form is an error."""

import zipfile

import pytest

from fixtures.targets.install import DEFAULT_KAFKA_VERSION
from fixtures.targets.jars import JarLock
from tools.kafka_classes import PAGE, ROOT, page, rows


def module(root, docstring):
    path = root / "reference_broker" / "core" / "log.py"
    path.parent.mkdir(parents=True)
    path.write_text(f'"""{docstring}"""\n')
    return root


def test_committed_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(ROOT), "run: make docs"


@pytest.mark.java
def test_every_class_exists_in_apache_kafka():
    files = set()
    for path in JarLock.load(DEFAULT_KAFKA_VERSION).paths:
        with zipfile.ZipFile(path) as jar:
            files.update(jar.namelist())
    named = {name for row in rows(ROOT) for name in row.classes}
    assert sorted(name for name in named if f"{name.replace('.', '/')}.class" not in files) == []


def test_row_has_the_summary_the_classes_and_the_kips_in_order(tmp_path):
    text = "Log.\n\nFollows: a.b.Log, c.Cleaner (KIP-98, KIP-9),\nd.Outer$Inner (KIP-9).\n\nMore.\n"
    (row,) = rows(module(tmp_path, text))
    assert (row.module, row.summary) == ("reference_broker/core/log.py", "Log")
    assert (row.classes, row.kips) == (("a.b.Log", "c.Cleaner", "d.Outer$Inner"), ("KIP-9", "KIP-98"))


@pytest.mark.parametrize(
    "line", ["Follows: Log.", "Follows: a.b.Log", "Follows: a.b.log (KIP-1).", "Follows: a.Log (1)."]
)
def test_line_of_another_form_is_an_error(tmp_path, line):
    with pytest.raises(ValueError, match=r"reference_broker/core/log\.py: "):
        list(rows(module(tmp_path, f"Log.\n\n{line}\n")))
