"""Reader of EDN, Clojure's data notation, as far as histories use it.

A keyword is read as the string of its name, so that Jepsen's EDN and Jepsen's JSON give the same rows. Vectors, lists
and sets are read as tuples, maps as dicts, and a tagged value (`#jepsen.history.Op{...}`) as the value without its tag.
The text of instants, ratios and symbols is returned unchanged. The libraries on PyPI are not used, because they report
no line when they reject a file, and accept only their own tags.

A history has one form for each row, or all of these forms in one vector or list. Either way, forms are read one at a
time.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from linearizability.importers.source import bad_line, shown

_TOKEN: Final = re.compile(
    r"""[\s,]*(?:
        (?P<open>\#?\{|[\[(])
      | (?P<close>[\])}])
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<discard>\#_)
      | (?P<tag>\#[^\s,;\[\](){}"]+)
      | (?P<char>\\(?:\w+|\S))
      | (?P<atom>[^\s,;\[\](){}"\\#][^\s,;\[\](){}"\\]*)
      | (?P<nothing>;.*|$))""",
    re.VERBOSE,
)
_CLOSERS: Final = {"{": "}", "#{": "}", "[": "]", "(": ")"}
_NAMED: Final = {"nil": None, "true": True, "false": False}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_UNICODE: Final = re.compile(r"\\u[0-9a-fA-F]{4}")
_CHARACTERS: Final = {
    "newline": "\n", "space": " ", "tab": "\t", "return": "\r", "backspace": "\b", "formfeed": "\f",
}  # fmt: skip
_INTEGER: Final = re.compile(r"[+-]?\d{1,40}N?$")
_FLOAT: Final = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?M?$")


_Token = tuple[int, str, str]
"""A line number, the name of the alternative of `_TOKEN`, and the text."""


def read_forms(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
    """Yield the forms of a file, each after the number of its first line. Raises HistoryError with the line."""
    reader = _Reader(path, _tokens(path, lines))
    outer: _Token | None = None
    for token in reader.tokens:
        line, kind, text = token
        if kind == "close" and outer is not None and text == _CLOSERS[outer[2]]:
            outer = None
        elif kind == "open" and text in "[(" and outer is None:
            outer = token
        elif kind == "discard":
            reader.form(reader.next(token))
        else:
            yield line, reader.form(token)
    if outer is not None:
        raise bad_line(path, outer[0], f"the file ends before this {outer[2]} is closed")


def _tokens(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[_Token]:
    match = _TOKEN.match
    for number, line in lines:
        at, end = 0, len(line)
        while at < end:
            found = match(line, at)
            if found is None:
                raise bad_line(path, number, f"not EDN: {shown(line[at:])}")
            at, kind = found.end(), found.lastgroup or ""
            if kind != "nothing":
                yield number, kind, found[kind]


class _Reader:
    """Parser of tokens into forms."""

    def __init__(self, path: Path, tokens: Iterator[_Token]) -> None:
        self._path = path
        self.tokens = tokens

    def next(self, begun: _Token) -> _Token:
        """Return the next token of the form that `begun` began, after discarded forms."""
        discards = 0
        for token in self.tokens:
            if token[1] == "discard":
                discards += 1
            elif discards:
                self.form(token)
                discards -= 1
            else:
                return token
        raise bad_line(self._path, begun[0], f"the file ends before this {shown(begun[2])} does")

    def form(self, token: _Token) -> Any:
        """Return the form that begins with a token."""
        line, kind, text = token
        if kind == "atom":
            return _atom(text)
        if kind == "open":
            try:
                return self._collection(token)
            except RecursionError:
                raise bad_line(self._path, line, "nested too deeply") from None
        if kind == "tag":
            return self.form(self.next(token))
        if kind == "close":
            raise bad_line(self._path, line, f"{text} without an opening bracket")
        if kind == "char" and not _UNICODE.fullmatch(text):
            return _CHARACTERS.get(text[1:], text[1:])
        return self._string(line, text if kind == "char" else text[1:-1])

    def _string(self, line: int, text: str) -> str:
        found = _ESCAPE.sub(_unescaped, text)
        if "\\u" not in text:
            return found
        try:
            # Java writes characters outside the Basic Multilingual Plane as a pair of surrogates.
            return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise bad_line(self._path, line, f"half of a surrogate pair: {shown(text)}") from None

    def _collection(self, opener: _Token) -> Any:
        begun, _, bracket = opener
        forms: list[Any] = []
        while (token := self.next(opener))[1] != "close":
            forms.append(self.form(token))
        if token[2] != _CLOSERS[bracket]:
            raise bad_line(self._path, token[0], f"{token[2]} does not close the {bracket} of line {begun}")
        if bracket != "{":
            return tuple(forms)
        if len(forms) % 2:
            raise bad_line(self._path, begun, "a map whose last key has no value")
        try:
            found = dict(zip(forms[::2], forms[1::2], strict=True))
        except TypeError:
            raise bad_line(self._path, begun, "a map whose key is a map") from None
        if 2 * len(found) < len(forms):
            keys = forms[::2]
            twice = next(key for place, key in enumerate(keys) if key in keys[:place])
            raise bad_line(self._path, begun, f"a map that has the key {shown(twice)} twice")
        return found


def _unescaped(found: re.Match[str]) -> str:
    text = found[1]
    return chr(int(text[1:], 16)) if len(text) == 5 else _ESCAPES.get(text, text)


def _atom(text: str) -> Any:
    if text.startswith(":"):
        return text[1:]
    if text in _NAMED:
        return _NAMED[text]
    if text.isdecimal() and len(text) < 20:
        return int(text)
    if _INTEGER.match(text):
        return int(text.removesuffix("N"))
    return float(text.removesuffix("M")) if _FLOAT.match(text) else text
