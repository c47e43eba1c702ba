"""Faults of the objects that an arm handles, and of the footholds that a legged robot steps on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Box, Link, Material, Model, Visual
from roboyard.description.extent import half_length
from roboyard.geometry import SE3
from roboyard.messages.convert import vector_to_array
from roboyard.messages.time import to_nanoseconds
from roboyard.scenarios.faults.schema import ObjectFault
from roboyard.scenarios.world.terrain import TERRAIN_MODEL, terrain_model
from roboyard.simulation.carrying import put
from roboyard.simulation.truth import link_pose

if TYPE_CHECKING:
    from roboyard.scenarios.run import Run


_DROP_DISTANCE = 0.07
"""What slips out of the hand comes to lie so far aside, and from other things [m]."""
_ROBOT_CLEARANCE = 0.2
"""Nor does it lie nearer to the robot's root [m]."""
_CONTACT_GAP = 2e-4
"""Between things that are pushed together [m]."""
_SHEET_SIZE = (0.11, 0.06, 4e-4)
_DESCRIPTIONS = {
    "knock_over": "{} was knocked over",
    "remove_object": "{} was taken away",
    "drop_object": "{} slipped out of the hand",
    "cover_place": "{} was covered",
    "remove_place": "{} was wiped out",
}


class ObjectFaultInjector:
    """One such deed.

    Args:
        run: Where it happens.
        robot: Whose skills and hand it is about.
        fault: What the scenario says.
        rng: Draws what is left open.
    """

    def __init__(self, run: Run, robot: str, fault: ObjectFault, rng: np.random.Generator) -> None:
        self._run, self._robot, self._fault, self._rng = run, robot, fault, rng
        self._skill_position: NDArray[np.float64] | None = None

    def on_event(self, event: Any) -> None:
        """Take the place that a skill's event names, from now on."""
        if event.has_position:
            self._skill_position = self._run.robots[self._robot].truth.T_world_base @ vector_to_array(event.position)

    def apply(self) -> str:
        """Meddle, and say with what.  Nothing happens where there is nothing to meddle with."""
        hand_position = self._hand_position()
        fault_type = self._fault.type
        reference = (
            hand_position if fault_type == "drop_object" or self._skill_position is None else self._skill_position
        )
        objects = self._object_poses(static=fault_type in ("cover_place", "remove_place"))
        name = self._fault.object or _nearest(objects, reference)
        if name not in objects:
            return f"{fault_type}: there is nothing"
        x, y, z = (float(value) for value in objects[name].translation)
        simulation = self._run.simulation
        match fault_type:
            case "remove_object" | "remove_place":
                self._run.remove(name)
            case "cover_place":
                self._cover(objects[name])
            case "knock_over":
                put(simulation, name, self._lying_pose(name, x, y, z))
            case "drop_object":
                u, v = self._drop_position(hand_position, [pose for other, pose in objects.items() if other != name])
                put(simulation, name, self._lying_pose(name, u, v, 0.0))
            case "push_objects_together" | "occupy_place":
                others = {other: pose for other, pose in objects.items() if other != name}
                if not others:
                    return f"{fault_type}: there is no other thing"
                return self._move_other_object(name, objects[name], others, reference)
        return _DESCRIPTIONS[fault_type].format(name)

    def _lying_pose(self, name: str, x: float, y: float, floor_height: float) -> SE3:
        """On its side, a hair above the floor."""
        height = floor_height + half_length(self._run.simulation.models[name].model) + 1e-4
        return SE3.from_xyz_rpy((x, y, height), (0.5 * math.pi, 0.0, float(self._rng.uniform(-math.pi, math.pi))))

    def _drop_position(self, hand_position: NDArray[np.float64], others: list[SE3]) -> tuple[float, float]:
        """Where on the floor something comes to lie that slips out of the hand: clear of robot and other things."""
        root = self._run.robots[self._robot].truth.T_world_base.translation
        for _ in range(100):
            angle = float(self._rng.uniform(-math.pi, math.pi))
            direction = np.array((math.cos(angle), math.sin(angle)))
            position = np.asarray(hand_position[:2] + _DROP_DISTANCE * direction)
            if np.linalg.norm(position - root[:2]) < _ROBOT_CLEARANCE:
                position = np.asarray(root[:2] + 1.5 * _ROBOT_CLEARANCE * direction)
            if all(np.linalg.norm(position - other.translation[:2]) > _DROP_DISTANCE for other in others):
                break
        return float(position[0]), float(position[1])

    def _move_other_object(self, name: str, pose: SE3, others: dict[str, SE3], reference: NDArray[np.float64]) -> str:
        """Another thing is put beside the nearest one, so that they touch, or where the skill is about to set down."""
        simulation = self._run.simulation
        angle = float(self._rng.uniform(-math.pi, math.pi))
        if self._fault.type == "occupy_place":
            other = max(
                others, key=lambda candidate: float(np.linalg.norm((others[candidate].translation - reference)[:2]))
            )
            put(
                simulation,
                other,
                SE3.from_xyz_rpy((float(reference[0]), float(reference[1]), float(reference[2]) + 1e-3)),
            )
            return f"{other} was put where a thing shall stand"
        other = _nearest(others, pose.translation)
        distance = (
            half_length(simulation.models[name].model) + half_length(simulation.models[other].model) + _CONTACT_GAP
        )
        x, y, z = (float(value) for value in pose.translation)
        put(simulation, other, SE3.from_xyz_rpy((x + distance * math.cos(angle), y + distance * math.sin(angle), z)))
        return f"{other} was pushed to {name}"

    def _cover(self, place_pose: SE3) -> None:
        visual = Visual("sheet", Box(_SHEET_SIZE), SE3.identity(), Material("paper", (0.75, 0.72, 0.6, 1.0)))
        sheet = Model("sheet", (Link("sheet", SE3.identity(), visuals=(visual,)),), static=True)
        sheet_name = next(f"sheet_{k}" for k in range(1, 10**6) if f"sheet_{k}" not in self._run.simulation.models)
        self._run.add_object(sheet, sheet_name, place_pose @ SE3.from_xyz_rpy((0.0, 0.0, 0.0018)))

    def _object_poses(self, *, static: bool) -> dict[str, SE3]:
        """Poses of the scenario's things that can be moved, or of those that cannot."""
        models = self._run.simulation.models
        return {
            name: self._run.simulation.truth(name).T_world_base
            for name in self._run.objects
            if name in models and models[name].model.static == static
        }

    def _hand_position(self) -> NDArray[np.float64]:
        """The middle between the fingers; without a gripper the robot's base."""
        simulation, robot = self._run.simulation, self._run.robots[self._robot]
        links = [link for gripper in robot.groups.grippers.values() for link in gripper.links]
        link_ids = simulation.placement(self._robot).links
        if not links:
            return np.asarray(robot.truth.T_world_base.translation)
        positions = np.array([link_pose(simulation.data, link_ids[link]).translation for link in links])
        return np.asarray(positions.mean(axis=0), dtype=np.float64)


def _nearest(poses: dict[str, SE3], reference: NDArray[np.float64]) -> str:
    """Name of the one that is nearest, seen from above; empty if there is none."""
    return min(poses, key=lambda name: float(np.linalg.norm((poses[name].translation - reference)[:2])), default="")


class FootholdCollapseInjector:
    """Lowers the square of the terrain of the next foothold to the terrain's lowest height.

    Args:
        run: Where it happens; its terrain is of level squares.
        robot: Whose plan of steps says where feet come down.
        ahead: Of feet that rise no sooner than this, by the plan [s]; no foot stands there, or comes down there before.
    """

    def __init__(self, run: Run, robot: str, min_lead_time: float) -> None:
        self._run, self._min_lead_time = run, min_lead_time
        self._topic = f"{run.robots[robot].namespace}/steps/plan"

    def apply(self) -> str:
        """Do it, and say where.  Nothing happens where no foot is about to come down on the terrain."""
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

        # the plan may have waited since it was told: its time is from ``plan.time`` to now
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

    def _replace_terrain(self, terrain: Any) -> None:
        run = self._run
        old = next(name for name in run.simulation.models if name.startswith(TERRAIN_MODEL))
        number = int(old.removeprefix(TERRAIN_MODEL).removeprefix("_") or 1) + 1
        run.simulation.remove(old)
        run.add_object(terrain_model(terrain), f"{TERRAIN_MODEL}_{number}", SE3.identity())
        run.terrain = terrain
