"""A picture of a plan of steps: from above, when which foot is down, and how firmly the body stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.walking.steps.ground import Ground
    from roboyard.walking.steps.plan import StepPlan
    from roboyard.walking.steps.problem import Problem
    from roboyard.walking.steps.rig import Rig

_POLYGONS = 14
"""Support polygons that are drawn."""


def draw_steps(file: Path, plan: StepPlan, rig: Rig, ground: Ground, problem: Problem) -> None:
    """Draw it. Raises InputError where the file cannot be written."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from roboyard.errors import InputError
    from roboyard.walking.stability import stability_margin, support_polygon

    rows, legs = ground.rows, rig.walker.legs
    times = np.linspace(0.0, plan.duration, 800)
    feet, down = plan.feet_at(times)
    body = plan.body(times)
    figure = Figure(figsize=(11.0, 11.0), layout="constrained")
    FigureCanvasAgg(figure)
    parts: dict[str, Any] = figure.subplot_mosaic([["above"], ["gait"], ["margin"]], height_ratios=(5, 1.3, 1.3))
    above, gait, firm = parts["above"], parts["gait"], parts["margin"]
    high, wide = np.array(rows.heights.shape) * rows.cell
    extent = (rows.x, rows.x + wide, rows.y, rows.y + high)
    picture = above.imshow(rows.heights, origin="lower", extent=extent, cmap="gist_earth", alpha=0.6)
    figure.colorbar(picture, ax=above, label="height [m]", shrink=0.7)
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
    above.plot(*problem.goal, "*", color="black", markersize=12)
    above.set_aspect("equal")
    low, top = feet[..., :2].min(axis=(0, 1)) - 0.25, feet[..., :2].max(axis=(0, 1)) + 0.25
    above.set(
        xlim=(low[0], top[0]), ylim=(low[1], top[1]), xlabel="x [m]", ylabel="y [m]",
        title=f"{plan.effort.planner}, seed {plan.effort.seed}: {plan.duration:.1f} s, {len(plan.swings)} steps",
    )  # fmt: skip
    above.legend(loc="upper left", fontsize="small", ncols=7)
    gait.set(yticks=np.arange(len(legs)) + 0.5, ylabel="on the ground", xlim=(0.0, plan.duration))
    gait.set_yticklabels([leg.name for leg in reversed(legs)])
    margins = [stability_margin(feet[k, down[k]], body[k]) for k in range(len(times))]
    firm.plot(times, margins, color="black", linewidth=0.9)
    firm.axhline(rig.margin, color="C3", linestyle=":")
    firm.set(xlabel="time [s]", ylabel="margin [m]", xlim=(0.0, plan.duration), ylim=(0.0, None))
    try:
        figure.savefig(file, dpi=90)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=str(file), valid="a file in a folder") from None
