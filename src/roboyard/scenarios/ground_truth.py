"""The ground truth of a simulation that metrics compare with: floor plan, surfaces, links, joints, depth images."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.description.sensors import DepthNoise, Noise
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE2, SE3, CameraModel
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.grids.floor_plan import FloorPlan
from roboyard.grids.regions import label_components
from roboyard.physics.compiled_world import SCOPE_SEPARATOR, ModelAddresses
from roboyard.physics.world import link_pose
from roboyard.rendering.geom_triangles import moving_bodies
from roboyard.sensors.cameras.camera import CameraReading, CameraSensor, CameraSnapshot, render_camera_reading
from roboyard.sensors.cameras.render_thread import RenderThread
from roboyard.simulation import Simulation
from roboyard.simulation.ground_truth_maps import make_floor_plan, mark_triangle_voxels, voxelize_surfaces


def ground_truth_map(
    simulation: Simulation,
    *,
    height: float = 0.25,
    extra_heights: Iterable[float] = (),
    resolution: float = 0.05,
    margin: float = 0.5,
    interior_points: Iterable[tuple[float, float]] = (),
) -> OccupancyGrid:
    """Return what stands still in a world as an occupancy map in the world's frame.

    Args:
        simulation: The world; what can move is left out.
        height: Of the cut, that of the lidar [m].
        extra_heights: Of further cuts within the bounds of the first one: obstacles at the height of the robot [m].
        resolution: Side of a cell [m].
        margin: Free space around everything [m].
        interior_points: Points (x, y) [m]; the space that is connected with them is free, the rest unknown.  If none of
            them lies in a free cell, everything that is not occupied is free.

    Raises:
        ConfigError: The resolution is not positive, or there are too many cells.
        InputError: The world has no obstacle at that height.
    """
    expect_kernels(label_components)
    plan = make_floor_plan(simulation.world.model, height=height, resolution=resolution, margin=margin)
    if not plan.occupied.any():
        raise InputError(f"the world has no obstacle at a height of {height} m", valid="a height that a wall has")
    occupied = plan.occupied
    for extra_height in extra_heights:
        occupied = occupied | make_floor_plan(
            simulation.world.model, height=extra_height, resolution=resolution, bounds=plan.extent
        ).occupied  # fmt: skip
    geometry = GridGeometry(resolution, occupied.shape, SE2(*plan.origin, 0.0))
    labels, _ = label_components(~occupied, False)
    interior_cells = geometry.cells_of_points(np.array(list(interior_points), dtype=np.float64).reshape(-1, 2))
    free_labels = {int(labels[row, column]) for row, column in interior_cells[geometry.contains(interior_cells)]} - {0}
    free = np.isin(labels, sorted(free_labels)) if free_labels else ~occupied
    cells = np.where(occupied, OCCUPIED, np.where(free, FREE, UNKNOWN))
    return OccupancyGrid(cells.astype(np.int8), geometry)


class SimulatedGroundTruth:
    """The true state of a simulated world of this moment: a `GroundTruthProvider` for all robots of a run.

    Args:
        simulation: The world.
        robots: Names of the robots, as they are when the truth is asked for.
    """

    def __init__(self, simulation: Simulation, robots: Collection[str]) -> None:
        self._simulation, self._robots = simulation, robots
        self._joints: dict[tuple[str, tuple[str, ...]], _JointAddresses] = {}
        self._movable_bodies: tuple[Any, dict[str, NDArray[np.int64]]] = (None, {})

    def floor_plan(self, height: float, resolution: float, excluded_models: Collection[str] = ()) -> FloorPlan:
        """Return the level cut of the world without robots; see `GroundTruthProvider.floor_plan`."""
        model, data = self._simulation.world.model, self._simulation.world.data
        excluded = (*self._robots, *excluded_models)
        return make_floor_plan(
            model, data, height=height, resolution=resolution, include_moving=True, excluded_models=excluded
        )

    def model_placements(self) -> dict[str, tuple[float, ...]]:
        """Return where the models that are no robots are; see `GroundTruthProvider.model_placements`."""
        positions = self._simulation.world.data.xpos.round(2)
        return {
            name: tuple(positions[bodies].ravel().tolist())
            for name, bodies in self._bodies_by_model().items()
            if name not in self._robots
        }

    def _bodies_by_model(self) -> dict[str, NDArray[np.int64]]:
        """Return the indices of the movable bodies of each model, read again when the world was compiled anew."""
        model, bodies_by_model = self._movable_bodies
        if model is not self._simulation.world.model:
            model = self._simulation.world.model
            is_movable = moving_bodies(model)
            bodies: dict[str, list[int]] = {name: [] for name in self._simulation.models}
            for body in range(1, model.nbody):
                owner = model.body(body).name.split(SCOPE_SEPARATOR)[0]
                if is_movable[body] and owner in bodies:
                    bodies[owner].append(body)
            bodies_by_model = {name: np.array(indices, np.int64) for name, indices in bodies.items()}
            self._movable_bodies = model, bodies_by_model
        return bodies_by_model

    def surface_voxels(
        self, min_corner: NDArray[np.float64], shape: tuple[int, int, int], resolution: float, tolerance: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return voxels that surfaces touch and cross; see `GroundTruthProvider.surface_voxels`."""
        expect_kernels(mark_triangle_voxels)
        scene = self._simulation.visual_scene()
        return voxelize_surfaces(
            scene.model,
            scene.data,
            min_corner,
            shape,
            resolution,
            tolerance=tolerance,
            excluded_models=tuple(self._robots),
        )

    def link_pose(self, robot: str, link: str) -> SE3:
        """Return T_world_link.  Raises UnknownNameError where the robot has no such link."""
        links = self._simulation.world.addresses(robot).links
        if link not in links:
            raise UnknownNameError(f"robot {robot} has no link {link!r}", valid=", ".join(links))
        return link_pose(self._simulation.world.data, links[link])

    def joint_state(self, robot: str, joints: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return positions and velocities of joints; see `GroundTruthProvider.joint_state`."""
        placement, key = self._simulation.world.addresses(robot), (robot, tuple(joints))
        addresses = self._joints.get(key)
        if addresses is None or addresses.placement is not placement:
            by_name = {joint.name: joint for joint in placement.joints}
            found = [by_name[name] for name in joints]
            addresses = self._joints[key] = _JointAddresses(
                placement, np.array([joint.qpos for joint in found], int), np.array([joint.dof for joint in found], int)
            )
        data = self._simulation.world.data
        return data.qpos[addresses.qpos], data.qvel[addresses.dof]

    def depth_error(self, robot: str) -> tuple[float, float, float] | None:
        """Return errors of the first depth camera; see `GroundTruthProvider.depth_error`."""
        if not self._simulation.renderer.is_used or robot not in self._simulation.models:
            return None
        for comparison in compare_depth_images(self._simulation, robot):
            return (
                comparison.median_error(comparison.measured),
                comparison.median_error(comparison.ideal),
                comparison.coverage(comparison.measured),
            )
        return None


@dataclass(frozen=True, slots=True)
class _JointAddresses:
    """Where positions and velocities of joints are in a world as it was compiled."""

    placement: ModelAddresses
    qpos: NDArray[np.int64]
    dof: NDArray[np.int64]


_MAX_CAMERAS = 4
"""Largest number of cameras that are compared."""
_IMAGE_KINDS = frozenset(("image", "depth"))


@dataclass(frozen=True, slots=True)
class DepthComparison:
    """Depth images of one camera of one moment.

    Attributes:
        robot: Name of the robot.
        camera: Name of the camera.
        color: (h, w, 3) color image; None: the camera has none.
        truth: (h, w) depth by exact rays [m]; nan where nothing is in range.
        ideal: The same by the camera without its noise.
        measured: The same by the camera.
        max_range: Of the camera [m].
    """

    robot: str
    camera: str
    color: NDArray[np.uint8] | None
    truth: NDArray[np.float64]
    ideal: NDArray[np.float64]
    measured: NDArray[np.float64]
    max_range: float

    def median_error(self, depth: NDArray[np.float64]) -> float:
        """Return the median error of a depth image where it has depth and truth [m]; nan if nowhere."""
        is_known = np.isfinite(depth) & np.isfinite(self.truth)
        return float(np.median(np.abs(depth - self.truth)[is_known])) if is_known.any() else float("nan")

    def coverage(self, depth: NDArray[np.float64]) -> float:
        """Return the share of the pixels with a true depth that have a depth."""
        is_in_range = np.isfinite(self.truth)
        return float(np.isfinite(depth)[is_in_range].mean()) if is_in_range.any() else 0.0

    @property
    def summary(self) -> str:
        """Errors and coverage in one line."""
        ideal, measured = self.median_error(self.ideal), self.median_error(self.measured)
        return (
            f"{self.robot}, {self.camera}: median error {1e3 * ideal:.2f} mm ideal, {1e3 * measured:.1f} mm measured; "
            f"{self.coverage(self.measured):.1%} of the pixels within its range are"
        )


def compare_depth_images(simulation: Simulation, robot: str | None = None) -> list[DepthComparison]:
    """Compare the images of all depth cameras, or of one robot's, of this moment; of four cameras at most."""
    cameras = [
        (sensor, sensor.spec.depth)
        for name in (simulation.models if robot is None else (robot,))
        for sensor in simulation.sensors(name)
        if isinstance(sensor, CameraSensor) and sensor.spec.depth is not None
    ]
    if not cameras:
        return []
    ray_renderer = RenderThread("rays")
    try:
        return [
            _compare_camera(simulation, sensor, camera_model, ray_renderer)
            for sensor, camera_model in cameras[:_MAX_CAMERAS]
        ]
    finally:
        ray_renderer.close()


def _compare_camera(
    simulation: Simulation, sensor: CameraSensor, camera_model: CameraModel, ray_renderer: RenderThread
) -> DepthComparison:
    spec = sensor.spec
    capture: CameraSnapshot = sensor.capture()
    ideal_spec = replace(spec, depth_noise=DepthNoise(), noise=Noise())
    measured = sensor.render(capture, _IMAGE_KINDS).result()
    ideal: CameraReading = simulation.render_thread.submit(
        render_camera_reading, capture, ideal_spec, _IMAGE_KINDS
    ).result()
    T_world_depth = capture.T_world_optical @ (spec.T_color_depth if spec.color is not None else SE3.identity())
    truth = ray_renderer.submit(
        _render_depth, capture, camera_model, T_world_depth, min(spec.near, spec.depth_near)
    ).result()
    is_in_range = (truth >= spec.depth_near) & (truth <= spec.depth_far)
    return DepthComparison(
        sensor.robot, sensor.sensor.name, measured.color, np.where(is_in_range, truth, np.nan).astype(np.float64),
        _valid_depth(ideal, camera_model), _valid_depth(measured, camera_model), spec.depth_far,
    )  # fmt: skip


def _render_depth(
    renderer: Any, capture: CameraSnapshot, camera_model: CameraModel, T_world_optical: SE3, near_clip: float
) -> NDArray[np.float32]:
    renderer.set_scene(capture.scene, capture.state)
    depth: NDArray[np.float32] = renderer.render_view(camera_model, T_world_optical, near_clip, with_color=False).depth
    return depth


def _valid_depth(reading: CameraReading, camera_model: CameraModel) -> NDArray[np.float64]:
    no_depth = np.full((camera_model.height, camera_model.width), np.nan)
    values = no_depth if reading.depth is None else np.asarray(reading.depth, dtype=np.float64)
    return np.where(np.isfinite(values) & (values > 0.0), values, np.nan)
