"""Defaults of a trial's fields: saved trials omit them, so each default is part of the format and is pinned here.

A changed default changes the meaning of saved trials. If that is intended, raise `trial_version`, and write the golden
file again with `python -m tests.conformance.trial.test_defaults_of_the_format`.
"""

from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import get_args, get_type_hints

from conformance.trial.trial import Trial
from fixtures.python_source import source_of

GOLDEN = Path(__file__).with_name("golden") / "trial_defaults.txt"


def types_below(hint, found):
    for argument in get_args(hint):
        types_below(argument, found)
    if is_dataclass(hint) and hint not in found:
        found.add(hint)
        for part in get_type_hints(hint).values():
            types_below(part, found)
    return found


def lines():
    for each in types_below(Trial, set()):
        given = [field for field in fields(each) if field.init]
        defaults = (
            f"{field.name}" if field.default is MISSING else f"{field.name}={source_of(field.default)}"
            for field in given
        )
        yield f"{each.__name__}({', '.join(defaults)})"


def page():
    return "".join(f"{line}\n" for line in sorted(lines()))


def test_the_defaults_are_those_of_this_version_of_the_format():
    assert page() == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.write_text(page(), encoding="utf-8")
