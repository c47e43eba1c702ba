"""Style and helpers of all figures; colors are placeholders that the page's style sheet replaces."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from roboyard.grids.floor_plan import TopDownMap

# Colors that no figure uses otherwise, and the CSS variable that replaces each.
INK, MUTED, GRID = "#010101", "#020202", "#030303"
TRUTH, ODOMETRY, COMMAND, BAD, GOOD = "#040404", "#050505", "#060606", "#070707", "#080808"
WALL, LOW_OBSTACLE, SCAN, PANEL = "#090909", "#0a0a0a", "#0b0b0b", "#0c0c0c"
_CSS_VARIABLES = {
    INK: "ink", MUTED: "muted", GRID: "grid", TRUTH: "truth", ODOMETRY: "odometry", COMMAND: "command", BAD: "bad",
    GOOD: "good", WALL: "wall", LOW_OBSTACLE: "low-obstacle", SCAN: "scan", PANEL: "panel",
}  # fmt: skip

_MATPLOTLIB_SETTINGS: dict[str, Any] = {
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
def figure_style() -> Iterator[None]:
    """Give figures that are made inside the style of the report."""
    import matplotlib as mpl

    with mpl.rc_context(_MATPLOTLIB_SETTINGS):
        yield


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, *, use_common_axes: bool = True
) -> tuple[Any, Any]:
    """Return a figure [inch] and its axes; rows share the x axes, and columns both axes if ``use_common_axes``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(
        rows, columns, sharex=True if use_common_axes else "col", sharey=columns > 1 and use_common_axes
    )


def ensure_axis_range(axes: Any, low: float, high: float) -> None:
    """Show at least the range from ``low`` to ``high``, so that rounding errors do not fill the figure."""
    limits = axes.get_ylim()
    axes.set_ylim(min(limits[0], low), max(limits[1], high))


def render_svg(figure: Any, label: str) -> str:
    """Return the figure as an inline SVG element that scales with the page; screen readers read ``label``."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = out.getvalue().decode()
    text = text[text.index("<svg") :]
    for color, variable in _CSS_VARIABLES.items():
        text = text.replace(color, f"var(--{variable})")
    text = text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', sans-serif")
    # more than a tenth of a point cannot be seen
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\d+\.\d)\d+", r"\1", path[0]), text)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg [^>]*?)width="[^"]*" height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"(<svg [^>]*?) height=\"[^\"]*pt\"", r"\1", text, count=1)
    text = re.sub(r"(<svg [^>]*?) width=\"[^\"]*pt\"", r"\1", text, count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def decimation_slice(n: int, max_samples: int = 1500) -> slice:
    """Return the slice of every k-th of ``n`` samples that leaves no more than ``max_samples``."""
    return slice(None, None, max(1, -(-n // max_samples)))


def draw_top_down_map(axes: Any, top_down_map: TopDownMap | None) -> None:
    """Draw the obstacles of the world below everything else; movable ones are outlined and named in the legend."""
    if top_down_map is None:
        return
    x, y = top_down_map.cell_centers
    for solid, color, alpha in (
        (top_down_map.low_obstacles & ~top_down_map.tall_obstacles, LOW_OBSTACLE, 0.45),
        (top_down_map.tall_obstacles, WALL, 0.75),
    ):
        if solid.any() and min(solid.shape) > 1:
            axes.contourf(x, y, solid.astype(float), levels=[0.5, 1.5], colors=[color], alpha=alpha, zorder=1)
    movable = top_down_map.movable_obstacles
    if movable is not None and movable.any() and min(movable.shape) > 1:
        axes.contour(x, y, movable.astype(float), levels=[0.5], colors=[MUTED], linewidths=1.2, zorder=1)
        axes.contourf(x, y, movable.astype(float), levels=[0.5, 1.5], colors=[LOW_OBSTACLE], alpha=0.3, zorder=1)
        axes.plot(
            [], [], "s", ms=8, mfc=LOW_OBSTACLE, mec=MUTED, mew=1.2, alpha=0.6, label="movable object, at the end"
        )


def configure_plan_axes(axes: Any, bounds: tuple[float, float, float, float]) -> None:
    """Set up the axes of a plan of an extent (x0, y0, x1, y1) [m]."""
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(bounds[0], bounds[2])
    axes.set_ylim(bounds[1], bounds[3])
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
