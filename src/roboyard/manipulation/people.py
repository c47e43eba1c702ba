"""People as obstacles: upright capsules, or those of their bodies' parts; the wider the faster they move."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel, read_only
from roboyard.config import Config, parameter
from roboyard.description import Capsule
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision import Obstacle

_STEP, _FINE = 0.02, 0.01
"""Places and widths are rounded to this, those of parts to the second, so that who stands does not change the scene all
the time [m]."""


class PeopleSettings(Config):
    """How much room people get."""

    height: float = parameter(1.9, unit="m", low=0.1, high=3.0, doc="Height of the capsule of a person.")
    radius: float = parameter(
        0.35, unit="m", low=0.05, high=2.0, doc="Radius of the capsule of a person who stands, arms included."
    )
    ahead: float = parameter(
        0.3, unit="s", low=0.0, high=5.0, doc="Time whose path is added all round to the radius of a person who walks."
    )
    within: float = parameter(
        1.5, unit="m", low=0.1, high=100.0, doc="Distance from the arm's base beyond which parts of bodies are ignored."
    )
    room: float = parameter(0.02, unit="m", low=0.0, high=1.0, doc="Clearance around each part of a body.")


def person_at(name: str, place: ArrayLike, speed: float, settings: PeopleSettings) -> Obstacle:
    """Somebody as an obstacle.

    Args:
        name: Of the obstacle.
        place: (3,) between the feet, in the world [m].
        speed: How fast they walk [m/s].
        settings: How much room they get.

    Raises:
        InputError: place or speed are not finite, or the speed is negative.
    """
    where = np.asarray(place, dtype=np.float64)
    if where.shape != (3,) or not np.isfinite(where).all() or not 0.0 <= speed < math.inf:
        raise InputError(f"somebody at {where.tolist()}, {speed} m/s", location=name, valid="finite numbers")
    radius = math.ceil((settings.radius + settings.ahead * speed) / _STEP - 1e-9) * _STEP + _STEP / 2.0
    x, y, z = (np.round(where / _STEP) * _STEP).tolist()
    length = max(settings.height - 2.0 * radius, 0.01)
    return Obstacle(name, Capsule(radius, length), SE3(translation=(x, y, z + settings.height / 2.0)))


class PartsOfBody:
    """Parts of one body as obstacles; those that have not changed, rounded, are the same objects as before.

    Args:
        settings: How much room they get.
    """

    def __init__(self, settings: PeopleSettings) -> None:
        self._settings = settings
        self._known: dict[str, tuple[tuple[float, ...], Obstacle]] = {}

    def near(self, name: str, parts: Sequence[str], rows: Array, T: SE3, foot: ArrayLike) -> list[Obstacle]:
        """Those that are near enough to matter.

        Args:
            name: Of the person.
            parts: (b) of the body.
            rows: (b, 10) place, orientation w, x, y, z, radius, length and speed of each capsule, as they are told.
            T: Of the frame that they are told in.
            foot: (3,) where the arm stands [m].

        Raises:
            InputError: something is not finite, or negative.
        """
        settings = self._settings
        rounded = np.empty((len(rows), 9))
        pose = np.array([*T.translation, *T.quaternion])
        near = round_parts(
            pose, rows, np.asarray(foot), settings.within, settings.room, settings.ahead, _FINE, rounded
        )  # fmt: skip
        found = []
        for k, values in zip(near.tolist(), rounded[near].tolist(), strict=True):
            called, key = f"{name} {parts[k]}", tuple(values)
            known = self._known.get(called)
            if known is None or known[0] != key:
                known = self._known[called] = key, _part(called, rows[k], key)
            found.append(known[1])
        return found


def _part(name: str, told: Array, rounded: tuple[float, ...]) -> Obstacle:
    radius, length, speed = told[7:].tolist()
    if not (np.isfinite(told).all() and speed >= 0.0 and 0.0 < radius < 1.0 and 0.0 <= length < 3.0):
        raise InputError(
            f"a part of radius {radius}, length {length}, at {speed} m/s", location=name, valid="a capsule"
        )
    wide, long = rounded[7:]
    return Obstacle(name, Capsule(wide, long), SE3(rounded[3:7], rounded[:3]))


@kernel(
    examples=lambda: [(np.zeros(7), np.zeros((1, 10)), read_only(np.zeros(3)), 1.5, 0.02, 0.3, 0.01, np.zeros((1, 9)))],
)
def round_parts(
    pose: Array, rows: Array, foot: Array, within: float, room: float, ahead: float, fine: float, out: Array
) -> NDArray[np.int64]:
    """Which parts of a body are near, and all of them rounded; what makes no sense counts as near.

    Args:
        pose: (7,) place and orientation of the frame that they are told in.
        rows: (b, 10) see `PartsOfBody.near`.
        foot: (3,) where the arm stands [m].
        within: See `PeopleSettings`; so are the next two.
        room: …
        ahead: …
        fine: To which places and widths are rounded [m].
        out: (b, 9) is filled: place, orientation, radius and length.
    """
    aw, ax, ay, az = pose[3], pose[4], pose[5], pose[6]
    near, count = np.empty(rows.shape[0], np.int64), 0
    for k in range(rows.shape[0]):
        x, y, z = rows[k, 0], rows[k, 1], rows[k, 2]
        tx, ty, tz = 2.0 * (ay * z - az * y), 2.0 * (az * x - ax * z), 2.0 * (ax * y - ay * x)
        px = pose[0] + x + aw * tx + ay * tz - az * ty
        py = pose[1] + y + aw * ty + az * tx - ax * tz
        pz = pose[2] + z + aw * tz + ax * ty - ay * tx
        radius, length, speed = rows[k, 7], rows[k, 8], rows[k, 9]
        away = math.sqrt((px - foot[0]) ** 2 + (py - foot[1]) ** 2 + (pz - foot[2]) ** 2)
        if away > within + 0.5 * length + radius:
            continue
        near[count] = k
        count += 1
        w, x, y, z = rows[k, 3], rows[k, 4], rows[k, 5], rows[k, 6]
        qw, qx = aw * w - ax * x - ay * y - az * z, aw * x + ax * w + ay * z - az * y
        qy, qz = aw * y - ax * z + ay * w + az * x, aw * z + ax * y - ay * x + az * w
        size = math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
        if qw < 0.0:
            size = -size
        out[k, 0], out[k, 1] = np.rint(px / fine) * fine, np.rint(py / fine) * fine
        out[k, 2] = np.rint(pz / fine) * fine
        if size != 0.0:
            out[k, 3], out[k, 4] = np.rint(100.0 * qw / size) / 100.0, np.rint(100.0 * qx / size) / 100.0
            out[k, 5], out[k, 6] = np.rint(100.0 * qy / size) / 100.0, np.rint(100.0 * qz / size) / 100.0
        else:
            out[k, 3:7] = np.nan
        out[k, 7] = np.ceil((radius + room + ahead * speed) / fine - 1e-9) * fine
        out[k, 8] = max(length, 1e-3)
    return near[:count]
