"""Hands that grasp, carry and release objects, and the grasp constraint."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from tests.harness.bus import BusHarness, Goal

from roboyard.bringup.catalog import OBJECTS
from roboyard.description import Box, load_model
from roboyard.description.model import Collision, Link, Model, World
from roboyard.geometry import SE2, SE3
from roboyard.geometry.constants import GRAVITY_VECTOR
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg
from roboyard.people.animation_player import GRIP_DISTANCE
from roboyard.people.anthropometry import BodyDimensions
from roboyard.people.body import make_person_model
from roboyard.people.hands import PersonHands
from roboyard.physics import GraspConstraints, ModelEntry, PhysicsSettings, PhysicsWorld, compile_world
from roboyard.scenarios.run import Run
from roboyard.simulation import Simulation
from roboyard.simulation.validation.bodies import make_ball

TABLE = 0.75


class PersonAtTable(BusHarness):
    """A run with Anna at a table with a part on it; the test sends goals to her."""

    def __init__(self, part_gravity: bool = True) -> None:
        self.run = Run("empty", seed=1, record=False)
        for name, x in (("table", 0.55), ("other", -0.55)):
            top = Link("top", SE3.identity(), collisions=(Collision("top", Box((0.5, 1.2, TABLE)), SE3.identity()),))
            self.run.add_object(Model(name, (top,), static=True), name, (x, 0.0, TABLE / 2.0, 0.0, 0.0, 0.0))
        part = load_model(OBJECTS.resolve("workpiece", None))
        part = replace(part, links=tuple(replace(link, gravity=part_gravity) for link in part.links))
        self.run.add_object(part, "part", (0.45, 0.1, TABLE + 0.0201, 0.0, 0.0, 0.4))
        self.run.add_person("anna", pose=(0.0, 0.0, 0.0), height=1.7)
        super().__init__(bus=self.run.bus)
        self.run_for(0.2)

    @property
    def simulation(self) -> Simulation:
        """The simulation of the run."""
        return self.run.simulation

    @property
    def hands(self) -> PersonHands:
        """The hands of Anna."""
        return self.run.people["anna"].hands

    @property
    def part(self) -> SE3:
        """Pose of the part in the world."""
        return self.simulation.ground_truth("part").T_world_base

    def start_clip(self, clip: str, position: ArrayLike | None = None, **fields: Any) -> Goal:
        """Send an animation goal, with a target of the hand in the world [m] if one is given."""
        if position is not None:
            fields |= {"has_target": True, "target": msg.Point(*np.asarray(position, float).tolist())}
        return self.start_goal("/anna/animation", action.ActorAnimation, animation_name=clip, **fields)

    def play_clip(self, clip: str, position: ArrayLike | None = None, **fields: Any) -> Goal:
        """Send an animation goal and wait for its end."""
        return self.wait_for(self.start_clip(clip, position, **fields), timeout=40.0)

    def start_walk(self, x: float, y: float, yaw: float) -> Goal:
        """Send Anna to a pose with the object that she carries [m, rad]."""
        target = pose_to_msg(SE2(x, y, yaw))
        return self.start_goal("/anna/movement", action.ActorMovement, animation_name="carry", target=target)

    def walk(self, x: float, y: float, yaw: float) -> None:
        """Send Anna to a pose and wait until she is there."""
        goal = self.wait_for(self.start_walk(x, y, yaw), timeout=40.0)
        assert goal.succeeded, goal.error_message

    def grasp_part(self) -> None:
        """Have Anna grasp the part."""
        goal = self.play_clip("pick_up", self.part.translation + np.array([0.0, 0.0, 0.01]), grasp_object="part")
        assert goal.succeeded, goal.error_message


@pytest.fixture
def person() -> Iterator[PersonAtTable]:
    """Anna at the table, idle."""
    person = PersonAtTable()
    yield person
    person.run.close()


def test_held_object_stays_in_the_hand_while_turning(person: PersonAtTable) -> None:
    person.grasp_part()
    goal = person.start_walk(0.0, 0.0, 2.5)
    heights = []
    while not goal.done() or person.now < 12.0:
        person.run_for(0.1)
        heights.append(person.part.z)
    assert goal.succeeded
    assert min(heights[10:]) > 0.95  # m: higher than the table they stand at
    person.hands.release("right")
    person.run_for(1.0)
    assert person.run.people["anna"].person.animation_name == "idle"


def test_object_is_grasped_carried_and_placed_at_its_goal(person: PersonAtTable) -> None:
    person.grasp_part()
    assert person.hands.grasped_objects == {"right": "part"}
    assert person.part.translation[2] > TABLE + 0.05
    person.walk(0.0, 0.0, math.pi)
    assert abs(person.part.rotation_matrix()[2, 2] - 1.0) < 1e-3  # carried level
    target = (-0.42, 0.05, TABLE + 0.021)
    goal = person.play_clip("put_down", target, release=True)
    assert goal.succeeded, goal.error_message
    person.run_for(0.5)
    assert person.hands.grasped_objects == {}
    np.testing.assert_allclose(person.part.translation, target, atol=0.012)
    x = person.part.rotation_matrix()[:, 0]
    assert math.atan2(x[1], x[0]) == pytest.approx(0.4 - math.pi, abs=0.02)  # turned as the person has turned


def test_impossible_hand_tasks_are_refused_with_a_reason(person: PersonAtTable) -> None:
    unreachable = person.play_clip("pick_up", (0.45, -0.3, TABLE + 0.03), grasp_object="part")
    assert not unreachable.succeeded
    assert "from the right hand" in unreachable.error_message
    empty_hand = person.play_clip("put_down", (0.45, 0.1, TABLE + 0.03), release=True)
    assert "holds no object" in str(empty_hand.error)
    unknown = person.play_clip("pick_up", (0.45, 0.1, TABLE + 0.03), grasp_object="thing")
    assert "thing" in str(unknown.error)
    np.testing.assert_allclose(person.part.translation, (0.45, 0.1, TABLE + 0.02), atol=2e-3)  # nobody pushed it
    both = person.play_clip("pick_up", (0.45, 0.1, TABLE + 0.03), grasp_object="part", release=True)
    assert "at once" in str(both.error)
    waving = person.play_clip("wave", grasp_object="part")
    assert not waving.succeeded
    assert person.hands.grasped_objects == {}


def test_hand_over_releases_only_when_the_object_is_pulled(person: PersonAtTable) -> None:
    person.grasp_part()
    person.walk(0.0, 0.0, -math.pi / 2.0)
    target = (0.1, -0.6, 1.1)
    first = person.play_clip("hand_over", target, release=True, hold_timeout=1.0)
    assert "nobody took it" in first.error_message
    assert person.hands.grasped_objects == {"right": "part"}
    goal = person.start_clip("hand_over", target, release=True, hold_timeout=20.0)
    person.run_for(5.0)
    assert not goal.done()
    np.testing.assert_allclose(person.part.translation, target, atol=0.01)  # held out, still
    model = person.simulation.world.model
    first_dof = int(model.body_dofadr[person.simulation.world.addresses("part").links["body"].body])
    for _ in range(10):  # a pull
        person.simulation.world.data.qvel[first_dof + 1] -= 0.5
        person.simulation.world.mark_changed()
        person.run_for(0.01)
    person.wait_for(goal, timeout=40.0)
    assert goal.succeeded, goal.error_message
    assert person.hands.grasped_objects == {}


def test_grasp_constraint_yields_above_its_maximum_force_only(person: PersonAtTable) -> None:
    person.grasp_part()
    person.run_for(1.0)
    grasps = person.simulation.grasps
    assert np.linalg.norm(grasps.force("anna", "right_hand")) < 1.0  # its weight is borne besides
    model = person.simulation.world.model
    first_dof = int(model.body_dofadr[person.simulation.world.addresses("part").links["body"].body])
    person.simulation.world.data.qvel[first_dof] = 3.0
    person.simulation.world.mark_changed()
    peak = 0.0
    for _ in range(100):
        person.simulation.step(1)
        peak = max(peak, float(np.linalg.norm(grasps.force("anna", "right_hand"))))
    assert peak == pytest.approx(60.0, abs=1e-6)
    person.simulation.step(500)
    assert np.linalg.norm(grasps.force("anna", "right_hand")) < 1.0  # it has come back


def test_hand_carries_the_weight_of_the_object_in_the_gravity_of_the_world(person: PersonAtTable) -> None:
    person.grasp_part()
    person.simulation.step(500)
    height = person.part.z
    for gravity in ((0.0, 0.0, -1.62), (0.5, 0.0, -20.0)):
        person.simulation.world.model.opt.gravity[:] = gravity
        person.simulation.step(500)
        assert person.part.z == pytest.approx(height, abs=1e-5)
        assert np.linalg.norm(person.simulation.grasps.force("anna", "right_hand")) < 1e-2


def test_object_without_gravity_has_no_weight_in_the_hand() -> None:
    person = PersonAtTable(part_gravity=False)
    try:
        person.grasp_part()
        person.simulation.step(500)
        assert np.linalg.norm(person.simulation.grasps.force("anna", "right_hand")) < 1e-2
    finally:
        person.run.close()


def test_saved_grasp_continues_bit_for_bit(person: PersonAtTable) -> None:
    person.grasp_part()
    simulation = person.simulation
    saved = simulation.save_state()
    simulation.step(200)
    first = np.array(simulation.world.data.qpos)
    simulation.load_state(saved)
    simulation.step(200)
    assert (np.array(simulation.world.data.qpos) == first).all()
    simulation.add(make_ball(), "stone", SE3(translation=(3.0, 3.0, 1.0)))  # the world is compiled anew
    assert simulation.grasps.grasped_objects("anna") == {"right_hand": "part"}
    simulation.remove("part")
    assert simulation.grasps.grasped_objects("anna") == {}


def test_hands_need_a_physics_world_and_no_simulation() -> None:
    body, settings = make_person_model(BodyDimensions(1.7, 70.0), "anna"), PhysicsSettings()
    environment = World("empty", (), gravity=GRAVITY_VECTOR)
    entries = [
        ModelEntry("anna", body.model, SE3.identity(), compliant_parts=body.compliant_parts),
        ModelEntry("ball", make_ball(mass=0.3), SE3.identity()),
    ]
    world = PhysicsWorld(compile_world(environment, entries, settings), settings)
    grasps = GraspConstraints(world)
    hands = PersonHands(grasps, lambda: world, "anna", body.skeleton.dimensions.height)
    assert "from the right hand" in hands.grasp("right", "ball", (0.0, 0.0, 0.0)), "it lies between the feet"
    row = world.compliant_bodies.rows["anna"]["right_hand"]
    hand = SE3(world.compliant_bodies.orientations[row], world.compliant_bodies.positions[row])
    grip = hand @ np.array([0.0, 0.0, -GRIP_DISTANCE * body.skeleton.dimensions.height])
    world.set_pose("ball", SE3(translation=grip))
    assert hands.grasp("right", "ball", (0.0, 0.0, 0.0)) == ""
    world.step(1000, grasps.table)
    assert np.linalg.norm(world.ground_truth("ball").T_world_base.translation - grip) < 0.02
    assert hands.grasped_objects == {"right": "ball"}
    hands.release("right")
    world.step(200, grasps.table)
    assert world.ground_truth("ball").T_world_base.z < grip[2] - 0.5
