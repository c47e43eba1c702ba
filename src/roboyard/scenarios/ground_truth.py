"""The ground truth of a simulation that metrics compare with: arm, floor plan, surfaces, depth images."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.description.sensors import DepthNoise, Noise
from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3, CameraModel
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.grids.floor_plan import FloorPlan
from roboyard.grids.regions import label_components
from roboyard.kinematics import Chain
from roboyard.safety.capsules import LinkCapsules
from roboyard.safety.evaluation import ArmState
from roboyard.simulation import Simulation
from roboyard.simulation.assembly import Placement
from roboyard.simulation.floor_plan import floor_plan
from roboyard.simulation.sensors.cameras.camera import Camera, CameraReading, Shot, develop
from roboyard.simulation.sensors.cameras.studio import Studio
from roboyard.simulation.surface_voxels import surface_voxels, voxelise
from roboyard.simulation.truth import link_pose

if TYPE_CHECKING:
    from roboyard.scenarios.robot_handle import RobotHandle
    from roboyard.simulation import Simulation


class SimulatedArmGroundTruth:
    """Looks at a robot as it stands at the moment.

    Args:
        simulation: Where it stands.
        robot: Its groups are read when they are asked for.
    """

    def __init__(self, simulation: Simulation, robot: RobotHandle) -> None:
        self._simulation, self._robot = simulation, robot
        self._placement: Placement | None = None  # as the world was compiled last, and where its joints are in it
        self._joint_addresses = np.zeros(0, int), np.zeros(0, int)

    def root_link(self) -> str:
        """Name of its root link."""
        return self._robot.groups.root

    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints of its first group, in their order; none where it has no groups."""
        groups = self._robot.groups
        return groups.chain().joints if groups.groups else ()

    def tip_poses(self, group: str) -> tuple[SE3, SE3]:
        """True poses in the world of its root link, and of the tip of a group. Raises UnknownNameError."""
        groups = self._robot.groups
        link_placements, data = self._simulation.placement(self._robot.name).links, self._simulation.data
        tip_frame = groups.group(group).tip
        frame = next((candidate for candidate in groups.model.frames if candidate.name == tip_frame), None)
        link, T_link_tip = (tip_frame, SE3.identity()) if frame is None else (frame.link, frame.T_link_frame)
        return link_pose(data, link_placements[groups.root]), link_pose(data, link_placements[link]) @ T_link_tip

    def state(self) -> ArmState | None:
        """How its first group stands and moves; None where it has no groups."""
        if not self._robot.groups.groups:
            return None
        chain, capsules = self._chain_and_capsules
        placement, data = self._simulation.placement(self._robot.name), self._simulation.data
        if placement is not self._placement:
            placements = {joint.name: joint for joint in placement.joints}
            joints = [placements[name] for name in chain.joints]
            self._placement = placement
            self._joint_addresses = (
                np.array([joint.qpos for joint in joints], int),
                np.array([joint.dof for joint in joints], int),
            )
        q, velocity = data.qpos[self._joint_addresses[0]], data.qvel[self._joint_addresses[1]]
        return ArmState(chain, capsules, link_pose(data, placement.links[chain.base]).inverse(), q, velocity)

    @cached_property
    def _chain_and_capsules(self) -> tuple[Chain, LinkCapsules]:
        chain = self._robot.groups.chain()
        return chain, LinkCapsules.of(self._robot.groups.model, chain)

    def joint_limits(self, joints: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Limits (n,) of velocity and acceleration of joints; infinite where nobody states one."""
        from roboyard.manipulation.timing import JointLimits

        groups = self._robot.groups
        limits_by_joint: dict[str, tuple[float, float]] = {}
        for name in groups.groups:
            limits = JointLimits.of(groups.chain(name))
            limits_by_joint |= dict(
                zip(limits.joints, zip(limits.velocity, limits.acceleration, strict=True), strict=True)
            )
        rows = [limits_by_joint.get(name, (np.inf, np.inf)) for name in joints]
        velocity, acceleration = np.array(rows, dtype=np.float64).reshape(-1, 2).T
        return velocity, acceleration


def ground_truth_map(
    simulation: Simulation,
    *,
    height: float = 0.25,
    extra_heights: Iterable[float] = (),
    resolution: float = 0.05,
    margin: float = 0.5,
    interior_points: Iterable[tuple[float, float]] = (),
) -> OccupancyGrid:
    """What stands still in a world, cut at a height, in the world's frame.

    Args:
        simulation: The world; what can move is left out.
        height: Of the cut [m]; that of the laser.
        also: Heights of further cuts within the first one's bounds [m]: what a robot would bump into that lies between.
        resolution: Side of a cell [m].
        margin: Free space around everything [m].
        inside: Places (x, y) [m]; what they are connected with is free, the rest unknown. Without any of them in
            a free cell, all that is not solid is free.

    Raises:
        ConfigError: a resolution that is not positive, or too many cells.
        InputError: nothing stands there at that height.
    """
    expect_kernels(label_components)
    plan = floor_plan(simulation.model, height=height, resolution=resolution, margin=margin)
    if not plan.occupied.any():
        raise InputError(f"nothing stands in the world at a height of {height} m", valid="a height that a wall has")
    occupied = plan.occupied
    for extra_height in extra_heights:
        occupied = occupied | floor_plan(
            simulation.model, height=extra_height, resolution=resolution, bounds=plan.extent
        ).occupied  # fmt: skip
    geometry = GridGeometry(resolution, occupied.shape, SE2(*plan.origin, 0.0))
    labels, _ = label_components(~occupied, False)
    interior_cells = geometry.cells_of_points(np.array(list(interior_points), dtype=np.float64).reshape(-1, 2))
    free_labels = {int(labels[row, column]) for row, column in interior_cells[geometry.contains(interior_cells)]} - {0}
    free = np.isin(labels, sorted(free_labels)) if free_labels else ~occupied
    cells = np.where(occupied, OCCUPIED, np.where(free, FREE, UNKNOWN))
    return OccupancyGrid(cells.astype(np.int8), geometry)


class WorldGroundTruth:
    """Looks at a world as it stands at the moment.

    Args:
        simulation: The world.
        robots: Names of what is left out, as they are then.
    """

    def __init__(self, simulation: Simulation, robots: Collection[str]) -> None:
        self._simulation, self._robots = simulation, robots

    def floor_plan(self, height: float, resolution: float) -> FloorPlan:
        """A level cut at a height [m], with cells of a side [m]."""
        model, data = self._simulation.model, self._simulation.data
        return floor_plan(model, data, height=height, resolution=resolution, moving=True, without=tuple(self._robots))

    def surface_voxels(
        self, min_corner: NDArray[np.float64], shape: tuple[int, int, int], resolution: float, tolerance: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Voxels that surfaces touch and cross, see `surface_voxels`."""
        expect_kernels(voxelise)
        scene = self._simulation.scene()
        return surface_voxels(
            scene.model, scene.data, min_corner, shape, resolution, tolerance=tolerance, without=tuple(self._robots)
        )


_MAX_CAMERAS = 4
"""Cameras that are looked through."""
_IMAGE_KINDS = frozenset(("image", "depth"))


@dataclass(frozen=True, slots=True)
class DepthComparison:
    """What one depth camera saw at the end of a run.

    Attributes:
        robot: Whose.
        camera: Its name.
        colour: (h, w, 3); None: it has none.
        truth: (h, w) depth by exact rays [m], not a number where nothing is within its range.
        ideal: The same by the camera without its errors.
        measured: The same as it measures it.
        far: Its range [m].
    """

    robot: str
    camera: str
    color: NDArray[np.uint8] | None
    truth: NDArray[np.float64]
    ideal: NDArray[np.float64]
    measured: NDArray[np.float64]
    max_range: float

    def median_error(self, depth: NDArray[np.float64]) -> float:
        """Median distance from the truth where both are known [m]; not a number if nowhere."""
        is_known = np.isfinite(depth) & np.isfinite(self.truth)
        return float(np.median(np.abs(depth - self.truth)[is_known])) if is_known.any() else float("nan")

    def coverage(self, depth: NDArray[np.float64]) -> float:
        """Share of the pixels with a true depth that have one."""
        is_in_range = np.isfinite(self.truth)
        return float(np.isfinite(depth)[is_in_range].mean()) if is_in_range.any() else 0.0

    @property
    def summary(self) -> str:
        """Its figures, in a line."""
        ideal, measured = self.median_error(self.ideal), self.median_error(self.measured)
        return (
            f"{self.robot}, {self.camera}: median error {1e3 * ideal:.2f} mm ideal, {1e3 * measured:.1f} mm measured; "
            f"{self.coverage(self.measured):.1%} of the pixels within its range are"
        )


def measure_depth_error(simulation: Simulation, robot: str) -> tuple[float, float, float] | None:
    """Of a robot's first depth camera, see `roboyard.simulation.evaluation.Sight`."""
    if not simulation.looks.used or robot not in simulation.models:
        return None
    for comparison in compare_depth_images(simulation, robot):
        return (
            comparison.median_error(comparison.measured),
            comparison.median_error(comparison.ideal),
            comparison.coverage(comparison.measured),
        )
    return None


def compare_depth_images(simulation: Simulation, robot: str | None = None) -> list[DepthComparison]:
    """Of each depth camera, or of one robot's, at this instant; at most a few."""
    cameras = [
        (sensor, sensor.spec.depth)
        for name in (simulation.models if robot is None else (robot,))
        for sensor in simulation.sensors(name)
        if isinstance(sensor, Camera) and sensor.spec.depth is not None
    ]
    if not cameras:
        return []
    ray_renderer = Studio("rays")
    try:
        return [
            _compare_camera(simulation, sensor, camera_model, ray_renderer)
            for sensor, camera_model in cameras[:_MAX_CAMERAS]
        ]
    finally:
        ray_renderer.close()


def _compare_camera(
    simulation: Simulation, sensor: Camera, camera_model: CameraModel, ray_renderer: Studio
) -> DepthComparison:
    spec = sensor.spec
    capture: Shot = sensor.shoot()
    ideal_spec = replace(spec, depth_noise=DepthNoise(), noise=Noise())
    measured = sensor.develop(capture, _IMAGE_KINDS).result()
    ideal: CameraReading = simulation.studio.submit(develop, capture, ideal_spec, _IMAGE_KINDS).result()
    T_world_depth = capture.T_world_optical @ (spec.T_color_depth if spec.color is not None else SE3.identity())
    truth = ray_renderer.submit(
        _render_depth, capture, camera_model, T_world_depth, min(spec.near, spec.depth_near)
    ).result()
    is_in_range = (truth >= spec.depth_near) & (truth <= spec.depth_far)
    return DepthComparison(
        sensor.robot, sensor.sensor.name, measured.colour, np.where(is_in_range, truth, np.nan).astype(np.float64),
        _valid_depth(ideal, camera_model), _valid_depth(measured, camera_model), spec.depth_far,
    )  # fmt: skip


def _render_depth(
    renderer: Any, capture: Shot, camera_model: CameraModel, T_world_optical: SE3, near_clip: float
) -> NDArray[np.float32]:
    renderer.enter(capture.scene, capture.posture)
    depth: NDArray[np.float32] = renderer.view(camera_model, T_world_optical, near_clip, colour=False).depth
    return depth


def _valid_depth(reading: CameraReading, camera_model: CameraModel) -> NDArray[np.float64]:
    no_depth = np.full((camera_model.height, camera_model.width), np.nan)
    values = no_depth if reading.depth is None else np.asarray(reading.depth, dtype=np.float64)
    return np.where(np.isfinite(values) & (values > 0.0), values, np.nan)
