"""Sound of sonars: patches that a pulse falls on, ways it takes, and when a receiver says "echo"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Patches:
    """What a pulse falls on, one patch for each beam of a cone that meets something.

    Attributes:
        origin: (3,) of the pulse, in the world [m].
        ways: (n,) from there [m].
        points: (n, 3) in the world [m].
        normals: (n, 3) of the surfaces, of unit length or zero; either side.
        edges: (n,) whether the patch lies at the edge of something, which scatters sound to all sides.
        share: Of the pulse's energy that falls on each patch.
    """

    origin: Floats
    ways: Floats
    points: Floats
    normals: Floats
    edges: Mask
    share: float

    def towards(self, ear: Floats, grazing: float) -> Mask:
        """(n,) patches that throw sound at ``ear`` (3,), as mirrors do, up to a tilt of ``grazing`` [rad]."""
        back = _unit(self.origin - self.points) + _unit(ear - self.points)
        tilt = np.arccos(np.clip(np.abs(np.einsum("ij,ij->i", self.normals, _unit(back))), 0.0, 1.0))
        return np.asarray(self.edges | (tilt <= grazing))


def detected(ways: Floats, energies: Floats, pulse: float, threshold: float) -> float:
    """Way [m] after which a receiver that adds up energy says "echo"; infinite if it never does.

    Args:
        ways: (n,) that the pulse's front goes to reach it [m].
        energies: (n,) that arrive on them by the end of the pulse.
        pulse: Length of the pulse [m].
        threshold: What is enough; 0: the first arrival.
    """
    if threshold <= 0.0 or not len(ways):
        return float(np.min(ways, initial=np.inf))
    instants = np.concatenate([ways, ways + pulse])
    order = np.argsort(instants, kind="stable")
    at, power = instants[order], np.cumsum(np.concatenate([energies, -energies])[order]) / pulse
    gained = np.concatenate([[0.0], np.cumsum(power[:-1] * np.diff(at))])
    enough = np.flatnonzero(gained >= threshold)
    if not len(enough):
        return np.inf
    k = int(enough[0])  # not 0, where nothing is gained yet
    return float(at[k] - (gained[k] - threshold) / power[k - 1])


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0.0, length, 1.0))
