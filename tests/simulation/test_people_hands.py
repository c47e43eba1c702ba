"""Hands that take things, carry them and leave them; and the spring that holds them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from roboyard.bus import GoalFuture, Node
from roboyard.description import Box, load_model
from roboyard.description.model import Collision, Link, Model
from roboyard.geometry import SE2, SE3
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg
from roboyard.scenarios.catalog import find_thing
from roboyard.scenarios.run import Run
from roboyard.simulation.proof.bodies import ball

TABLE = 0.75


class Bench:
    """Anna at a table on which a part lies; somebody asks her for things."""

    def __init__(self) -> None:
        self.run = Run("empty", seed=1, record=False)
        for name, x in (("table", 0.55), ("other", -0.55)):
            top = Link("top", SE3.identity(), collisions=(Collision("top", Box((0.5, 1.2, TABLE)), SE3.identity()),))
            self.run.add_object(Model(name, (top,), static=True), name, (x, 0.0, TABLE / 2.0, 0.0, 0.0, 0.0))
        part = load_model(find_thing("workpiece", None))
        self.run.add_object(part, "part", (0.45, 0.1, TABLE + 0.0201, 0.0, 0.0, 0.4))
        self.run.add_person("anna", at=(0.0, 0.0, 0.0), height=1.7)
        node = self.run.bus.add(Node(), "asker")
        self.animation = node.action_client("/anna/animation", action.ActorAnimation)
        self.movement = node.action_client("/anna/movement", action.ActorMovement)
        self.run.run_for(0.2)

    def show(self, clip: str, place: Any = None, **said: Any) -> GoalFuture:
        reach = {} if place is None else {"reach": True, "place": msg.Point(*map(float, place))}
        return self.animation.send(action.ActorAnimation.Goal(animation_name=clip, **reach, **said))

    def done(self, goal: GoalFuture) -> GoalFuture:
        assert self.run.until(goal.done, timeout=40.0)
        return goal

    def walk(self, x: float, y: float, yaw: float) -> None:
        target = pose_to_msg(SE2(x, y, yaw))
        goal = self.done(self.movement.send(action.ActorMovement.Goal(animation_name="carry", target=target)))
        assert goal.succeeded, goal.reason

    @property
    def part(self) -> SE3:
        return self.run.simulation.truth("part").T_world_base

    def take(self) -> GoalFuture:
        return self.done(self.show("pick_up", self.part.translation + np.array([0.0, 0.0, 0.01]), take="part"))


@pytest.fixture
def bench() -> Any:
    made = Bench()
    yield made
    made.run.close()


def test_held_object_stays_in_the_hand_while_turning(bench: Bench) -> None:
    assert bench.take().succeeded
    target = pose_to_msg(SE2(0.0, 0.0, 2.5))
    goal = bench.movement.send(action.ActorMovement.Goal(animation_name="carry", target=target))
    heights = []
    while not goal.done() or bench.run.time < 12.0:
        bench.run.run_for(0.1)
        heights.append(bench.part.z)
    assert goal.succeeded
    assert min(heights[10:]) > 0.95  # m: higher than the table they stand at
    bench.run.people["anna"].hands.let_go("right")
    bench.run.run_for(1.0)
    assert bench.run.people["anna"].person.animation == "idle"


def test_object_is_taken_carried_and_placed_at_its_goal(bench: Bench) -> None:
    assert bench.take().succeeded
    assert bench.run.people["anna"].hands.things == {"right": "part"}
    assert bench.part.translation[2] > TABLE + 0.05
    bench.walk(0.0, 0.0, math.pi)
    assert abs(bench.part.rotation_matrix()[2, 2] - 1.0) < 1e-3  # carried level
    there = (-0.42, 0.05, TABLE + 0.021)
    goal = bench.done(bench.show("put_down", there, leave=True))
    assert goal.succeeded, goal.reason
    bench.run.run_for(0.5)
    assert bench.run.people["anna"].hands.things == {}
    np.testing.assert_allclose(bench.part.translation, there, atol=0.012)
    x = bench.part.rotation_matrix()[:, 0]
    assert math.atan2(x[1], x[0]) == pytest.approx(0.4 - math.pi, abs=0.02)  # turned as the person has turned


def test_impossible_hand_tasks_are_refused_with_a_reason(bench: Bench) -> None:
    far = bench.done(bench.show("pick_up", (0.45, -0.3, TABLE + 0.03), take="part"))
    assert not far.succeeded
    assert "from the right hand" in far.reason
    nothing = bench.done(bench.show("put_down", (0.45, 0.1, TABLE + 0.03), leave=True))
    assert "holds nothing" in str(nothing.error)
    unknown = bench.done(bench.show("pick_up", (0.45, 0.1, TABLE + 0.03), take="thing"))
    assert "thing" in str(unknown.error)
    np.testing.assert_allclose(bench.part.translation, (0.45, 0.1, TABLE + 0.02), atol=2e-3)  # nobody pushed it
    both = bench.done(bench.show("pick_up", (0.45, 0.1, TABLE + 0.03), take="part", leave=True))
    assert "at once" in str(both.error)
    waving = bench.done(bench.show("wave", take="part"))
    assert not waving.succeeded
    assert bench.run.people["anna"].hands.things == {}


def test_hand_over_releases_only_when_the_object_is_pulled(bench: Bench) -> None:
    assert bench.take().succeeded
    bench.walk(0.0, 0.0, -math.pi / 2.0)
    out = (0.1, -0.6, 1.1)
    kept = bench.done(bench.show("hand_over", out, leave=True, patience=1.0))
    assert "nobody took it" in kept.reason
    assert bench.run.people["anna"].hands.things == {"right": "part"}
    goal = bench.show("hand_over", out, leave=True, patience=20.0)
    bench.run.run_for(5.0)
    assert not goal.done()
    np.testing.assert_allclose(bench.part.translation, out, atol=0.01)  # held out, still
    model = bench.run.simulation.model
    first = int(model.body_dofadr[bench.run.simulation.placement("part").links["body"].body])
    for _ in range(10):  # a pull
        bench.run.simulation.data.qvel[first + 1] -= 0.5
        bench.run.simulation.instant.moved()
        bench.run.run_for(0.01)
    bench.done(goal)
    assert goal.succeeded, goal.reason
    assert bench.run.people["anna"].hands.things == {}


def test_grasp_constraint_yields_above_its_strength_only(bench: Bench) -> None:
    assert bench.take().succeeded
    bench.run.run_for(1.0)
    holds = bench.run.simulation.holds
    still = np.linalg.norm(holds.force("anna", "right_hand"))
    assert still < 1.0  # its weight is borne besides
    model = bench.run.simulation.model
    first = int(model.body_dofadr[bench.run.simulation.placement("part").links["body"].body])
    bench.run.simulation.data.qvel[first] = 3.0
    bench.run.simulation.instant.moved()
    peak = 0.0
    for _ in range(100):
        bench.run.simulation.step(1)
        peak = max(peak, float(np.linalg.norm(holds.force("anna", "right_hand"))))
    assert peak == pytest.approx(60.0, abs=1e-6)
    bench.run.simulation.step(500)
    assert np.linalg.norm(holds.force("anna", "right_hand")) < 1.0  # it has come back


def test_saved_grasp_continues_bit_for_bit(bench: Bench) -> None:
    assert bench.take().succeeded
    simulation = bench.run.simulation
    saved = simulation.save()
    simulation.step(200)
    first = np.array(simulation.data.qpos)
    simulation.load(saved)
    simulation.step(200)
    assert (np.array(simulation.data.qpos) == first).all()
    simulation.add(ball(), "stone", SE3(translation=(3.0, 3.0, 1.0)))  # the world is compiled anew
    assert simulation.holds.of("anna") == {"right_hand": "part"}
    simulation.remove("part")
    assert simulation.holds.of("anna") == {}
