"""Scripts cut into tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\n\r]+)
  | (?P<string>'[^']*')
  | (?P<hex>0[xX][0-9A-Fa-f]*)
  | (?P<real>\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+))
  | (?P<integer>\d+)
  | (?P<name>[A-Za-z_@][A-Za-z0-9_]*)
  | (?P<operator>\.\.|&&|\|\||==|!=|<=|>=|:=|\+=|-=|\*=|/=|[-+*/&|^~!<>=?:();])
    """,
    re.VERBOSE,
)
_TAIL = re.compile(r"(?:[A-Za-z0-9_@]|\.(?!\.))[A-Za-z0-9_.]*")
"""What must not follow a number."""

INTEGER, REAL, STRING, NAME, OPERATOR, ERROR, END = "integer", "real", "string", "name", "operator", "error", "end"


class Token(NamedTuple):
    """A piece of a script: its kind, its text, and where it begins."""

    kind: str
    text: str
    at: int


def tokenize(script: str) -> list[Token]:
    """The tokens of a script; what is none becomes one of kind `ERROR`, the last is of kind `END`."""
    tokens: list[Token] = []
    at = 0
    while at < len(script):
        found = _TOKEN.match(script, at)
        if found is None:
            end = len(script) if script[at] == "'" else at + 1
            tokens.append(Token(ERROR, script[at:end], at))
            at = end
            continue
        kind, text, end = found.lastgroup or ERROR, found.group(), found.end()
        if kind in ("hex", INTEGER, REAL):
            tail = _TAIL.match(script, end)
            bare = kind == "hex" and len(text) == 2
            if tail is not None or bare:
                end = tail.end() if tail is not None else end
                kind, text = ERROR, script[at:end]
            elif kind == "hex":
                kind = INTEGER
        if kind == STRING:
            text = text[1:-1]
        if kind != "space":
            tokens.append(Token(kind, text, at))
        at = end
    tokens.append(Token(END, "", at))
    return tokens
