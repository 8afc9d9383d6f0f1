"""Rendering of pages from the templates in `templates/`, with their styles and scripts."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from linearizability.printable import PROGRAM_MAX, printable

_TEMPLATES = Path(__file__).parent / "templates"


def render(name: str, **values: Any) -> str:
    """Return a page from its template and values. Text is escaped; a name without a value is an error."""
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
    """Return what a page shows for a value. Text is made printable, except `Markup`, which this project generates."""
    return printable(value, PROGRAM_MAX) if isinstance(value, str) and not isinstance(value, Markup) else value
