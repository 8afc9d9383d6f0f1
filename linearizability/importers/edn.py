"""A reader of EDN, Clojure's data notation, as far as histories are written in it.

A keyword is read as the string of its name, so that what Jepsen writes as EDN and as JSON looks the same; vectors,
lists and sets are tuples, maps are dicts, a tagged value (`#jepsen.history.Op{...}`) is the value. Instants, ratios and
symbols stay their text. The libraries on PyPI name no line when they refuse a file, and know no tags but their own.

A history is a form for each operation, or one vector of all of them: both are read a form at a time.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from linearizability.importers.source import bad_line, shown

_TOKEN: Final = re.compile(
    r"""(?P<space>[\s,]+|;.*)
      | (?P<open>\#?\{|[\[(])
      | (?P<close>[\])}])
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<discard>\#_)
      | (?P<tag>\#[^\s,;\[\](){}"]+)
      | (?P<char>\\(?:\w+|\S))
      | (?P<atom>[^\s,;\[\](){}"\\#][^\s,;\[\](){}"\\]*)""",
    re.VERBOSE,
)
_CLOSERS: Final = {"{": "}", "#{": "}", "[": "]", "(": ")"}
_NAMED: Final = {"nil": None, "true": True, "false": False}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_INTEGER: Final = re.compile(r"[+-]?\d{1,40}N?$")
_FLOAT: Final = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?M?$")


class _Token(NamedTuple):
    line: int
    kind: str
    text: str


def read_forms(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """The forms of a file, each with the line on which it begins. Raises HistoryError naming the line."""
    reader = _Reader(path, _tokens(path, lines))
    outer: _Token | None = None
    for token in reader.tokens:
        if token.kind == "close" and outer is not None and token.text == _CLOSERS[outer.text]:
            outer = None
        elif token.text in ("[", "(") and token.kind == "open" and outer is None:
            outer = token
        elif token.kind == "discard":
            reader.form(reader.next(token))
        else:
            yield token.line, reader.form(token)
    if outer is not None:
        raise bad_line(path, outer.line, f"the file ends before this {outer.text} is closed")


def _tokens(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[_Token]:
    for number, line in lines:
        at = 0
        while at < len(line):
            found = _TOKEN.match(line, at)
            if found is None:
                raise bad_line(path, number, f"not EDN: {shown(line[at:])}")
            at = found.end()
            if found.lastgroup != "space":
                yield _Token(number, str(found.lastgroup), found[0])


class _Reader:
    """Puts tokens together to forms."""

    def __init__(self, path: Path, tokens: Iterator[_Token]) -> None:
        self._path = path
        self.tokens = tokens

    def next(self, begun: _Token) -> _Token:
        """The next token of what `begun` began."""
        token = next(self.tokens, None)
        if token is None:
            raise bad_line(self._path, begun.line, f"the file ends before this {shown(begun.text)} does")
        return token

    def form(self, token: _Token) -> Any:
        """The form that begins with a token."""
        if token.kind == "open":
            try:
                return self._collection(token)
            except RecursionError:
                raise bad_line(self._path, token.line, "nested too deeply") from None
        if token.kind == "tag":
            return self.form(self.next(token))
        if token.kind == "close":
            raise bad_line(self._path, token.line, f"{token.text} closes nothing that is open")
        if token.kind == "string":
            return _ESCAPE.sub(_unescaped, token.text[1:-1])
        return token.text[1:] if token.kind == "char" else _atom(token.text)

    def _collection(self, opener: _Token) -> Any:
        forms: list[Any] = []
        while (token := self.next(opener)).kind != "close":
            if token.kind == "discard":
                self.form(self.next(token))
            else:
                forms.append(self.form(token))
        if token.text != _CLOSERS[opener.text]:
            raise bad_line(
                self._path, token.line, f"{token.text} does not close the {opener.text} of line {opener.line}"
            )
        if opener.text != "{":
            return tuple(forms)
        if len(forms) % 2:
            raise bad_line(self._path, opener.line, "a map whose last key has no value")
        try:
            return dict(zip(forms[::2], forms[1::2], strict=True))
        except TypeError:
            raise bad_line(self._path, opener.line, "a map whose key is a map") from None


def _unescaped(found: re.Match[str]) -> str:
    text = found[1]
    return chr(int(text[1:], 16)) if len(text) == 5 else _ESCAPES.get(text, text)


def _atom(text: str) -> Any:
    if text.startswith(":"):
        return text[1:]
    if text in _NAMED:
        return _NAMED[text]
    if _INTEGER.match(text):
        return int(text.removesuffix("N"))
    return float(text.removesuffix("M")) if _FLOAT.match(text) else text
