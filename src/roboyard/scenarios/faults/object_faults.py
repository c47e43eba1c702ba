"""Faults of the objects that an arm handles, and of the footholds that a legged robot steps on."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.config import parameter
from roboyard.description import Box, Link, Material, Model, Visual
from roboyard.description.extent import half_length
from roboyard.geometry import SE3
from roboyard.grids.terrain import Terrain
from roboyard.messages.convert import vector_to_array
from roboyard.messages.time import to_nanoseconds
from roboyard.physics.world import link_pose
from roboyard.scenarios.faults.schema import (
    FaultContext,
    FaultEffect,
    FaultKeyError,
    RobotFault,
    TriggeredFault,
    unknown_value_error,
)
from roboyard.scenarios.run_builder import SimulatedRunBuilder
from roboyard.scenarios.world.terrain import TERRAIN_MODEL, terrain_model

_DROP_DISTANCE = 0.07
"""Distance of a dropped object from the gripper, and its least distance from other objects [m]."""
_ROBOT_CLEARANCE = 0.2
"""Least distance of a dropped object from the robot's base [m]."""
_CONTACT_GAP = 2e-4
"""Gap between objects that are pushed together [m]."""
_SHEET_SIZE = (0.11, 0.06, 4e-4)


@dataclass(frozen=True, kw_only=True)
class _ObjectFaultConfig(RobotFault, TriggeredFault):
    """A fault of an object or place of the scenario; without such an object nothing happens.

    Attributes:
        is_of_places: Whether the fault is of places, which are objects that cannot be moved.
        is_at_gripper: Whether the nearest object is always searched from the gripper.
    """

    is_of_places: ClassVar[bool] = False
    is_at_gripper: ClassVar[bool] = False
    object: str | None = parameter(
        None,
        doc="name of the object; default: the one nearest to the position that the skill reported, or to the gripper",
    )

    @abstractmethod
    def apply(self, scene: ObjectScene) -> str:
        """Apply the fault to an object and return what happened, in words."""

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect on the object."""
        run = context.run
        robot = self.find_robot(run, "gripper")
        if self.object is not None and self.object not in run.objects:
            raise unknown_value_error("object", "object", self.object, run.objects)
        return ObjectFaultEffect(run, robot, self, context.random())


class ObjectFaultEffect(FaultEffect):
    """A fault of an object.

    Args:
        run: The run.
        robot: Name of the robot whose skills and gripper give positions.
        fault: The fault as the scenario gives it.
        rng: Random generator of the fault.
    """

    def __init__(
        self, run: SimulatedRunBuilder, robot: str, fault: _ObjectFaultConfig, rng: np.random.Generator
    ) -> None:
        super().__init__(fault.type)
        self._run, self._robot, self._fault, self._rng = run, robot, fault, rng
        self._skill_position: NDArray[np.float64] | None = None

    def on_trigger(self, event: Any) -> None:
        """Keep the position that the skill reported, in the world frame."""
        if event.has_position:
            self._skill_position = self._run.robots[self._robot].truth.T_world_base @ vector_to_array(event.position)

    def start(self) -> str | None:
        """Apply the fault, and return what happened."""
        gripper_position = _gripper_position(self._run, self._robot)
        reference = gripper_position
        if not self._fault.is_at_gripper and self._skill_position is not None:
            reference = self._skill_position
        objects = _object_poses(self._run, static=self._fault.is_of_places)
        name = self._fault.object or _nearest(objects, reference)
        if name not in objects:
            return f"{self._fault.type}: there is nothing"
        others = {other: pose for other, pose in objects.items() if other != name}
        scene = ObjectScene(self._run, self._robot, name, objects[name], others, reference, gripper_position, self._rng)
        return self._fault.apply(scene)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectScene:
    """The objects of a run at the moment of a fault.

    Attributes:
        run: The run.
        robot: Name of the robot.
        name: Name of the object or place of the fault.
        pose: Pose of this object in the world.
        others: Poses of the other movable objects, or of the other places.
        reference: (3,) position from which the nearest object was searched, in the world [m].
        gripper_position: (3,) middle between the fingers of the robot's grippers, in the world [m].
        rng: Random generator of the fault.
    """

    run: SimulatedRunBuilder
    robot: str
    name: str
    pose: SE3
    others: dict[str, SE3]
    reference: NDArray[np.float64]
    gripper_position: NDArray[np.float64]
    rng: np.random.Generator

    def lying_pose(self, x: float, y: float, floor_height: float) -> SE3:
        """Return a pose of the object on its side, just above the floor, with a random heading."""
        height = floor_height + half_length(self.run.simulation.models[self.name].model) + 1e-4
        return SE3.from_xyz_rpy((x, y, height), (0.5 * math.pi, 0.0, float(self.rng.uniform(-math.pi, math.pi))))

    def drop_position(self) -> tuple[float, float]:
        """Return where on the floor a dropped object comes to lie, clear of the robot and other objects [m]."""
        root = self.run.robots[self.robot].truth.T_world_base.translation
        for _ in range(100):
            angle = float(self.rng.uniform(-math.pi, math.pi))
            direction = np.array((math.cos(angle), math.sin(angle)))
            position = np.asarray(self.gripper_position[:2] + _DROP_DISTANCE * direction)
            if np.linalg.norm(position - root[:2]) < _ROBOT_CLEARANCE:
                position = np.asarray(root[:2] + 1.5 * _ROBOT_CLEARANCE * direction)
            if all(np.linalg.norm(position - other.translation[:2]) > _DROP_DISTANCE for other in self.others.values()):
                break
        return float(position[0]), float(position[1])


@dataclass(frozen=True, kw_only=True)
class KnockOverFault(_ObjectFaultConfig):
    """An object falls on its side."""

    def apply(self, scene: ObjectScene) -> str:
        """Put the object on its side."""
        x, y, z = (float(value) for value in scene.pose.translation)
        scene.run.simulation.world.set_pose(scene.name, scene.lying_pose(x, y, z))
        return f"{scene.name} was knocked over"


@dataclass(frozen=True, kw_only=True)
class RemoveObjectFault(_ObjectFaultConfig):
    """An object disappears."""

    def apply(self, scene: ObjectScene) -> str:
        """Remove the object."""
        scene.run.remove(scene.name)
        return f"{scene.name} was taken away"


@dataclass(frozen=True, kw_only=True)
class DropObjectFault(_ObjectFaultConfig):
    """An object falls out of the robot's gripper."""

    is_at_gripper: ClassVar[bool] = True

    def apply(self, scene: ObjectScene) -> str:
        """Put the object on the floor beside the gripper."""
        scene.run.simulation.world.set_pose(scene.name, scene.lying_pose(*scene.drop_position(), 0.0))
        return f"{scene.name} slipped out of the hand"


@dataclass(frozen=True, kw_only=True)
class PushObjectsTogetherFault(_ObjectFaultConfig):
    """Another object is put beside an object, so that they touch."""

    def apply(self, scene: ObjectScene) -> str:
        """Move the nearest other object beside the object."""
        if not scene.others:
            return f"{self.type}: there is no other thing"
        angle = float(scene.rng.uniform(-math.pi, math.pi))
        other = _nearest(scene.others, scene.pose.translation)
        models = scene.run.simulation.models
        distance = half_length(models[scene.name].model) + half_length(models[other].model) + _CONTACT_GAP
        x, y, z = (float(value) for value in scene.pose.translation)
        pose = SE3.from_xyz_rpy((x + distance * math.cos(angle), y + distance * math.sin(angle), z))
        scene.run.simulation.world.set_pose(other, pose)
        return f"{other} was pushed to {scene.name}"


@dataclass(frozen=True, kw_only=True)
class OccupyPlaceFault(_ObjectFaultConfig):
    """The farthest object is put where the skill is about to set something down."""

    def apply(self, scene: ObjectScene) -> str:
        """Move the farthest object to the position that the skill reported."""
        if not scene.others:
            return f"{self.type}: there is no other thing"

        def distance_to(name: str) -> float:
            return float(np.linalg.norm((scene.others[name].translation - scene.reference)[:2]))

        other = max(scene.others, key=distance_to)
        x, y, z = (float(value) for value in scene.reference)
        scene.run.simulation.world.set_pose(other, SE3.from_xyz_rpy((x, y, z + 1e-3)))
        return f"{other} was put where a thing shall stand"


@dataclass(frozen=True, kw_only=True)
class CoverPlaceFault(_ObjectFaultConfig):
    """A sheet covers a place that is drawn on the floor."""

    is_of_places: ClassVar[bool] = True

    def apply(self, scene: ObjectScene) -> str:
        """Put a sheet on the place."""
        visual = Visual("sheet", Box(_SHEET_SIZE), SE3.identity(), Material("paper", (0.75, 0.72, 0.6, 1.0)))
        sheet = Model("sheet", (Link("sheet", SE3.identity(), visuals=(visual,)),), static=True)
        models = scene.run.simulation.models
        sheet_name = next(f"sheet_{k}" for k in range(1, 10**6) if f"sheet_{k}" not in models)
        scene.run.add_object(sheet, sheet_name, scene.pose @ SE3.from_xyz_rpy((0.0, 0.0, 0.0018)))
        return f"{scene.name} was covered"


@dataclass(frozen=True, kw_only=True)
class RemovePlaceFault(_ObjectFaultConfig):
    """A place that is drawn on the floor disappears."""

    is_of_places: ClassVar[bool] = True

    def apply(self, scene: ObjectScene) -> str:
        """Remove the place."""
        scene.run.remove(scene.name)
        return f"{scene.name} was wiped out"


def _object_poses(run: SimulatedRunBuilder, *, static: bool) -> dict[str, SE3]:
    """Return the poses of the scenario's objects that can be moved, or of those that cannot."""
    models = run.simulation.models
    return {
        name: run.simulation.ground_truth(name).T_world_base
        for name in run.objects
        if name in models and models[name].model.static == static
    }


def _gripper_position(run: SimulatedRunBuilder, robot_name: str) -> NDArray[np.float64]:
    """Return the (3,) middle between the fingers in the world [m]; without a gripper that of the robot's base."""
    robot = run.robots[robot_name]
    links = [link for gripper in robot.groups.grippers.values() for link in gripper.links]
    link_ids = run.simulation.world.addresses(robot_name).links
    if not links:
        return np.asarray(robot.truth.T_world_base.translation)
    positions = np.array([link_pose(run.simulation.world.data, link_ids[link]).translation for link in links])
    return np.asarray(positions.mean(axis=0), dtype=np.float64)


def _nearest(poses: dict[str, SE3], reference: NDArray[np.float64]) -> str:
    """Return the name of the object that is nearest, seen from above; empty if there is none."""
    return min(poses, key=lambda name: float(np.linalg.norm((poses[name].translation - reference)[:2])), default="")


@dataclass(frozen=True, kw_only=True)
class FootholdCollapseFault(RobotFault):
    """The terrain's square on which a robot is about to set a foot, by its step plan, sinks to the lowest height."""

    lead_time: float = parameter(
        0.5, unit="s", low=0.0, high=1e3, doc="least time until the foot lifts off for this foothold, by the plan"
    )

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect on the terrain."""
        run = context.run
        robot = self.find_robot(run, "feet")
        if run.terrain is None or run.terrain.smooth:
            raise FaultKeyError(
                "there is no terrain of level squares",
                location="type",
                valid="a scenario with a terrain: stones, blocks",
            )
        return FootholdCollapseEffect(run, f"{run.robots[robot].namespace}/steps/plan", self.lead_time)


class FootholdCollapseEffect(FaultEffect):
    """Lowers the square of the terrain of the next foothold to the terrain's lowest height.

    Args:
        run: The run; its terrain is of level squares.
        topic: Topic of the robot's step plan.
        min_lead_time: Least time until the foot lifts off, by the plan [s]. No foot stands on the chosen square, or
            comes down on it before.
    """

    def __init__(self, run: SimulatedRunBuilder, topic: str, min_lead_time: float) -> None:
        super().__init__("")
        self._run, self._topic, self._min_lead_time = run, topic, min_lead_time

    def start(self) -> str | None:
        """Lower the square and return where; nothing happens while no foot is about to come down on the terrain."""
        run, terrain = self._run, self._run.terrain
        topic = run.bus.topics.get(self._topic)
        plan: Any = (
            next((publisher.last for publisher in topic.publishers if publisher.last is not None), None)
            if topic
            else None
        )
        if plan is None or terrain is None:
            return "foothold_collapse: there is no plan"
        now = plan.time + (run.bus.now_ns - to_nanoseconds(plan.header.stamp)) * 1e-9
        min_height = float(terrain.heights.min())

        def cell_of(position: Any) -> tuple[int, int]:
            column, row = (
                np.floor((np.array([position.x, position.y]) - terrain.corner) / terrain.cell_size).astype(int).tolist()
            )
            return row, column

        # The plan was published some time ago: feet have moved from plan.time to now.
        feet = dict(enumerate(plan.feet))
        feet |= {swing.leg: swing.target for swing in plan.swings if swing.touch_down_time <= plan.time}
        upcoming_targets = [
            swing.target
            for swing in plan.swings
            if plan.time < swing.touch_down_time and swing.lift_off_time < now + self._min_lead_time
        ]
        occupied_cells = {cell_of(position) for position in (*feet.values(), *upcoming_targets)}
        for swing in plan.swings:
            position, (row, column) = (swing.target.x, swing.target.y), cell_of(swing.target)
            is_on_terrain = 0 <= row < terrain.heights.shape[0] and 0 <= column < terrain.heights.shape[1]
            is_free = is_on_terrain and (row, column) not in occupied_cells
            if (
                swing.lift_off_time >= now + self._min_lead_time
                and is_free
                and terrain.heights[row, column] > min_height + 0.02
            ):
                heights = terrain.heights.copy()
                heights[row, column] = min_height
                self._replace_terrain(replace(terrain, heights=heights))
                return f"the foothold at {position[0]:.2f}, {position[1]:.2f} is gone"
        return "foothold_collapse: no foot is about to come down on it"

    def _replace_terrain(self, terrain: Terrain) -> None:
        run = self._run
        old = next(name for name in run.simulation.models if name.startswith(TERRAIN_MODEL))
        number = int(old.removeprefix(TERRAIN_MODEL).removeprefix("_") or 1) + 1
        run.simulation.remove(old)
        run.add_object(terrain_model(terrain), f"{TERRAIN_MODEL}_{number}", SE3.identity())
        run.terrain = terrain
