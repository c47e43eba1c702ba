"""What a planner of steps has to know of a robot; all of it comes from the description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.ndimage import distance_transform_edt

from roboyard.description import Model
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import GRAVITY
from roboyard.walking.steps.body import body_box, limb_masses
from roboyard.walking.steps.rig_kernels import LAYERS, RigRows, fill_table, knee_turn
from roboyard.walking.walker import Walker

_CELLS: Final = 64
"""Of a table of reach, along x and y."""
AKROBAT_LEG: Final = 0.328
"""Coxa, femur and tibia of the robot that the planner's constants were found with [m]."""
_REACH_MARGIN: Final = 0.02
_AIR_MARGIN: Final = 0.012
"""As a foot in the air has no body to hold, its leg may be nearer to its ends [m]."""
_GAP: Final = 0.02
_MARGIN: Final = 0.051
_AKROBAT_WIDE: Final = 0.238
"""Half the width of its stance [m]."""


@dataclass(frozen=True, eq=False)
class Rig:
    """A body on legs, and lengths in proportion to it.

    Attributes:
        walker: The legs.
        rows: What kernels take.
        body: (2, 3) corners of the box of the body in its frame: least and greatest x, y and z [m].
        scale: How large the legs are beside the Akrobat's.
        weight: Of the robot [N].
        margin: Least distance from the body's middle to the edge of the support polygon [m]: 51 mm of the Akrobat.
    """

    walker: Walker
    rows: RigRows
    body: Array
    scale: float
    weight: float
    margin: float

    @classmethod
    def of(cls, walker: Walker, model: Model, limb: float = 0.01) -> Rig:
        """Of a walker.

        Args:
            walker: As many legs on either side.
            model: Its description.
            limb: Half of the thickness of a limb [m].

        Raises:
            InputError: feet of the stance lie on no side, or there are fewer than two on one; no box is fixed to the
                body.
        """
        legs, home = walker.rows, walker.stance_feet
        side = np.where(home[:, 1] > 0.0, 1, -1).astype(np.int64)
        if min((side == 1).sum(), (side == -1).sum()) < 2:
            raise InputError("fewer than two legs on a side", location=walker.robot, valid="two or more on each")
        lengths = np.hypot(*legs.T_hip_knee[:, :2, 3].T) + np.hypot(*legs.thigh.T) + np.hypot(*legs.shank.T)
        scale = float(lengths.min()) / AKROBAT_LEG
        knee = np.sign([knee_turn(legs, i, float(walker.stance[i, 2])) for i in range(len(home))])
        half = float(lengths.max())
        cell = 2.0 * half / (_CELLS - 1)
        low = legs.T_body_hip[:, :3, 3] - half
        layer = 1.2 * half / (LAYERS - 1)
        low[:, 2] = legs.T_body_hip[:, 2, 3] - 0.95 * half
        reached = np.zeros((len(home), _CELLS, _CELLS, LAYERS), np.bool_)
        fill_table(legs, knee, low, cell, layer, np.empty(7), reached)
        table, air = (np.zeros((len(home), _CELLS, _CELLS), np.uint64) for _ in range(2))
        for i, one in enumerate(reached):
            away = distance_transform_edt(one, sampling=(cell, cell, layer))
            for words, kept in ((table, _REACH_MARGIN), (air, _AIR_MARGIN)):
                bits = (away > kept * scale).astype(np.uint64) << np.arange(LAYERS, dtype=np.uint64)
                words[i] = bits.sum(axis=-1, dtype=np.uint64)
        ahead = np.full(len(home), -1, np.int64)
        for i in range(len(home)):
            before = [k for k in range(len(home)) if side[k] == side[i] and home[k, 0] > home[i, 0]]
            if before:
                ahead[i] = min(before, key=lambda k: home[k, 0])
        rows = RigRows(
            legs, home.copy(), knee, walker.speeds.copy(), side, ahead, table, air, low, cell, layer, _GAP * scale,
            limb, limb_masses(model, [leg.joints for leg in walker.legs]) / model.mass,
        )  # fmt: skip
        margin = _MARGIN * float(np.abs(home[:, 1]).min()) / _AKROBAT_WIDE
        return cls(walker, rows, body_box(model, walker.body), scale, GRAVITY * model.mass, margin)
