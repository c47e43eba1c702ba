"""Bodies obey the laws of mechanics."""

import math

import numpy as np
import pytest
from tests.harness.models import (
    RIDE_HEIGHT,
    free_ball,
    free_box,
    ground_plane,
    make_pose,
    make_world,
    rover_model,
    static_box,
)

from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.physics import ModelEntry, PhysicsSettings, PhysicsWorld, compile_world
from roboyard.simulation import Simulation

G = 9.8


def test_free_fall_is_a_parabola() -> None:
    sim = Simulation(make_world())
    sim.add(free_box(), "crate", make_pose(z=10.0, roll=0.3, yaw=1.0))
    sim.step(500)
    t = sim.time_ns * 1e-9
    # The semi-implicit step is exact in velocity and off by g t dt / 2 in position.
    assert sim.ground_truth("crate").T_world_base.z == pytest.approx(10.0 - 0.5 * G * t * t, abs=G * t * 0.002)
    velocity = sim.ground_truth("crate").T_world_base.rotation_matrix() @ sim.ground_truth("crate").linear_velocity
    np.testing.assert_allclose(velocity, [0.0, 0.0, -G * t], atol=1e-9)


def test_spinning_body_conserves_angular_momentum() -> None:
    sim = Simulation(make_world(gravity=0.0))
    sim.add(free_box(size=(0.4, 0.3, 0.1)), "crate")
    sim.world.data.qvel[:] = [0.5, -0.2, 0.1, 1.0, 2.0, 3.0]
    inertia = np.diag(sim.world.model.body_inertia[sim.world.addresses("crate").bodies[0]])

    def momentum() -> np.ndarray:
        R_world_inertial = sim.world.data.ximat[sim.world.addresses("crate").bodies[0]].reshape(3, 3)
        omega = sim.ground_truth("crate").T_world_base.rotation_matrix() @ sim.ground_truth("crate").angular_velocity
        return R_world_inertial @ inertia @ R_world_inertial.T @ omega

    sim.step(1)
    before = momentum()
    sim.step(500)
    np.testing.assert_allclose(momentum(), before, rtol=0.02)
    assert sim.ground_truth("crate").T_world_base.x == pytest.approx(0.5 * sim.time_ns * 1e-9, abs=1e-3)


@pytest.mark.parametrize(("mu", "speed"), [(0.3, 1.0), (0.5, 2.0), (0.9, 3.0)])
def test_sliding_box_stops_after_v2_over_2_mu_g(mu: float, speed: float) -> None:
    sim = Simulation(make_world(ground_plane(mu)))
    sim.add(free_box(mu=1.0), "crate", make_pose(z=0.1))  # the smaller coefficient holds
    sim.step(200)
    sim.world.data.qvel[0] = speed
    start, max_height = sim.ground_truth("crate").T_world_base.x, 0.0
    for _ in range(round(1.5 * speed / (mu * G) / 0.002)):
        sim.step()
        max_height = max(max_height, sim.ground_truth("crate").T_world_base.z)
    travelled = sim.ground_truth("crate").T_world_base.x - start
    assert travelled == pytest.approx(speed * speed / (2 * mu * G), rel=0.01)
    assert max_height < 0.1005


@pytest.mark.parametrize("mu", [0.3, 0.6])
def test_slope_holds_a_box_up_to_the_friction_angle(mu: float) -> None:
    for factor, slides in ((0.95, False), (1.2, True)):
        slope = math.atan(mu * factor)
        T = make_pose(pitch=slope)
        ramp = static_box("ramp", (20.0, 4.0, 0.2), T @ make_pose(z=-0.1), mu)
        sim = Simulation(make_world(ramp))
        sim.add(free_box(mu=2.0), "crate", T @ make_pose(z=0.1))
        sim.step(250)
        x0, t0 = (T.inverse() @ sim.ground_truth("crate").T_world_base).x, sim.time_ns
        v0 = sim.ground_truth("crate").linear_velocity[0]
        sim.step(250)
        t = (sim.time_ns - t0) * 1e-9
        travelled = (T.inverse() @ sim.ground_truth("crate").T_world_base).x - x0
        if slides:
            a = G * (math.sin(slope) - mu * math.cos(slope))
            assert travelled == pytest.approx(v0 * t + 0.5 * a * t * t, rel=0.02)
        else:
            assert abs(travelled) < 1e-4


def test_ball_bounces_with_its_restitution() -> None:
    for e in (0.2, 0.5, 0.8):
        sim = Simulation(make_world(ground_plane()), timestep=0.0005)
        sim.add(free_ball(restitution=e), "ball", make_pose(z=1.1))
        speeds = []
        while sim.time_ns < 1_000_000_000:
            sim.step()
            speeds.append(float(sim.world.data.qvel[2]))
        impact = min(speeds)
        after = max(speeds[int(np.argmin(speeds)) :])
        assert after / -impact == pytest.approx(e, abs=0.05), e


def test_resting_box_neither_sinks_nor_slides() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(free_box(), "crate", make_pose(z=0.1))
    sim.step(500)
    before = sim.ground_truth("crate").T_world_base
    assert before.z == pytest.approx(0.1, abs=1e-4)
    sim.step(2500)
    assert sim.ground_truth("crate").T_world_base.distance(before) < 1e-6


def test_rover_rests_on_its_wheels_with_a_free_root() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT + 0.05))
    sim.step(1000)
    truth = sim.ground_truth("rover")
    assert truth.T_world_base.z == pytest.approx(RIDE_HEIGHT, abs=2e-4)
    assert np.abs(truth.linear_velocity).max() < 1e-4
    sim.world.data.qvel[2] = 1.0
    sim.step(10)
    assert sim.ground_truth("rover").T_world_base.z > RIDE_HEIGHT + 0.01


def make_physics_world(*entries: ModelEntry, previous: PhysicsWorld | None = None) -> PhysicsWorld:
    settings = PhysicsSettings()
    ground = ground_plane()
    placed = ModelEntry(ground.name, ground.model, ground.T_world_model)
    return PhysicsWorld(compile_world(make_world(ground), [placed, *entries], settings), settings, previous)


CRATE, BALL = (
    ModelEntry("crate", free_box(), make_pose(z=0.3, roll=0.4)),
    ModelEntry("ball", free_ball(), make_pose(2.0)),
)


def test_world_continues_bit_for_bit_from_its_saved_state() -> None:
    world = make_physics_world(CRATE)
    world.step(130)
    saved = world.save_state()
    world.step(200)
    expected = world.data.qpos.copy(), world.data.qvel.copy(), world.contacts.episodes()
    other = make_physics_world(CRATE)
    other.load_state(saved)
    other.evaluate()
    assert other.time_ns == 130 * other.timestep_ns
    other.step(200)
    assert np.array_equal(other.data.qpos, expected[0])
    assert np.array_equal(other.data.qvel, expected[1])
    assert other.contacts.episodes() == expected[2]


def test_next_world_continues_time_and_state_of_common_models() -> None:
    world = make_physics_world(CRATE)
    world.step(70)
    truth = world.ground_truth("crate")
    following = make_physics_world(CRATE, BALL, previous=world)
    assert following.time_ns == world.time_ns == 70 * world.timestep_ns
    assert following.lock is world.lock
    assert following.ground_truth("crate").T_world_base == truth.T_world_base
    np.testing.assert_array_equal(following.ground_truth("crate").linear_velocity, truth.linear_velocity)
    without = make_physics_world(BALL, previous=following)
    with pytest.raises(UnknownNameError, match="no model named 'crate'"):
        without.ground_truth("crate")


def test_reading_forces_changes_no_later_step() -> None:
    worlds = [make_physics_world(CRATE) for _ in range(2)]
    for _ in range(120):
        for world in worlds:
            world.step(2)
        revision = worlds[0].revision
        assert worlds[0].ground_truth("crate").time_ns == worlds[0].time_ns
        worlds[0].ensure_accelerations()
        assert worlds[0].revision == revision
    assert np.array_equal(worlds[0].data.qpos, worlds[1].data.qpos)
    assert worlds[0].ground_truth("crate").contacts, "the box has come to rest on the ground"


def test_poses_of_free_models_are_set_at_rest() -> None:
    world = make_physics_world(CRATE)
    world.step(20)
    world.set_pose("crate", make_pose(1.0, 2.0, 3.0))
    truth = world.ground_truth("crate")
    assert truth.T_world_base.xyz == pytest.approx((1.0, 2.0, 3.0))
    assert not truth.linear_velocity.any()
    world.set_planar_pose("crate", SE2(-1.0, 0.5, 0.0))
    assert world.ground_truth("crate").T_world_base.xyz == pytest.approx((-1.0, 0.5, 3.0))
    with pytest.raises(InputError, match="'ground_plane' cannot be moved"):
        world.set_pose("ground_plane", make_pose())
