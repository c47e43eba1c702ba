"""How far every cell is from the nearest one that is marked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import distance_transform_edt

from roboyard.errors import InputError


def distance_to(marked: ArrayLike, resolution: float, limit: float = float("inf")) -> NDArray[np.float32]:
    """Exact Euclidean distances between middles of cells.

    Args:
        marked: (rows, columns) bool.
        resolution: Side of a cell [m].
        limit: What farther cells get [m]; also all cells, where none is marked.

    Returns:
        (rows, columns) float32 [m]; 0 in the marked cells.

    Raises:
        InputError: not two dimensions.
    """
    cells = np.asarray(marked, dtype=np.bool_)
    if cells.ndim != 2:
        raise InputError(f"a grid of shape {cells.shape}", valid="(rows, columns)")
    if not cells.any():
        return np.full(cells.shape, limit, dtype=np.float32)
    distances = np.asarray(distance_transform_edt(~cells), dtype=np.float64) * resolution
    return np.minimum(distances, limit).astype(np.float32)
