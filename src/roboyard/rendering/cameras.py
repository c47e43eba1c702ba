"""Cameras of renderers: fixed views, views of a whole world, a camera that follows a robot; rays of pixels.

Images of cameras with lens distortion are remapped from wider pinhole images, by a table that is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry import SE3, CameraModel, wrap_angle
from roboyard.geometry.arrays import F32, U8, Array
from roboyard.rendering.float32 import ExampleArguments
from roboyard.rendering.geom_triangles import INFINITE_PLANE_HALF_SIZE, moving_bodies

VisibilityFunction = Callable[[NDArray[np.float64], NDArray[np.float64]], float]


@dataclass(frozen=True, slots=True)
class PinholeIntrinsics:
    """Intrinsic parameters of a pinhole camera.

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
    def from_camera_model(cls, camera_model: CameraModel) -> PinholeIntrinsics:
        """Return the intrinsics of a camera model without distortion, whose pixel centers have whole coordinates."""
        return cls(camera_model.fx, camera_model.fy, camera_model.cx + 0.5, camera_model.cy + 0.5)


@dataclass(frozen=True, slots=True)
class RenderCamera:
    """A pinhole camera without distortion; its optical axis passes through the image center without ``intrinsics``.

    Attributes:
        T_world_camera: World from optical frame: x right, y down, z into the image (REP 103).
        fov_y: Full vertical field of view [rad].
        orthographic_height: Height of an orthographic view [m]; None: perspective.
        intrinsics: Instead of ``fov_y``: focal lengths and axis of a perspective image [px].
        near: Near clipping plane [m], measured along the axis.
    """

    T_world_camera: SE3
    fov_y: float = 0.8
    orthographic_height: float | None = None
    intrinsics: PinholeIntrinsics | None = None
    near: float = 0.02

    def focal_length(self, height: int) -> float:
        """Focal length for an image of this height [px]; [px/m] where orthographic."""
        if self.intrinsics is not None:
            return self.intrinsics.fy
        return (
            height / self.orthographic_height
            if self.orthographic_height is not None
            else 0.5 * height / math.tan(0.5 * self.fov_y)
        )

    def compute_intrinsics(self, width: int, height: int) -> PinholeIntrinsics:
        """Return the intrinsics for an image of this size [px]."""
        if self.intrinsics is not None:
            return self.intrinsics
        focal = self.focal_length(height)
        return PinholeIntrinsics(focal, focal, width / 2, height / 2)


def look_at(eye: ArrayLike, target: ArrayLike, *, up: ArrayLike = (0.0, 0.0, 1.0), fov_y: float = 0.8) -> RenderCamera:
    """Return a camera at ``eye`` with ``target`` in the center of the image (3,) [m]; ``up`` points up in it.

    Raises:
        InputError: The two points are equal or not finite.
    """
    position = np.asarray(eye, dtype=np.float64)
    forward = np.asarray(target, dtype=np.float64) - position
    distance = float(np.linalg.norm(forward))
    if not 1e-9 < distance < math.inf:
        raise InputError(
            f"a camera at {position.tolist()} that looks at {np.asarray(target, dtype=np.float64).tolist()}",
            valid="two different points of finite coordinates",
        )
    forward = forward / distance
    right = np.cross(forward, np.asarray(up, dtype=np.float64))
    if np.linalg.norm(right) < 1e-6:  # looking along `up`: keep the world's x to the right
        right = np.array([1.0, 0.0, 0.0])
    right = right / np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward], axis=1)
    return RenderCamera(SE3.from_rotation_matrix(rotation, position), fov_y)


def overview(
    low: ArrayLike,
    high: ArrayLike,
    *,
    aspect: float,
    azimuth: float = math.radians(-60),
    elevation: float = math.radians(38),
    fov_y: float = 0.6,
    margin: float = 1.03,
) -> RenderCamera:
    """Camera that just sees a whole box.

    Args:
        low: (3,) smallest corner of the box [m].
        high: (3,) largest corner [m].
        aspect: Width of the image divided by its height.
        azimuth: Direction from the box to the camera, from +x towards +y [rad].
        elevation: Its angle above the ground; π/2 is the view from the top, with +y up in the image [rad].
        fov_y: Vertical field of view [rad].
        margin: How much larger than the box the view is.
    """
    box_min, box_max = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    center = (box_min + box_max) / 2
    direction_to_camera = np.array(
        [math.cos(elevation) * math.cos(azimuth), math.cos(elevation) * math.sin(azimuth), math.sin(elevation)]
    )
    is_vertical = elevation > math.radians(89.9)
    target_camera = look_at(
        center + direction_to_camera, center, up=(0.0, 1.0, 0.0) if is_vertical else (0.0, 0.0, 1.0), fov_y=fov_y
    )
    rotation = target_camera.T_world_camera.rotation_matrix()
    corner_bits = np.array([[(i >> k) & 1 for k in range(3)] for i in range(8)])
    corners = (np.where(corner_bits, box_max, box_min) - center) @ rotation
    tan_y = math.tan(fov_y / 2) / margin
    required_distance = (
        np.maximum(np.abs(corners[:, 0]) / (tan_y * aspect), np.abs(corners[:, 1]) / tan_y) - corners[:, 2]
    )
    return RenderCamera(
        SE3.from_rotation_matrix(rotation, center + direction_to_camera * float(required_distance.max())), fov_y
    )


def top_view(low: ArrayLike, high: ArrayLike, *, aspect: float, fov_y: float = 0.35) -> RenderCamera:
    """Camera straight above that just sees a whole box, +x to the right and +y up; see ``overview``."""
    return overview(low, high, aspect=aspect, azimuth=0.0, elevation=math.pi / 2, fov_y=fov_y)


class ChaseCamera:
    """Follows a robot from behind and above, smoothly; keeps in front of walls.

    First-order filters of time constant ``time_constant`` act on the robot's position and heading, so the image neither
    shakes with the robot nor flips when it turns.

    Args:
        distance: Behind the robot [m].
        height: Above the robot [m].
        look_ahead: The camera looks at a point this far ahead of the robot [m].
        time_constant: Time constant [s].
        fov_y: Vertical field of view [rad].
    """

    def __init__(
        self,
        *,
        distance: float = 2.2,
        height: float = 1.25,
        look_ahead: float = 0.5,
        time_constant: float = 0.5,
        fov_y: float = 0.85,
    ) -> None:
        self.distance, self.height, self.look_ahead, self.time_constant, self.fov_y = (
            distance,
            height,
            look_ahead,
            time_constant,
            fov_y,
        )
        self._time: float | None = None
        self._position = np.zeros(3)
        self._yaw = 0.0
        self._free_fraction = 1.0

    def update(
        self, T_world_base: SE3, time: float, find_visible_fraction: VisibilityFunction | None = None
    ) -> RenderCamera:
        """Camera for the robot's pose at ``time`` [s]; times must not go back (a step back starts afresh).

        Args:
            T_world_base: Pose of the robot.
            time: Time of that pose [s].
            find_visible_fraction: Returns the visible fraction (0 … 1) of the line from one point to another.
        """
        base, yaw = np.asarray(T_world_base.translation, dtype=np.float64), float(T_world_base.yaw)
        elapsed = -1.0 if self._time is None else time - self._time
        gain = 1.0 if elapsed < 0.0 else 1.0 - math.exp(-elapsed / self.time_constant)
        self._position = self._position + gain * (base - self._position)
        self._yaw += gain * wrap_angle(yaw - self._yaw)
        self._time = time
        heading = np.array([math.cos(self._yaw), math.sin(self._yaw), 0.0])
        target = self._position + self.look_ahead * heading + np.array([0.0, 0.0, 0.15])
        pivot = self._position + np.array([0.0, 0.0, 0.35])
        eye = self._position - self.distance * heading + np.array([0.0, 0.0, self.height])
        free_fraction = 1.0 if find_visible_fraction is None else min(1.0, find_visible_fraction(pivot, eye))
        # Draw near at once, or a wall fills the image; go back slowly.
        self._free_fraction = (
            free_fraction
            if free_fraction < self._free_fraction
            else self._free_fraction + gain * (free_fraction - self._free_fraction)
        )
        distance_fraction = max(0.15, self._free_fraction * 0.93) if self._free_fraction < 1.0 else 1.0
        # A shorter distance gives a larger height: the camera sees a robot with its back to a wall from above.
        lift = np.array([0.0, 0.0, 0.5 * self.height * (1.0 - distance_fraction)])
        return look_at(pivot + distance_fraction * (eye - pivot) + lift, target, fov_y=self.fov_y)


def _example_camera_rays() -> ExampleArguments:
    yield np.zeros((3, 3), np.float32), np.zeros(3, np.float32), np.zeros((1, 2), np.float32), 1.0, 1.0, 1.0, 1.0, False


@kernel(examples=_example_camera_rays, error_model="numpy")
def make_camera_rays(
    rotation: F32,
    position: F32,
    pixels: F32,
    focal_x: float,
    focal_y: float,
    center_x: float,
    center_y: float,
    is_orthographic: bool,
) -> tuple[F32, F32]:
    """Rays through image points.

    Args:
        rotation: (3, 3) world from optical frame (x right, y down, z forward).
        position: (3,) of the camera in the world [m].
        pixels: (n, 2) image points (column, row) [px]; a pixel's middle is at +0.5.
        focal_x: Focal length along the rows [px]; with ``is_orthographic`` pixels per meter instead.
        focal_y: Along the columns.
        center_x: Column of the optical axis [px].
        center_y: Row of the optical axis [px].
        is_orthographic: Whether all rays are parallel to z and have different origins.
    """
    count = len(pixels)
    origins, directions = np.empty((count, 3), np.float32), np.empty((count, 3), np.float32)
    for i in range(count):
        x, y = (pixels[i, 0] - center_x) / focal_x, (pixels[i, 1] - center_y) / focal_y
        scale = 0.0 if is_orthographic else 1.0 / math.sqrt(x * x + y * y + 1.0)
        forward = 1.0 if is_orthographic else scale
        for k in range(3):
            directions[i, k] = scale * (rotation[k, 0] * x + rotation[k, 1] * y) + forward * rotation[k, 2]
            shift = rotation[k, 0] * x + rotation[k, 1] * y if is_orthographic else 0.0
            origins[i, k] = position[k] + shift
    return origins, directions


MAX_PINHOLE_SLOPE = math.tan(math.radians(65.0))
"""Largest slope of a ray that a pinhole image contains: for larger slopes the image would be too large."""
SURFACE_EDGE_DEPTH_RATIO = 0.02
"""Depths of neighboring pixels that differ by this fraction belong to two surfaces."""


@dataclass(frozen=True, slots=True)
class LensRemap:
    """How to compute the image of a distorted camera from a wider pinhole image.

    Attributes:
        width: Width of the wider image [px].
        height: Height of the wider image [px].
        intrinsics: Intrinsics of the wider image.
        source_pixels: (h, w, 2) float32 column and row of each pixel in the wider image, whose pixel centers have whole
            coordinates; NaN: none.
    """

    width: int
    height: int
    intrinsics: PinholeIntrinsics
    source_pixels: F32


def make_lens_remap(camera_model: CameraModel, rays: F32) -> LensRemap | None:
    """Make the remap of a camera model; None if its field of view is too wide for a pinhole image.

    Args:
        camera_model: Camera model with distortion.
        rays: (h, w, 3) unit rays of its pixels.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.where(rays[..., 2:] > 0.0, rays[..., :2] / rays[..., 2:], np.nan)
    behind = np.isfinite(rays[..., 2]) & (rays[..., 2] <= 0.0)
    if behind.any() or not np.isfinite(slopes).any() or float(np.nanmax(np.abs(slopes))) > MAX_PINHOLE_SLOPE:
        return None
    low, high = np.nanmin(slopes, axis=(0, 1)), np.nanmax(slopes, axis=(0, 1))
    # One more pixel on each side, so that every pixel has four neighbors.
    width = math.ceil((high[0] - low[0]) * camera_model.fx) + 3
    height = math.ceil((high[1] - low[1]) * camera_model.fy) + 3
    cx, cy = 1.5 - float(low[0]) * camera_model.fx, 1.5 - float(low[1]) * camera_model.fy
    source_pixels = slopes * np.array([camera_model.fx, camera_model.fy]) + np.array([cx - 0.5, cy - 0.5])
    return LensRemap(
        width, height, PinholeIntrinsics(camera_model.fx, camera_model.fy, cx, cy), source_pixels.astype(np.float32)
    )


def remap_color(image: U8, remap: LensRemap) -> U8:
    """Return the colors (h, w, 3) of the distorted image, interpolated between four pixels; black without a ray."""
    out = np.zeros((*remap.source_pixels.shape[:2], 3), np.uint8)
    _interpolate_color(image, remap.source_pixels, out)
    return out


def remap_depth(depth: F32, remap: LensRemap) -> F32:
    """Return the depth (h, w) of the distorted image along the axis [m].

    It is interpolated where the four pixels lie on one surface; elsewhere it is the depth of the nearest pixel.
    """
    out = np.zeros(remap.source_pixels.shape[:2], np.float32)
    _interpolate_depth(depth, remap.source_pixels, out)
    return out


def _example_interpolate_color() -> list[tuple[object, ...]]:
    image = np.zeros((1, 1, 3), np.uint8)
    return [(image, np.zeros((1, 1, 2), np.float32), image)]


@kernel(examples=_example_interpolate_color, error_model="numpy")
def _interpolate_color(image: U8, source_pixels: F32, out: U8) -> None:
    height, width = out.shape[:2]
    for row in range(height):
        for column in range(width):
            x, y = source_pixels[row, column, 0], source_pixels[row, column, 1]
            if x != x:
                continue
            i, j = min(max(int(x), 0), image.shape[1] - 2), min(max(int(y), 0), image.shape[0] - 2)
            a, b = x - i, y - j
            for c in range(3):
                top = (1.0 - a) * image[j, i, c] + a * image[j, i + 1, c]
                bottom = (1.0 - a) * image[j + 1, i, c] + a * image[j + 1, i + 1, c]
                out[row, column, c] = np.uint8(min(max((1.0 - b) * top + b * bottom + 0.5, 0.0), 255.0))


def _example_interpolate_depth() -> list[tuple[object, ...]]:
    image = np.zeros((1, 1), np.float32)
    return [(image, np.zeros((1, 1, 2), np.float32), image)]


@kernel(examples=_example_interpolate_depth, error_model="numpy")
def _interpolate_depth(depth: F32, source_pixels: F32, out: F32) -> None:
    height, width = out.shape
    for row in range(height):
        for column in range(width):
            x, y = float(source_pixels[row, column, 0]), float(source_pixels[row, column, 1])
            if x != x:
                continue
            i, j = min(max(int(x), 0), depth.shape[1] - 2), min(max(int(y), 0), depth.shape[0] - 2)
            a, b = x - i, y - j
            nearest = depth[j + (1 if b > 0.5 else 0), i + (1 if a > 0.5 else 0)]
            out[row, column] = nearest
            w00, w01, w10, w11 = depth[j, i], depth[j, i + 1], depth[j + 1, i], depth[j + 1, i + 1]
            low, high = min(min(w00, w01), min(w10, w11)), max(max(w00, w01), max(w10, w11))
            if low > 0.0 and high - low < SURFACE_EDGE_DEPTH_RATIO * high:
                # Inverse depth is linear in the image of a plane.
                top = (1.0 - a) / w00 + a / w01
                bottom = (1.0 - a) / w10 + a / w11
                out[row, column] = np.float32(1.0 / ((1.0 - b) * top + b * bottom))


OUTLIER_DISTANCE_RATIO = 30.0
"""An object this many times farther from the center than most objects is a stray."""


def world_bounds(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Array, Array]:
    """Lowest and highest corner (3,) of the box around everything but endless ground and strays [m].

    An empty world gives a few meters around the origin.  A stray is an object so far from all others (a book that a
    typing error put 300 km up) that nothing else would be visible in an image that contains it.
    """
    low, high = [], []
    for geom in range(model.ngeom):
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
            half = np.array([*model.geom_size[geom][:2], 0.0])
            if (half[:2] <= 0).any() or (half[:2] > INFINITE_PLANE_HALF_SIZE).any():
                continue
            box_center = np.zeros(3)
        else:
            box_center, half = np.split(np.asarray(model.geom_aabb[geom], dtype=np.float64), 2)
        rotation = data.geom_xmat[geom].reshape(3, 3)
        if (
            model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_MESH
        ):  # rotated to its principal axes: its box would be too large
            points = _vertices(model, int(model.geom_dataid[geom])) @ rotation.T + data.geom_xpos[geom]
            low.append(points.min(axis=0))
            high.append(points.max(axis=0))
            continue
        center, half_extent = data.geom_xpos[geom] + rotation @ box_center, np.abs(rotation) @ half
        low.append(center - half_extent)
        high.append(center + half_extent)
    if not low:
        return np.array([-3.0, -3.0, 0.0]), np.array([3.0, 3.0, 1.0])
    lows, highs = np.array(low), np.array(high)
    centers = (lows + highs) / 2
    distances = np.linalg.norm(centers - np.median(centers, axis=0), axis=1)
    typical_distance = max(
        float(np.quantile(distances, 0.8)),
        float(np.max(highs - lows, axis=1)[distances <= np.median(distances)].max()),
        1.0,
    )
    is_inlier = distances <= OUTLIER_DISTANCE_RATIO * typical_distance
    return lows[is_inlier].min(axis=0), highs[is_inlier].max(axis=0)


def _vertices(model: mujoco.MjModel, mesh: int) -> Array:
    start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    return np.asarray(model.mesh_vert[start : start + count], dtype=np.float64)


def body_extent(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> float:
    """Return the radius around the origin of a body that holds the geoms of its kinematic subtree [m]."""
    subtree = {body}
    for other in range(body + 1, model.nbody):
        if int(model.body_parentid[other]) in subtree:
            subtree.add(other)
    geoms = [g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in subtree]
    distances = [np.linalg.norm(data.geom_xpos[g] - data.xpos[body]) + model.geom_rbound[g] for g in geoms]
    return float(max(distances, default=0.3))


def make_visibility_function(model: mujoco.MjModel, data: mujoco.MjData) -> VisibilityFunction:
    """Make the function for ``ChaseCamera.update``: the fraction of a line that no static geom blocks."""
    moving_body = moving_bodies(model)
    visible_groups = np.array([1, 1, 1, 0, 0, 0], dtype=np.uint8)
    geom = np.zeros(1, np.int32)

    def find_visible_fraction(start: Array, end: Array) -> float:
        displacement = end - start
        length = float(np.linalg.norm(displacement))
        if length < 1e-9:
            return 1.0
        direction, traveled = displacement / length, 0.0
        for _ in range(16):  # moving bodies do not block the view
            distance = mujoco.mj_ray(
                model, data, start + traveled * direction, direction, visible_groups, 1, -1, geom, None
            )
            if distance < 0 or traveled + distance >= length:
                return 1.0
            traveled += distance
            if moving_body[model.geom_bodyid[geom[0]]] == 0:
                return float(traveled / length)
            traveled += 1e-3
        return 1.0

    return find_visible_fraction
