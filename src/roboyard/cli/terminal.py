"""What the terminal shows: lines and tables for people, one JSON object for programs.

Results go to standard output; progress, notes and errors to standard error.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any, TextIO

_NARROWEST = 20
"""Columns below which text is not wrapped in a column of its own."""


def say(text: str = "") -> None:
    """A line of the result."""
    print(text)


def flush() -> None:
    """Let what was said be seen now, also through a pipe."""
    sys.stdout.flush()


def note(text: str) -> None:
    """A line beside the result: progress, warnings."""
    sys.stdout.flush()  # so that both come in this order where they go to one place
    print(text, file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """The one line of an error."""
    line = " ".join(text.split())
    print(f"{paint('error:', '1;31', sys.stderr)} {line}", file=sys.stderr, flush=True)


def emit(data: Mapping[str, Any]) -> None:
    """The one JSON object, on a line of its own."""
    print(json.dumps(plain(data), allow_nan=False, ensure_ascii=False), flush=True)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()) -> None:
    """Columns under headers.

    Args:
        headers: One word each.
        rows: A cell for each header; None shows as "-".
        right: Headers of the columns that are aligned to the right: numbers.
    """
    texts = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    lines = _aligned([[header.upper() for header in headers], *texts], [header in right for header in headers])
    say(paint(lines[0], "1", sys.stdout))
    for line in lines[1:]:
        say(line)


def columns(rows: Iterable[Sequence[object]]) -> None:
    """Columns without headers."""
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    for line in _aligned(texts, [False] * max(map(len, texts), default=0)):
        say(line)


def width() -> int:
    """Columns of the terminal; a page's width where there is none."""
    return shutil.get_terminal_size((100, 24)).columns


def heading(text: str) -> None:
    """A line above a part of the result."""
    say(paint(text, "1", sys.stdout))


def _aligned(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Lines of a table; on a terminal that is too narrow the last column goes on below itself."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(right))] if lines else []
    before = sum(widths[:-1]) + 2 * (len(widths) - 1)
    space = width() - before
    wrapped = sys.stdout.isatty() and space >= _NARROWEST and not (right and right[-1])
    result = []
    for line in lines:
        last = _wrap(line[-1], space) if wrapped and line and len(line[-1]) > space else line[-1:]
        cells = [
            cell.rjust(size) if to_right else cell.ljust(size)
            for cell, size, to_right in zip([*line[:-1], *last[:1]], widths, right, strict=True)
        ]
        result.append("  ".join(cells).rstrip())
        result += [" " * before + more for more in last[1:]]
    return result


def _wrap(text: str, space: int) -> list[str]:
    return textwrap.wrap(text, space, break_on_hyphens=False, break_long_words=False) or [""]


def fields(rows: Iterable[tuple[str, object]]) -> None:
    """Names and values, one pair a line; None is left out."""
    shown = [(name, str(value)) for name, value in rows if value is not None]
    names = max((len(name) for name, _ in shown), default=0)
    space = width() - names - 2
    for name, value in shown:
        first, *others = [value]
        if sys.stdout.isatty() and space >= _NARROWEST and len(value) > space:
            first, *others = _wrap(value, space)
        say(f"{paint(name.ljust(names), '1', sys.stdout)}  {first}".rstrip())
        for line in others:
            say(" " * (names + 2) + line)


def paint(text: str, code: str, stream: TextIO) -> str:
    """``text`` in an ANSI style where ``stream`` shows it."""
    return f"\x1b[{code}m{text}\x1b[0m" if coloured(stream) else text


def paint_comment(text: str) -> str:
    """A line of standard output that only explains."""
    return paint(text, "2", sys.stdout)


def coloured(stream: TextIO) -> bool:
    """Whether ``stream`` is a terminal that wants colours (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def interactive() -> bool:
    """Whether a person sits at both ends: keys can be read and progress be drawn."""
    return sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def plain(value: Any) -> Any:
    """As JSON knows it: records and messages become mappings, arrays lists, what is not finite null."""
    if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)


def seconds(time_ns: int) -> str:
    """A moment as people read it."""
    return f"{time_ns * 1e-9:.3f} s"


def count(number: int, what: str) -> str:
    """ "1 message", "1,234 messages"."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def size(octets: float) -> str:
    """Bytes as people read them."""
    for unit in ("B", "kB", "MB", "GB"):
        if octets < 1000 or unit == "GB":
            return f"{octets:.0f} {unit}" if unit == "B" else f"{octets:.3g} {unit}"
        octets /= 1000
    return ""
