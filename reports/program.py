"""Rendering of programs and commands so that a copy from a terminal, log or page can be run."""

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from linearizability.printable import PROGRAM_MAX, printable


def render_program(program: str) -> RenderableType:
    """Render a program at the left margin. Its lines are neither wrapped nor cropped at the console's width."""
    text = Syntax("", "python", background_color="default").highlight(printable(program.rstrip(), PROGRAM_MAX))
    text.rstrip()
    return _as_it_is(text)


def program_html(program: str) -> Markup:
    """Return the highlighted HTML of a program; empty if there is no program."""
    if not program:
        return Markup()
    return Markup(highlight(printable(program, PROGRAM_MAX), PythonLexer(), HtmlFormatter(nowrap=True)))  # noqa: S704  Pygments escapes


def render_command(label: str, command: str, style: str = "bold") -> RenderableType:
    """Render a command after its label on one line, whatever the console's width."""
    return _as_it_is(Text.assemble(label, (command, style)))


def _as_it_is(text: Text) -> RenderableType:
    text.no_wrap, text.overflow = True, "ignore"
    return Group(text)  # a console joins texts that are printed directly, and their settings are lost
