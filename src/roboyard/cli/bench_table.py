"""Benchmarks' figures for people: each with its peer below it, so that both fit a narrow terminal."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from roboyard.cli.terminal import heading, paint, say, width

if TYPE_CHECKING:
    from roboyard.cli.figures import Figure

_MARKS = {True: ("✓", "32"), False: ("✗", "31"), None: ("·", "")}
_MARGIN = 4
_LEAST = 24
"""Columns that names have at least."""
Row = tuple[str, str, str, str]
"""Name, value, unit, and what is to be said about it."""


def show(figures: Mapping[str, Sequence[Figure]]) -> None:
    """Print the figures of each benchmark under its name."""
    rows = [row for found in figures.values() for figure in found for row in _rows(figure)]
    if not rows:
        return
    sizes = [max(len(row[column]) for row in rows) for column in range(4)]
    names = max(_LEAST, min(sizes[0], width() - _MARGIN - sum(sizes[1:]) - 5))
    for number, (name, found) in enumerate(figures.items()):
        if found:
            heading(("\n" if number else "") + name)
        for figure in found:
            mark, colour = _MARKS[figure.held]
            for place, row in enumerate(_rows(figure)):
                head = f"  {paint(mark, colour, sys.stdout) if colour else mark} " if place == 0 else " " * 6
                _print(head, 6 if place else _MARGIN, row, names, sizes)


def _rows(figure: Figure) -> list[Row]:
    rows: list[Row] = [(figure.name, number(figure.value), figure.unit, figure.target or "")]
    if figure.peer is not None:
        ratio = "not measured" if figure.missing else "" if figure.ratio is None else f"ratio {number(figure.ratio)}"
        rows.append((figure.peer, number(figure.peer_value), figure.unit, ratio))
    return rows


def _print(head: str, indent: int, row: Row, names: int, sizes: Sequence[int]) -> None:
    """One row; a name that is too long takes several lines, the values stand in the first."""
    name, value, unit, about = row
    space = names + _MARGIN - indent
    first, *others = textwrap.wrap(name, space) or [""]
    say(f"{head}{first.ljust(space)}  {value.rjust(sizes[1])} {unit.ljust(sizes[2])}  {about}".rstrip())
    for line in others:
        say(" " * indent + line)


def number(value: float | None) -> str:
    """A measured value with four digits; "-" if there is none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
