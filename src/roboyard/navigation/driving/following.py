"""Following a path with a controller, until its end is reached or the robot does not come on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.geometry import SE2
from roboyard.navigation.controllers import Arrival, Controller, Tolerance
from roboyard.navigation.driving.checkers import Patience, Progress
from roboyard.navigation.driving.situation import Remembering, Situation
from roboyard.navigation.errors import NavigationError, NoProgress, NoSafeCommand
from roboyard.navigation.path import Path


class FollowPath(Remembering):
    """Drives along a path.

    Args:
        path: In the map.
        controller: Gives the commands.
        tolerance: Of the path's end.
        patience: With a robot that does not come on.
        stuck_time: How long the controller may find no safe command before that counts as failure [s]; the robot stands
            meanwhile.
    """

    remembered = ("left", "_nearest", "_stuck_since", "_poses")

    def __init__(
        self, path: Path, controller: Controller, tolerance: Tolerance, patience: Patience, stuck_time: float
    ) -> None:
        self._controller, self._stuck_time = controller, stuck_time
        self._arrival, self._progress = Arrival(tolerance), Progress(patience)
        self._stuck_since: float | None = None
        self.take(path)

    def take(self, path: Path) -> None:
        """Go on along another path."""
        self.path = path
        self._poses = path.poses
        self._ways = _ways(path)
        self._nearest = 0
        self.left = float(self._ways[0])
        self._arrival.expect(path.pose(-1))
        self._controller.follow(path)

    def step(self, now: Situation) -> PlanarTwist | None:
        """See ``Task``."""
        self._advance(now.pose)
        if self._arrival.complete(now.pose):
            return None
        if not self._progress.made(now.time, now.pose):
            raise NoProgress("the robot does not come on", valid="a way that the controller can follow")
        try:
            twist = self._controller.command(now.pose, now.twist, now.local)
        except NoSafeCommand:
            self._stuck_since = now.time if self._stuck_since is None else self._stuck_since
            if now.time - self._stuck_since >= self._stuck_time:
                raise
            return STANDSTILL
        self._stuck_since = None
        return twist

    def ahead(self, distance: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Poses (n, 3) of the path's next ``distance`` metres, from where the robot is."""
        last = int(np.searchsorted(-self._ways, -(self.left - distance)))
        return self.path.poses[self._nearest : last + 1]

    def _advance(self, pose: SE2) -> None:
        """The nearest point of the path, looked for forwards only, and not beyond what could have been driven."""
        last = int(np.searchsorted(-self._ways, -(self._ways[self._nearest] - 1.0))) + 1
        part = self.path.poses[self._nearest : last + 1, :2] - (pose.x, pose.y)
        self._nearest += int(np.argmin(np.einsum("ij,ij->i", part, part)))
        here = self.path.poses[self._nearest]
        self.left = float(self._ways[self._nearest]) + math.hypot(here[0] - pose.x, here[1] - pose.y)

    def save_state(self) -> dict[str, Any]:
        """See ``Task``."""
        return super().save_state() | {
            "cost": (self.path.cost, self.path.clearance),
            "arrival": self._arrival.save_state(),
            "progress": self._progress.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """See ``Task``."""
        self.take(Path(saved["_poses"], *saved["cost"]))
        super().load_state(saved)
        self._arrival.load_state(saved["arrival"])
        self._progress.load_state(saved["progress"])


def _ways(path: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(n,) what is left of the path from each pose on [m]."""
    if not len(path):
        raise NavigationError("a path without poses", valid="at least one")
    steps = np.hypot(*np.diff(path.poses[:, :2], axis=0).T)
    return np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])
