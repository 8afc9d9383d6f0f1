"""Example of docs/linearizability.md: it prints the output that the page shows."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "linearizability.md"


def test_first_example_prints_the_output_of_the_page(capsys):
    text = PAGE.read_text(encoding="utf-8")
    example, shown = re.search(r"```python\n(.*?)```\n```\n(.*?)```", text, re.DOTALL).groups()
    exec(compile(example, PAGE.name, "exec"), {})
    assert capsys.readouterr().out == shown
