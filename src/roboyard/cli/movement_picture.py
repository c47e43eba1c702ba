"""A picture of a movement: ways of the feet from above, their heights, and the joints beside their limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roboyard.config import atomic_path

if TYPE_CHECKING:
    from roboyard.walking.movement import Movement, Played
    from roboyard.walking.walker import Walker

_JOINTS = ("first joints", "second joints", "third joints")


def draw_movement(file: Path, walker: Walker, movement: Movement, played: Played) -> None:
    """Draw it. Raises InputError where the file cannot be written."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from roboyard.errors import InputError
    from roboyard.walking.movement import feet_of

    feet, steps = walker.feet(played.q), feet_of(movement, walker)
    time = np.arange(len(played.q)) * played.period
    at = np.concatenate([[0], np.cumsum(played.ticks)]) * played.period
    figure = Figure(figsize=(12.0, 8.0), layout="constrained")
    FigureCanvasAgg(figure)
    parts: dict[str, Any] = figure.subplot_mosaic([["above", name, name] for name in ("height", "0", "1", "2")])
    above = parts["above"]
    hips = np.array([leg.hip for leg in walker.legs])
    order = np.argsort(np.arctan2(hips[:, 1], hips[:, 0]))
    above.fill(-hips[order, 1], hips[order, 0], color="0.88")
    for k, leg in enumerate(walker.legs):
        color = f"C{k}"
        above.plot(-feet[:, k, 1], feet[:, k, 0], color=color, label=leg.name)
        above.plot(-steps[:, k, 1], steps[:, k, 0], ".", color=color)
        above.plot(
            [-leg.hip[1], -walker.stance_feet[k, 1]], [leg.hip[0], walker.stance_feet[k, 0]], color=color, alpha=0.3
        )
        parts["height"].plot(time, 1e3 * (feet[:, k, 2] - walker.stance_feet[k, 2]), color=color)
        parts["height"].plot(at, 1e3 * movement.steps[k, :, 2], ".", color=color)
        for j in range(3):
            parts[str(j)].plot(time, np.degrees(played.q[:, k, j]), color=color)
            for limit in (walker.lower[k, j], walker.upper[k, j]):
                parts[str(j)].axhline(np.degrees(limit), color=color, alpha=0.35, linestyle=":", linewidth=0.8)
    above.set_aspect("equal")
    above.set(xlabel="to the right [m]", ylabel="forward [m]", title="from above")
    above.legend(loc="upper right", fontsize="small")
    title = f"{movement.name}: {movement.count} steps, {walker.robot}"
    parts["height"].set(ylabel="feet over the stance [mm]", title=title)
    for j, name in enumerate(_JOINTS):
        parts[str(j)].set(ylabel=f"{name} [°]")
    parts["2"].set_xlabel("time [s]; dotted: limits")
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=100)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", location=str(file), valid="a file in a folder"
        ) from None
