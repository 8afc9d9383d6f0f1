"""Page of the history format: its tables of columns match `schema`, and its example runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from linearizability.history.reader import open_history
from linearizability.history.schema import COLUMNS
from linearizability.history.validate import validate

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "history-format.md").read_text(encoding="utf-8")


def columns_of(name):
    """Return the lines that the page must have for the columns of a table."""
    lines = ["| column | type | null | meaning |", "|---|---|---|---|"]
    for column in COLUMNS[name]:
        kind = "list of int32" if column.name == "isr" else str(column.type)
        null = "never" if column.required else "may be"
        rules = [f"one of {', '.join(f'`{value}`' for value in column.values)}"] if column.values else []
        rules += [f"never below {column.minimum}"] if column.minimum is not None else []
        rules += [f"{column.unknown} is read as null"] if column.unknown is not None else []
        lines.append(f"| `{column.name}` | {kind} | {null} | {'; '.join([column.meaning, *rules])} |")
    return "\n".join(lines)


@pytest.mark.parametrize("name", COLUMNS)
def test_page_has_every_column(name):
    section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    assert f"<!-- columns of {name} -->\n{columns_of(name)}\n" in section


def test_page_has_no_other_tables():
    assert re.findall(r"<!-- columns of (\w+) -->", PAGE) == list(COLUMNS)


def test_example_of_the_page_writes_a_valid_history(tmp_path):
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
    subprocess.run([sys.executable, "-c", example], cwd=tmp_path, check=True, env={"PYTHONPATH": str(ROOT)})
    history = open_history(tmp_path / "my-run")
    validate(history)
    assert history.table("records").num_rows == 2
