"""Where a picture is taken from: a fixed look, a view of a whole world, and a camera that follows a robot."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.geometry import SE3, CameraModel, wrap_angle

Sight = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


@dataclass(frozen=True, slots=True)
class Window:
    """Where a picture lies before a pinhole.

    Attributes:
        fx: Focal length along the rows [px]; [px/m] where orthographic.
        fy: Along the columns.
        cx: Column of the optical axis [px]; a pixel's middle is at +0.5.
        cy: Its row.
    """

    fx: float
    fy: float
    cx: float
    cy: float

    @classmethod
    def of(cls, lens: CameraModel) -> Window:
        """Of a lens without distortion; its pixels are counted from their middles."""
        return cls(lens.fx, lens.fy, lens.cx + 0.5, lens.cy + 0.5)


@dataclass(frozen=True, slots=True)
class Camera:
    """A pinhole camera without distortion; the optical axis meets the picture's middle unless ``window`` says else.

    Attributes:
        T_world_camera: World from optical frame: x right, y down, z into the picture (REP 103).
        fov_y: Full vertical field of view [rad].
        span: Orthographic instead: the height of what is seen [m]; None = perspective.
        window: Instead of ``fov_y``: focal lengths and axis of a perspective picture [px].
        near: Nothing nearer is seen [m], measured along the axis.
    """

    T_world_camera: SE3
    fov_y: float = 0.8
    span: float | None = None
    window: Window | None = None
    near: float = 0.02

    def focal(self, height: int) -> float:
        """Focal length for a picture of this height [px]; [px/m] where orthographic."""
        if self.window is not None:
            return self.window.fy
        return height / self.span if self.span is not None else 0.5 * height / math.tan(0.5 * self.fov_y)

    def windowed(self, width: int, height: int) -> Window:
        """Its window for a picture of this size [px]."""
        if self.window is not None:
            return self.window
        focal = self.focal(height)
        return Window(focal, focal, width / 2, height / 2)


def look_at(eye: ArrayLike, target: ArrayLike, *, up: ArrayLike = (0.0, 0.0, 1.0), fov_y: float = 0.8) -> Camera:
    """Camera at ``eye`` with ``target`` in the middle of the picture (3,) [m]; ``up`` points up in it."""
    position = np.asarray(eye, dtype=np.float64)
    forward = np.asarray(target, dtype=np.float64) - position
    forward = forward / max(float(np.linalg.norm(forward)), 1e-12)
    right = np.cross(forward, np.asarray(up, dtype=np.float64))
    if np.linalg.norm(right) < 1e-6:  # looking along `up`: keep the world's x to the right
        right = np.array([1.0, 0.0, 0.0])
    right = right / np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward], axis=1)
    return Camera(SE3.from_rotation_matrix(rotation, position), fov_y)


def overview(
    low: ArrayLike,
    high: ArrayLike,
    *,
    aspect: float,
    azimuth: float = math.radians(-60),
    elevation: float = math.radians(38),
    fov_y: float = 0.6,
    margin: float = 1.03,
) -> Camera:
    """Camera that just sees a whole box.

    Args:
        low: (3,) smallest corner of the box [m].
        high: (3,) largest corner [m].
        aspect: Width of the picture divided by its height.
        azimuth: Direction from the box to the camera, from +x towards +y [rad].
        elevation: Its angle above the ground; π/2 is the view from the top, with +y up in the picture [rad].
        fov_y: Vertical field of view [rad].
        margin: How much larger than the box the view is.
    """
    lowest, highest = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    middle = (lowest + highest) / 2
    towards = np.array(
        [math.cos(elevation) * math.cos(azimuth), math.cos(elevation) * math.sin(azimuth), math.sin(elevation)]
    )
    steep = elevation > math.radians(89.9)
    aimed = look_at(middle + towards, middle, up=(0.0, 1.0, 0.0) if steep else (0.0, 0.0, 1.0), fov_y=fov_y)
    rotation = aimed.T_world_camera.rotation_matrix()
    picks = np.array([[(i >> k) & 1 for k in range(3)] for i in range(8)])
    corners = (np.where(picks, highest, lowest) - middle) @ rotation
    tan_y = math.tan(fov_y / 2) / margin
    needed = np.maximum(np.abs(corners[:, 0]) / (tan_y * aspect), np.abs(corners[:, 1]) / tan_y) - corners[:, 2]
    return Camera(SE3.from_rotation_matrix(rotation, middle + towards * float(needed.max())), fov_y)


def top_view(low: ArrayLike, high: ArrayLike, *, aspect: float, fov_y: float = 0.35) -> Camera:
    """Camera straight above that just sees a whole box, +x to the right and +y up; see ``overview``."""
    return overview(low, high, aspect=aspect, azimuth=0.0, elevation=math.pi / 2, fov_y=fov_y)


class ChaseCamera:
    """Follows a robot from behind and above, smoothly; keeps in front of walls.

    First-order filters of time constant ``lag`` act on the robot's position and heading, so the picture neither
    shakes with the robot nor flips when it turns.

    Args:
        distance: Behind the robot [m].
        height: Above the robot [m].
        lead: The camera looks at a point this far ahead of the robot [m].
        lag: Time constant [s].
        fov_y: Vertical field of view [rad].
    """

    def __init__(
        self, *, distance: float = 2.2, height: float = 1.25, lead: float = 0.5, lag: float = 0.5, fov_y: float = 0.85
    ) -> None:
        self.distance, self.height, self.lead, self.lag, self.fov_y = distance, height, lead, lag, fov_y
        self._time: float | None = None
        self._base = np.zeros(3)
        self._yaw = 0.0
        self._room = 1.0

    def update(self, T_world_base: SE3, time: float, sight: Sight | None = None) -> Camera:
        """Camera for the robot's pose at ``time`` [s]; times must not go back (a step back starts afresh).

        Args:
            T_world_base: Pose of the robot.
            time: Time of that pose [s].
            sight: Tells which share (0 … 1) of the way from one point to another is free to see through.
        """
        base, yaw = np.asarray(T_world_base.translation, dtype=np.float64), float(T_world_base.yaw)
        step = -1.0 if self._time is None else time - self._time
        gain = 1.0 if step < 0.0 else 1.0 - math.exp(-step / self.lag)
        self._base = self._base + gain * (base - self._base)
        self._yaw += gain * wrap_angle(yaw - self._yaw)
        self._time = time
        heading = np.array([math.cos(self._yaw), math.sin(self._yaw), 0.0])
        target = self._base + self.lead * heading + np.array([0.0, 0.0, 0.15])
        pivot = self._base + np.array([0.0, 0.0, 0.35])
        eye = self._base - self.distance * heading + np.array([0.0, 0.0, self.height])
        free = 1.0 if sight is None else min(1.0, sight(pivot, eye))
        # Draw near at once, or a wall fills the picture; go back slowly.
        self._room = free if free < self._room else self._room + gain * (free - self._room)
        reach = max(0.15, self._room * 0.93) if self._room < 1.0 else 1.0
        # What is lost in distance is gained in height: a robot with its back to a wall is seen from above.
        lift = np.array([0.0, 0.0, 0.5 * self.height * (1.0 - reach)])
        return look_at(pivot + reach * (eye - pivot) + lift, target, fov_y=self.fov_y)
