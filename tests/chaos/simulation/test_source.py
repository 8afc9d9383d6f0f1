"""What is printed is read back as the same script, and nothing else is read at all."""

import pytest

from chaos.simulation.seeds import script_of
from chaos.simulation.source import NotAScriptError, parsed, printed


def test_a_script_comes_back_from_its_source():
    for seed in range(60):
        script = script_of(seed)
        assert parsed(printed(script)) == script == parsed(repr(script))


def test_lines_are_short():
    lines = [line for seed in range(30) for line in printed(script_of(seed), used=9).splitlines()]
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    "source",
    [
        "1",
        "Topic()",
        "Script(",
        "Script(nope=1)",
        "Script(clients=(lambda: 1))",
        "Script(seed=Role.NOBODY)",
        "Role.LEADER.value",
        "print(1)",
        "Script(topics=__import__('os').getcwd())",
        "Script(topics=[t for t in ()])",
    ],
)
def test_what_is_no_script_is_refused_in_one_line(source):
    with pytest.raises(NotAScriptError) as refused:
        parsed(source)
    assert "\n" not in str(refused.value)
