"""A line that is drawn again and again at the bottom of the terminal, with a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_BAR = 24


@contextmanager
def draw(line: Callable[[], str], share: Callable[[], float | None], redraws: float) -> Iterator[Console]:
    """Draw ``line()`` behind a bar of ``share()`` (0 to 1, None: unknown) until the context ends.

    Gives the console on which other lines can be printed above it.
    """
    console = Console(stderr=True)

    def render() -> RenderableType:
        row = Table.grid(padding=(0, 1))
        part = share()
        bar = ProgressBar(total=1.0, completed=part or 0.0, width=_BAR, pulse=part is None)
        row.add_row(bar, Text(line(), no_wrap=True, overflow="ellipsis"))
        return Group(row)

    with Live(get_renderable=render, console=console, refresh_per_second=redraws, transient=True) as live:
        yield live.console
