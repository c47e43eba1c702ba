"""A picture of a plan of steps: from above, where footholds were looked for, when which foot is down, where the body
could be, how firmly it stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roboyard.config import atomic_path

if TYPE_CHECKING:
    from roboyard.walking.steps.ground import Ground
    from roboyard.walking.steps.plan import StepPlan
    from roboyard.walking.steps.rig import Rig
    from roboyard.walking.steps.searches import SpiralSearch

_POLYGONS = 14
"""Support polygons that are drawn."""


def draw_steps(file: Path, plan: StepPlan, rig: Rig, ground: Ground, goal: tuple[float, float]) -> None:
    """Draw it. Raises InputError where the file cannot be written."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from roboyard.errors import InputError
    from roboyard.walking.stability import stability_margin, support_polygon, tip_over
    from roboyard.walking.steps.searches import searches
    from roboyard.walking.steps.stretches import along_way, stretches

    legs = rig.walker.legs
    times = np.linspace(0.0, plan.duration, 800)
    feet, down = plan.feet_at(times)
    body = plan.body(times)
    low, top = feet[..., :2].min(axis=(0, 1)) - 0.25, feet[..., :2].max(axis=(0, 1)) + 0.25
    ratio = min(max(float((top - low)[1] / (top - low)[0]), 0.25), 1.2)
    names = ["above", "looked", "gait", "way", "margin"]
    shares = [9.0 * ratio, 9.0 * ratio, 2.0, 2.0, 2.0]
    spirals = searches(plan, ground)
    if not spirals:
        del names[1], shares[1]
    figure = Figure(figsize=(11.0, 1.5 + sum(shares)), layout="constrained")
    FigureCanvasAgg(figure)
    parts: dict[str, Any] = figure.subplot_mosaic([[name] for name in names], height_ratios=shares)
    above, gait, way, firm = (parts[name] for name in names if name != "looked")
    draw_heights(figure, above, ground)
    for k in np.linspace(0, len(times) - 1, _POLYGONS).astype(int):
        corners = support_polygon(feet[k, down[k]])
        above.fill(*corners.T, facecolor="none", edgecolor="0.25", linewidth=0.6, alpha=0.5)
    for leg, one in enumerate(legs):
        color = f"C{leg}"
        stands = np.array([plan.feet[leg], *(swing.target for swing in plan.swings if swing.leg == leg)])
        above.plot(*feet[:, leg, :2].T, color=color, linewidth=0.7, alpha=0.8)
        above.plot(*stands[:, :2].T, "o", color=color, markersize=5, label=one.name)
        runs = [(0.0, plan.duration)]
        gait.broken_barh(runs, (len(legs) - leg - 0.9, 0.8), facecolor=color)
        air = [(swing.lifts, swing.lands - swing.lifts) for swing in plan.swings if swing.leg == leg]
        gait.broken_barh(air, (len(legs) - leg - 0.9, 0.8), facecolor="white")
    above.plot(*body[:, :2].T, color="black", linewidth=1.5, label="body")
    above.plot(*goal, "*", color="black", markersize=12)
    above.set_aspect("equal")
    above.set(
        xlim=(low[0], top[0]), ylim=(low[1], top[1]), xlabel="x [m]", ylabel="y [m]",
        title=f"{plan.duration:.1f} s, {len(plan.swings)} steps",
    )  # fmt: skip
    above.legend(loc="upper left", fontsize="small", ncols=7)
    if spirals:
        draw_heights(figure, parts["looked"], ground)
        _draw_searches(parts["looked"], spirals)
        parts["looked"].set(xlim=(low[0], top[0]), ylim=(low[1], top[1]), xlabel="x [m]", ylabel="y [m]")
    gait.set(yticks=np.arange(len(legs)) + 0.5, ylabel="on the ground", xlim=(0.0, plan.duration))
    gait.set_yticklabels([leg.name for leg in reversed(legs)])
    for begin, end, first, last in stretches(plan, rig):
        way.fill_between([begin, end], first, last, color="C0", alpha=0.35, linewidth=0.0)
    way.plot(times, along_way(plan, times), color="black", linewidth=0.9)
    way.set(ylabel="way [m]; where it could be", xlim=(0.0, plan.duration))
    margins = [stability_margin(feet[k, down[k]], body[k]) for k in range(len(times))]
    angles = [np.degrees(tip_over(feet[k, down[k]], body[k]).angle) for k in range(len(times))]
    firm.plot(times, margins, color="black", linewidth=0.9)
    firm.axhline(rig.margin, color="C3", linestyle=":")
    firm.set(xlabel="time [s]", ylabel="margin [m]", xlim=(0.0, plan.duration), ylim=(0.0, None))
    tilt = firm.twinx()
    tilt.plot(times, angles, color="C0", linewidth=0.9)
    tilt.set_ylim(0.0, None)
    tilt.set_ylabel("until it tips [°]", color="C0")
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=90)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None


def _draw_searches(axes: Any, spirals: list[SpiralSearch]) -> None:
    """Of each foothold the place that was drawn, what was passed over on the way outwards, and where it ended."""
    for one in spirals:
        color, (x, y) = f"C{one.leg}", one.found
        axes.plot(*one.cells.T, color=color, linewidth=0.4, alpha=0.5)
        axes.plot(*one.cells[one.firm].T, ".", color="goldenrod", markersize=2.5)
        axes.plot(*one.cells[~one.firm].T, ".", color="C3", markersize=2.5)
        axes.plot((one.wish[0], x), (one.wish[1], y), color=color, linewidth=1.0)
        axes.plot(*one.wish, "x", color=color, markersize=4)
        axes.plot(x, y, "o", color=color, markersize=4)
    axes.set_aspect("equal")
    axes.set_title(
        "searches for footholds, from × outwards; passed over: red, not to stand on; yellow, out of reach or order",
        fontsize="small",
    )


def draw_heights(figure: Any, axes: Any, ground: Ground) -> None:
    """The ground from above, with its scale of heights; where no foot may stand it is hatched."""
    import numpy as np

    rows = ground.rows
    high, wide = np.array(rows.heights.shape) * rows.cell
    extent = (rows.x, rows.x + wide, rows.y, rows.y + high)
    picture = axes.imshow(rows.heights, origin="lower", extent=extent, cmap="gist_earth", alpha=0.6)
    figure.colorbar(picture, ax=axes, label="height [m]", shrink=0.7)
    barred = np.where(rows.stand, np.nan, 1.0)
    axes.imshow(barred, origin="lower", extent=extent, cmap="Reds", vmin=0.0, vmax=1.6, alpha=0.35)
