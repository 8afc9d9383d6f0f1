"""Pages from templates, which lie in `templates/` with their styles and scripts."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from linearizability.printable import PROGRAM_MAX, printable

_TEMPLATES = Path(__file__).parent / "templates"


def render(name: str, **values: Any) -> str:
    """A page, from the name of its template and what that names. Text is escaped; a name without a value fails."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters["printable"] = printable
    return environment.get_template(name).render(values)


def _printable(value: object) -> object:
    """What stands in the page for a value: markup is ours, and any other text is data."""
    return printable(value, PROGRAM_MAX) if isinstance(value, str) and not isinstance(value, Markup) else value
