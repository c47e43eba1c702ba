"""The skill server in physics: its skills move objects, recover from failures, and can be stopped and saved.

A node detects discs by the true positions of the objects, so that no camera images are rendered.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.harness.arms import ArmCell
from tests.harness.bus import Goal

from roboyard.bringup.catalog import OBJECTS
from roboyard.bus import Node, resource
from roboyard.description import load_model
from roboyard.geometry import SE3
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import make_header
from roboyard.simulation import Simulation

HEIGHT, FLOOR, AXIS = 0.045, 0.032, 0.024
PLACES = ((0.10, -0.19), (-0.03, -0.2))
NODES = ("joint_states", "robot_state", "arm", "gripper", "move_group", "skills")


class GroundTruthDetector(Node):
    """Detects discs by the true poses of the objects; objects that lie are not detected."""

    simulation: Simulation = resource(Simulation)
    state_fields = ("mute",)

    def setup(self) -> None:
        self.mute = ""
        self.action_server("look", action.LookForDiscs, self._on_goal)

    def _object_discs(self) -> list[tuple[float, float, float]]:
        found = []
        for name in self.simulation.models:
            if name.startswith("disc"):
                T = self.simulation.ground_truth(name).T_world_base
                if T.rotation_matrix()[2, 2] > 0.95:
                    x, y, z = T.translation.tolist()
                    found.append((x, y, z + HEIGHT))
        return found

    def _on_goal(self, handle: Any) -> None:
        handle.accept()
        result = action.LookForDiscs.Result(error_code=self.mute, header=make_header("arm_link_0", self.now_ns))
        if self.mute:
            handle.abort(result, "dark", self.mute)
            return
        object_discs, goal = self._object_discs(), handle.goal
        bays = [self.transforms.lookup("arm_link_0", f"bay_{k}").translation for k in (1, 2, 3)]
        bays = [bay + np.array((0.0, 0.0, FLOOR)) for bay in bays]
        if goal.polarity == "white":
            discs = object_discs
        elif goal.mode == "pair":
            discs = [(x, y, 0.0) for x, y in PLACES]
        else:
            discs = [tuple(bay) for bay in bays if all(math.dist(bay[:2], one[:2]) > 0.015 for one in object_discs)]
        camera_direction = self.transforms.lookup("arm_link_0", "camera_link").translation - (AXIS, 0.0, 0.0)
        visible_discs = [p for p in discs if (p[0] - AXIS) * camera_direction[0] + p[1] * camera_direction[1] > 0.0]
        visible_discs.sort(key=lambda p: p[0] ** 2 + p[1] ** 2)
        result.positions = [msg.Point(x=float(x), y=float(y), z=float(z) - FLOOR) for x, y, z in visible_discs]
        result.diameters, result.distances = np.full(len(visible_discs), 0.02), np.zeros(len(visible_discs))
        if not visible_discs:
            result.error_code = "view_empty"
            handle.abort(result, "nothing", "view_empty")
        else:
            handle.succeed(result)


EVENTS = "/skills/events"


class SkillCell(ArmCell):
    """An arm on its station with objects at positions on its left [m]."""

    def __init__(self, *object_positions: tuple[float, float]) -> None:
        super().__init__("youbot_arm", NODES, world="pick_place_station", seed=5, settle=0.0)
        self.detector: Any = self.run.add_node(GroundTruthDetector(simulation=self.run.simulation), "finder")
        for k, (x, y) in enumerate(object_positions):
            self.run.add_object(load_model(OBJECTS.resolve("disc_cylinder")), f"disc_{k}", (x, y, 0.0, 0.0, 0.0, 0.0))
        self.run.run_for(0.3)

    def start_skill(self, name: str, **fields: Any) -> Goal:
        """Send the goal of a skill."""
        return self.harness.start_goal(f"/skills/{name}", action.RunSkill, **fields)

    def run_skill(self, name: str, **fields: Any) -> Any:
        """Run a skill to its end and return its result."""
        return self.harness.wait_for(self.start_skill(name, **fields)).result

    def object_pose(self, k: int = 0) -> SE3:
        """Return the true pose of an object."""
        return self.run.simulation.ground_truth(f"disc_{k}").T_world_base

    def is_upright(self, k: int = 0, *, cosine: float = 0.999) -> bool:
        """Whether an object is upright."""
        return bool(self.object_pose(k).rotation_matrix()[2, 2] > cosine)

    def move_object(self, k: int, xyz: tuple[float, float, float]) -> None:
        """Move an object to another position without a contact."""
        simulation = self.run.simulation
        first, speed = simulation.world.free_joint(f"disc_{k}")
        simulation.world.data.qpos[first : first + 7] = (*xyz, 1.0, 0.0, 0.0, 0.0)
        simulation.world.data.qvel[speed : speed + 6] = 0.0

    def wait_for_phase(self, skill: str, phase: str) -> None:
        """Run until a skill enters a phase."""
        events = self.harness.published(EVENTS)
        self.harness.spin_until(
            lambda: any((event.skill, event.phase) == (skill, phase) for event in events.messages),
            timeout=60.0,
            expected=f"phase {phase} of {skill}",
        )


def test_object_is_picked_stowed_unstowed_and_placed() -> None:
    with SkillCell((0.10, 0.20)) as cell:
        assert cell.run_skill("pick").success
        assert cell.object_pose().z > 0.03
        stowed = cell.run_skill("stow")
        assert stowed.success
        assert list(stowed.load) == [1, 0, 0]
        assert cell.run_skill("unstow").success
        placed = cell.run_skill("place", field="right")
        assert placed.success
        cell.run.run_for(0.5)
        x, y, z = cell.object_pose().translation
        assert min(math.dist((x, y), place) for place in PLACES) < 2.5e-3
        assert abs(z) < 1e-3
        assert cell.is_upright()


def test_stop_service_halts_the_arm_and_keeps_the_object() -> None:
    with SkillCell((0.10, 0.20)) as cell:
        goal = cell.start_skill("pick")
        cell.wait_for_phase("grasp", "lift")
        cell.run.run_for(0.5)
        stopped = cell.harness.call("/skills/stop", srv.Trigger)
        cell.run.run_for(0.6)
        assert stopped.success
        assert cell.speed() < 0.01
        assert goal.result.error_code == "cancelled"
        height = cell.object_pose().z
        cell.run.run_for(1.0)
        assert abs(cell.object_pose().z - height) < 1e-3
        assert cell.run_skill("pick").error_code == "gripper_occupied"
        assert cell.run_skill("stow").success


@pytest.mark.slow
@pytest.mark.parametrize(
    ("skill", "phase"),
    [
        ("look", "move_to_view"),
        ("align", "rotate"),
        ("grasp", "move_above"),
        ("grasp", "descend"),
        ("grasp", "close_gripper"),
        ("grasp", "lift"),
        ("release", "move_above"),
        ("release", "descend"),
        ("release", "open_gripper"),
        ("release", "retreat"),
    ],
)
def test_canceled_loop_ends_at_rest_with_the_object_upright(skill: str, phase: str) -> None:
    with SkillCell((0.10, 0.20)) as cell:
        goal = cell.start_skill("loop", objects=1)
        cell.wait_for_phase(skill, phase)
        cell.run.run_for(0.15)
        goal.cancel()
        cell.harness.wait_for(goal)
        assert goal.result.error_code == "cancelled"
        cell.run.run_for(0.3)
        assert abs(cell.object_pose().z) < 1e-3
        assert cell.is_upright()
        np.testing.assert_allclose(cell.joints(), cell.pose("rest"), atol=0.01)


@pytest.mark.slow
def test_pick_detects_again_when_the_object_is_removed() -> None:
    with SkillCell((0.10, 0.20), (0.0, 0.2)) as cell:
        goal = cell.start_skill("pick")
        cell.wait_for_phase("grasp", "descend")
        nearest = min((0, 1), key=lambda k: np.linalg.norm(cell.object_pose(k).translation[:2]))
        cell.move_object(nearest, (1.0, 1.0, 0.001))
        cell.harness.wait_for(goal)
        assert goal.result.success
        assert goal.result.recoveries >= 1
        assert cell.object_pose(1 - nearest).z > 0.03


@pytest.mark.slow
def test_stow_reports_an_object_lost_from_the_gripper() -> None:
    with SkillCell((0.10, 0.20)) as cell:
        assert cell.run_skill("pick").success
        goal = cell.start_skill("stow")
        cell.wait_for_phase("release", "move_above")
        cell.run.run_for(0.3)
        cell.move_object(0, (0.05, 0.22, 0.001))
        cell.harness.wait_for(goal)
        assert goal.result.error_code == "lost"
        assert cell.run_skill("pick").success


@pytest.mark.slow
@pytest.mark.parametrize("mass", [1.2, 2.5])
def test_pick_puts_a_too_heavy_object_down_upright(mass: float) -> None:
    """One object is too heavy by the joint efforts, the arm cannot lift the other."""
    with SkillCell() as cell:
        model = load_model(OBJECTS.resolve("heavy_cylinder"))
        link = model.links[0]
        heavy = replace(model, links=(replace(link, inertial=replace(link.inertial, mass=mass)),))
        cell.run.add_object(heavy, "disc_0", (0.10, 0.20, 0.0, 0.0, 0.0, 0.0))
        cell.run.run_for(0.2)
        result = cell.run_skill("pick")
        assert not result.success
        assert result.error_code == "too_heavy"
        assert cell.run_skill("pick").error_code == "view_empty", "it is left alone"
        assert math.dist(cell.object_pose().translation[:2], (0.10, 0.20)) < (
            0.01 if mass < 2.0 else 0.06
        )  # the arm gives way
        assert abs(cell.object_pose().z) < 2e-3
        assert cell.is_upright(cosine=0.99)


@pytest.mark.slow
@pytest.mark.parametrize("mute", ["camera_silent", "depth_unknown"])
def test_pick_without_camera_ends_with_its_code(mute: str) -> None:
    with SkillCell((0.10, 0.20)) as cell:
        cell.detector.mute = mute
        assert (
            cell.run_skill("pick").error_code == {"camera_silent": "camera_silent", "depth_unknown": "no_depth"}[mute]
        )
        assert cell.speed() < 0.01
