"""Output on the terminal: lines and tables for people, one JSON object for programs.

Results go to standard output; progress, notes and errors to standard error.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from roboyard.scenarios import Run


ResultData = TypeVar("ResultData")
_MIN_COLUMN_WIDTH = 20
"""Minimum width of a column whose text is wrapped."""


def print_line(text: str = "") -> None:
    """Print a line of the result."""
    print(text)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of the result."""
    for line in lines:
        print_line(line)


def flush_output() -> None:
    """Write buffered output now, also into a pipe."""
    sys.stdout.flush()


def print_note(text: str) -> None:
    """Print a line that is not part of the result, e.g. progress or a warning, to standard error."""
    sys.stdout.flush()  # keeps the order where both streams go to one file
    print(text, file=sys.stderr, flush=True)


def print_error(text: str) -> None:
    """Print the one line of an error."""
    line = " ".join(text.split())
    print(f"{style('error:', '1;31', sys.stderr)} {line}", file=sys.stderr, flush=True)


def print_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    print(json.dumps(to_json_data(data), allow_nan=False, ensure_ascii=False), flush=True)


def print_result(result: ResultData, as_json: bool, show: Callable[[ResultData], None]) -> None:
    """Print the result of a command for programs or for people, both from the same object.

    Args:
        result: A mapping or a dataclass.
        as_json: Print it as one JSON object.
        show: Prints it for people otherwise.
    """
    if as_json:
        print_json(to_json_data(result))
    else:
        show(result)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[str] = ()) -> None:
    """Print columns under headers.

    Args:
        headers: One word each.
        rows: A cell for each header; None shows as "-".
        right: Headers of the columns that are aligned to the right, e.g. numbers.
    """
    texts = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    lines = _align_cells([[header.upper() for header in headers], *texts], [header in right for header in headers])
    print_line(style(lines[0], "1", sys.stdout))
    for line in lines[1:]:
        print_line(line)


def print_columns(rows: Iterable[Sequence[object]]) -> None:
    """Print columns without headers."""
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    for line in _align_cells(texts, [False] * max(map(len, texts), default=0)):
        print_line(line)


def terminal_width() -> int:
    """Return the number of columns of the terminal; 100 without a terminal."""
    return shutil.get_terminal_size((100, 24)).columns


def print_heading(text: str) -> None:
    """Print the heading of a part of the result."""
    print_line(style(text, "1", sys.stdout))


def _align_cells(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Return the lines of a table; on a narrow terminal the last column continues in the next lines."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(right))] if lines else []
    indent = sum(widths[:-1]) + 2 * (len(widths) - 1)
    space = terminal_width() - indent
    wrapped = sys.stdout.isatty() and space >= _MIN_COLUMN_WIDTH and not (right and right[-1])
    result = []
    for line in lines:
        last = _wrap(line[-1], space) if wrapped and line and len(line[-1]) > space else line[-1:]
        cells = [
            cell.rjust(size) if to_right else cell.ljust(size)
            for cell, size, to_right in zip([*line[:-1], *last[:1]], widths, right, strict=True)
        ]
        result.append("  ".join(cells).rstrip())
        result += [" " * indent + continuation for continuation in last[1:]]
    return result


def _wrap(text: str, space: int) -> list[str]:
    return textwrap.wrap(text, space, break_on_hyphens=False, break_long_words=False) or [""]


def print_fields(rows: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one pair per line, except values that are None."""
    rows_with_values = [(name, str(value)) for name, value in rows if value is not None]
    name_width = max((len(name) for name, _ in rows_with_values), default=0)
    space = terminal_width() - name_width - 2
    for name, value in rows_with_values:
        first, *others = [value]
        if sys.stdout.isatty() and space >= _MIN_COLUMN_WIDTH and len(value) > space:
            first, *others = _wrap(value, space)
        print_line(f"{style(name.ljust(name_width), '1', sys.stdout)}  {first}".rstrip())
        for line in others:
            print_line(" " * (name_width + 2) + line)


def style(text: str, code: str, stream: TextIO) -> str:
    """Return ``text`` in an ANSI style if ``stream`` supports color."""
    return f"\x1b[{code}m{text}\x1b[0m" if supports_color(stream) else text


def style_comment(text: str) -> str:
    """Return a line of standard output in the style of a comment."""
    return style(text, "2", sys.stdout)


def supports_color(stream: TextIO) -> bool:
    """Return whether ``stream`` is a terminal with color (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


def is_interactive() -> bool:
    """Return whether keys can be read from standard input and progress drawn on standard error."""
    return sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def to_json_data(value: Any) -> Any:
    """Convert to JSON data: records and messages become mappings, arrays lists, values that are not finite null."""
    if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return to_json_data(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json_data(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return to_json_data(value.tolist())
    if isinstance(value, Iterable):
        return [to_json_data(item) for item in value]
    return str(value)


def format_time(time_ns: int) -> str:
    """Return a time with its unit."""
    return f"{time_ns * 1e-9:.3f} s"


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 message", "1,234 messages"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def format_size(n_bytes: float) -> str:
    """Return a number of bytes with a unit of three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000 or unit == "GB":
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return ""


_BAR_WIDTH = 24


@contextmanager
def draw_progress(
    line: Callable[[], str], fraction: Callable[[], float | None], refresh_rate: float
) -> Iterator[Console]:
    """Draw a progress bar with a line of text until the context ends.

    Args:
        line: Returns the text.
        fraction: Returns the finished part, 0 to 1; None where it is not known.
        refresh_rate: How often both are drawn [Hz].

    Yields:
        The console on which other lines can be printed above the bar.
    """
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    console = Console(stderr=True)

    def render() -> RenderableType:
        row = Table.grid(padding=(0, 1))
        completed = fraction()
        bar = ProgressBar(total=1.0, completed=completed or 0.0, width=_BAR_WIDTH, pulse=completed is None)
        row.add_row(bar, Text(line(), no_wrap=True, overflow="ellipsis"))
        return Group(row)

    with Live(get_renderable=render, console=console, refresh_per_second=refresh_rate, transient=True) as live:
        yield live.console


_FINDING_WITH_LINE = re.compile(r"(?P<file>[^:\n]+):(?P<line>\d+)(, [^:\n]+)?: (?P<what>.*)", re.DOTALL)


def description_findings(run: Run) -> list[str]:
    """Return the findings about the robots and the world of a run; those about robot packages come first."""
    package_findings = [
        f"{robot.name}: {finding}" for robot in run.robots.values() for finding in robot.package.findings
    ]
    model_findings = [str(finding) for robot in run.robots.values() for finding in robot.model.warnings]
    return [*package_findings, *model_findings, *map(str, run.world.warnings), *run.simulation.warnings]


def merge_findings(findings: Iterable[str]) -> list[str]:
    """Merge equal findings about several lines of one file into one."""
    first: dict[tuple[str, str], str] = {}
    n_repeats: dict[tuple[str, str], int] = {}
    for finding in dict.fromkeys(findings):
        match = _FINDING_WITH_LINE.fullmatch(finding)
        key = (match["file"], match["what"]) if match else ("", finding)
        if key in first:
            n_repeats[key] = n_repeats.get(key, 0) + 1
        else:
            first[key] = finding
    return [
        text + (f" (and at {format_count(n_repeats[key], 'more place')})" if key in n_repeats else "")
        for key, text in first.items()
    ]
