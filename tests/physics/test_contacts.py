"""Contact episodes: each contact with a model counts, contacts with the ground do not."""

import numpy as np
import pytest
from tests.harness.models import (
    IDENTITY,
    RIDE_HEIGHT,
    free_ball,
    free_box,
    ground_plane,
    make_pose,
    make_world,
    rover_model,
    static_box,
)

from roboyard.description.model import Axis, Box, Collision, Inertial, Joint, Link, Model
from roboyard.description.sensors import ContactSpec, Sensor
from roboyard.hardware import JointCommand
from roboyard.simulation import Simulation


def test_contact_with_the_ground_is_no_contact_episode() -> None:
    plate = static_box("plate", (10, 10, 0.1), make_pose(z=-0.05))
    for base in (ground_plane(), plate):
        sim = Simulation(make_world(base))
        sim.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT + 0.1))
        sim.step(500)
        assert sim.contact_episodes() == ()
        assert sim.ground_truth("rover").contacts


def test_short_tap_is_one_contact_episode() -> None:
    sim = Simulation(make_world(gravity=0.0), timestep=0.001)
    sim.add(free_ball("ball", restitution=0.9), "ball")
    post = static_box("post", (0.2, 0.2, 0.2), make_pose())
    sim.add(post.model, "post", make_pose(0.5))
    sim.world.data.qvel[0] = 3.0
    sim.step(400)  # in one go: nobody looks in between
    (episode,) = sim.contact_episodes("ball")
    assert (episode.model, episode.other_model) == ("ball", "post")
    assert (episode.geom, episode.other_geom) == ("ball::body::ball", "post::link::box")
    assert episode.end_ns - episode.start_ns < 60_000_000
    assert episode.start_ns * 1e-9 == pytest.approx(0.3 / 3.0, abs=0.004)


def test_taps_close_in_time_are_one_episode() -> None:
    sim = Simulation(make_world(gravity=0.0))
    sim.add(free_ball("ball"), "ball")
    sim.add(static_box("post", (0.2, 0.2, 0.2), make_pose()).model, "post", make_pose(0.5))

    def tap() -> None:
        sim.world.data.qpos[:3], sim.world.data.qvel[:6] = (0.295, 0, 0), 0.0
        sim.world.data.qvel[0] = 1.0
        sim.world.evaluate()
        sim.step(6)
        sim.world.data.qpos[:3], sim.world.data.qvel[:6] = (0.0, 0, 0), 0.0
        sim.world.evaluate()

    tap()
    sim.step(100)
    tap()
    assert len(sim.contact_episodes("ball")) == 2
    sim.step(20)
    tap()
    assert len(sim.contact_episodes("ball")) == 2


def test_collision_counts_for_both_robots() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(rover_model("a"), "a", make_pose(z=RIDE_HEIGHT))
    sim.add(rover_model("b"), "b", make_pose(1.0, 0, RIDE_HEIGHT))
    hardware = sim.hardware("a")
    hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, 10.0)))
    sim.step(600)
    assert {episode.other_model for episode in sim.contact_episodes("a")} == {"b"}
    assert {episode.other_model for episode in sim.contact_episodes("b")} == {"a"}


def test_contact_episodes_survive_added_and_removed_models() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(static_box("table", (1, 1, 0.5), make_pose()).model, "table", make_pose(z=0.25))
    sim.add(free_box(), "crate", make_pose(z=0.61))
    sim.step(300)
    before = sim.contact_episodes("crate")
    sim.add(free_ball(), "ball", make_pose(3.0, 0, 0.1))
    sim.step(10)
    after = sim.contact_episodes("crate")
    assert len(before) == len(after) == 1  # still the same one
    assert after[0].end_ns == sim.time_ns
    sim.remove("table")
    assert sim.contact_episodes("crate")[0].other_model == "table"
    assert sim.contact_episodes("nothing" if False else None)


def test_contact_table_holds_many_episodes() -> None:
    sim = Simulation(make_world(ground_plane()))
    for i in range(12):
        sim.add(free_ball(f"ball{i}", restitution=0.8), f"ball{i}", make_pose(0.05 * (i % 2), 0.0, 0.3 + 0.25 * i))
    sim.step(1500)
    assert len(sim.contact_episodes()) > 20


def test_contact_sensor_measures_the_weight() -> None:
    bumper = Sensor("bumper", "contact", "body", IDENTITY, 50.0, "bumper", "body", ContactSpec(("box",)))
    sim = Simulation(make_world(ground_plane()))
    sim.add(free_box(mass=5.0, sensors=(bumper,)), "crate", make_pose(z=0.1))
    sim.step(500)
    touches = sim.sensors("crate")[0].read().contact_points
    assert {touch.other_geom for touch in touches} == {"ground_plane::link::plane"}
    np.testing.assert_allclose(np.sum([touch.force for touch in touches], axis=0), [0, 0, 5.0 * 9.8], atol=0.05)
    for touch in touches:
        np.testing.assert_allclose(touch.normal, [0, 0, 1], atol=1e-6)
        assert touch.depth < 1e-3


@pytest.mark.parametrize("self_collide", [False, True])
def test_arm_does_not_touch_its_own_base(self_collide: bool) -> None:
    """The base is fast to the world; its arm turns right through it, and so does one that asks for contact: neighbours
    at a joint never touch."""
    block, rod = Box((0.2, 0.2, 0.2)), Box((0.5, 0.04, 0.04))
    base = Link("base", IDENTITY, collisions=(Collision("c", block, IDENTITY),), self_collide=self_collide)
    mass = Inertial(1.0, IDENTITY, (0.01, 0.01, 0.01, 0, 0, 0))
    arm = Link("arm", make_pose(0.1), mass, (Collision("c", rod, IDENTITY),), self_collide=self_collide)
    anchor = Joint("anchor", "fixed", "world", "base", IDENTITY, IDENTITY)
    hinge = Joint("hinge", "continuous", "base", "arm", make_pose(0.1), IDENTITY, (Axis((0, 1, 0)),))
    sim = Simulation(make_world(gravity=0.0))
    sim.add(Model("robot", (base, arm), (anchor, hinge)), "robot")
    sim.world.data.qvel[-1] = 5.0
    sim.step(1000)
    assert sim.world.data.qpos[-1] == pytest.approx(10.0, rel=1e-6)
    assert sim.world.data.ncon == 0


def test_contact_reports_its_shapes_in_either_order() -> None:
    """A box that came against one part of something and lies on another afterwards is touching_shapes of with that."""
    parts = (
        Collision("floor", Box((2.0, 2.0, 0.1)), IDENTITY),
        Collision("post", Box((0.02, 0.02, 0.3)), make_pose(z=0.2)),
    )
    sim = Simulation(make_world())
    sim.add(
        Model(
            "stand",
            (Link("tray", IDENTITY, collisions=parts),),
            (Joint("anchor", "fixed", "world", "tray", IDENTITY, IDENTITY),),
        ),
        "stand",
    )
    sim.add(free_box(), "crate", make_pose(0.0, 0.23, 0.25))
    floor, post = ("crate::body::box", "stand::tray::floor"), ("crate::body::box", "stand::tray::post")

    def touching_shapes(steps: int) -> frozenset[tuple[str, str]]:
        before = sim.time_ns // sim.timestep_ns
        sim.step(steps)
        return sim.world.contacts.pairs_since(before).get("crate", frozenset())

    sim.world.data.qvel[1] = -1.0
    assert touching_shapes(20) == {post}
    sim.world.data.qpos[:3], sim.world.data.qvel[:6] = (0.0, 0.3, 0.16), 0.0
    sim.world.evaluate()
    assert touching_shapes(40) == {floor}, "no step in between without a touch: one episode, which began with the post"
    assert len(sim.contact_episodes("crate")) == 1
    assert touching_shapes(1) == {floor}
