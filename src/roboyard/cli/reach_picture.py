"""Where an arm's tool gets to: numbers, and a picture of slices through it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roboyard.config import atomic_path
from roboyard.geometry.arrays import Array
from roboyard.kinematics import Chain

_CELLS = 60
_BATCH = 5000


@dataclass(frozen=True)
class Reach:
    """Places of the tool in the chain's base.

    Attributes:
        points: (k, 3) [m].
        measures: (k,) manipulability at each.
        volume: Of the cells with a place in them [m³].
        cell: Edge of a cell [m].
    """

    points: Array
    measures: Array
    volume: float
    cell: float


def reach_of(chain: Chain, rng: np.random.Generator, samples: int) -> Reach:
    """Look at random positions of the joints. Raises InputError where a sliding joint has no limits."""
    points, measures = [], []
    for begin in range(0, samples, _BATCH):
        q = chain.sample_positions(rng, min(_BATCH, samples - begin))
        points.append(chain.forward(q)[:, :3, 3])
        measures.append(np.atleast_1d(chain.manipulability(q)))
    places = np.concatenate(points)
    cell = max(float(np.ptp(places, axis=0).max()) / _CELLS, 1e-9)
    cells = np.unique(np.floor(places / cell).astype(np.int64), axis=0)
    return Reach(places, np.concatenate(measures), len(cells) * cell**3, cell)


def draw_reach(file: Path, chain: Chain, reach: Reach) -> None:
    """Slices from the side, from ahead and from above, 2 cells thick: how often, and how well, it gets to each place.

    Raises:
        InputError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from roboyard.errors import InputError

    figure = Figure(figsize=(14.0, 9.0), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, 3)
    low, high = reach.points.min(axis=0), reach.points.max(axis=0)
    level = float(np.median(reach.points[:, 2]))
    views = (("x", "z", 0, 2, 1, 0.0, "side, y = 0"), ("y", "z", 1, 2, 0, 0.0, "front, x = 0"),
             ("x", "y", 0, 1, 2, level, f"above, z = {level:.2f} m"))  # fmt: skip
    for column, (across, up, i, j, k, at, title) in enumerate(views):
        near = np.abs(reach.points[:, k] - at) <= 2.0 * reach.cell
        places, measures = reach.points[near], reach.measures[near]
        bins = [np.arange(low[n] - reach.cell, high[n] + 2.0 * reach.cell, reach.cell) for n in (i, j)]
        counts, *_ = np.histogram2d(places[:, i], places[:, j], bins=bins)
        total, *_ = np.histogram2d(places[:, i], places[:, j], bins=bins, weights=measures)
        mean = np.divide(total, counts, out=np.full_like(total, np.nan), where=counts > 0)
        counts[counts == 0] = np.nan
        extent = (bins[0][0], bins[0][-1], bins[1][0], bins[1][-1])
        for row, (values, name) in enumerate(((counts, "positions a cell"), (mean, "manipulability"))):
            axes = grid[row, column]
            image = axes.imshow(values.T, origin="lower", extent=extent, cmap=("viridis", "magma")[row], aspect="equal")
            axes.plot(0.0, 0.0, "+", color="#d0402b", markersize=12)
            axes.set(title=f"{title}: {name}", xlabel=f"{across} [m]", ylabel=f"{up} [m]")
            figure.colorbar(image, ax=axes, shrink=0.8)
    figure.suptitle(f"{chain.robot}: where {chain.tip} gets to, in the frame of {chain.base} (+)")
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=90)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be written: {error}", location=str(file)) from error
