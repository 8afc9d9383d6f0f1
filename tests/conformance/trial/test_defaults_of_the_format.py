"""Defaults of the fields of a trial, compared with a golden file.

A saved trial omits each field that has its default. Therefore a changed default changes the meaning of saved trials. If
you intend that, increase `conformance.trial.document.VERSION`, and write the golden file again with
`python -m tests.conformance.trial.test_defaults_of_the_format`.
"""

from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import get_args, get_type_hints

from conformance.trial.trial import Trial
from fixtures.python_source import source_of

GOLDEN = Path(__file__).with_name("golden") / "trial_defaults.txt"


def collect_dataclasses(hint, found):
    """Add the dataclasses in a type hint, and those in the type hints of their fields, to the set `found`."""
    for argument in get_args(hint):
        collect_dataclasses(argument, found)
    if is_dataclass(hint) and hint not in found:
        found.add(hint)
        for field_hint in get_type_hints(hint).values():
            collect_dataclasses(field_hint, found)


def signature(dataclass):
    """Return the name of a dataclass and its parameters, each with its default if it has one."""
    parameters = [field for field in fields(dataclass) if field.init]
    has_factory = any(field.default_factory is not MISSING for field in parameters)
    assert not has_factory, "a saved trial cannot omit a field with a default factory"
    texts = (
        field.name if field.default is MISSING else f"{field.name}={source_of(field.default)}" for field in parameters
    )
    return f"{dataclass.__name__}({', '.join(texts)})"


def signatures():
    """Return the content of the golden file: the signatures of all dataclasses of a trial, one on each line."""
    found = set()
    collect_dataclasses(Trial, found)
    return "".join(f"{line}\n" for line in sorted(map(signature, found)))


def test_the_defaults_are_those_of_this_version_of_the_format():
    assert signatures() == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.write_text(signatures(), encoding="utf-8")
