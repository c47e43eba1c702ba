"""One look for all figures, light and dark: colours are placeholders that the page's style sheet fills in."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Colours that no figure uses otherwise, and the CSS variable each stands for.
INK, MUTED, GRID = "#010101", "#020202", "#030303"
TRUTH, ODOMETRY, COMMAND, BAD, GOOD = "#040404", "#050505", "#060606", "#070707", "#080808"
WALL, FURNITURE, SCAN, PANEL = "#090909", "#0a0a0a", "#0b0b0b", "#0c0c0c"
_VARIABLES = {
    INK: "ink", MUTED: "muted", GRID: "grid", TRUTH: "truth", ODOMETRY: "odometry", COMMAND: "command", BAD: "bad",
    GOOD: "good", WALL: "wall", FURNITURE: "furniture", SCAN: "scan", PANEL: "panel",
}  # fmt: skip

_SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "roboyard",  # else ids are random and the same run gives another page each time
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round",
    "path.simplify": True,
    "path.simplify_threshold": 0.15,
}


@contextmanager
def styled() -> Iterator[None]:
    """Figures made inside look like the report's."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        yield


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, *, alike: bool = True) -> tuple[Any, Any]:
    """A figure [inch] and its axes, without any window system; rows share x axes, and columns both if ``alike``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, sharex=True if alike else "col", sharey=columns > 1 and alike)


def widen(axes: Any, low: float, high: float) -> None:
    """Show at least from ``low`` to ``high``: rounding errors are not blown up to a figure's height."""
    shown = axes.get_ylim()
    axes.set_ylim(min(shown[0], low), max(shown[1], high))


def svg(figure: Any, label: str) -> str:
    """The figure as an inline SVG element that scales with the page; ``label`` is what screen readers say."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = out.getvalue().decode()
    text = text[text.index("<svg") :]
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    text = text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', sans-serif")
    # a tenth of a point is as fine as anybody can see
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\d+\.\d)\d+", r"\1", path[0]), text)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg [^>]*?)width="[^"]*" height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"(<svg [^>]*?) height=\"[^\"]*pt\"", r"\1", text, count=1)
    text = re.sub(r"(<svg [^>]*?) width=\"[^\"]*pt\"", r"\1", text, count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
