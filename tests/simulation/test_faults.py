"""Faults: each is what its law says, ends without a trace, and goes on from a saved state."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from tests.harness.models import (
    IDENTITY,
    free_box,
    ground_plane,
    imu_sensor,
    make_pose,
    make_world,
    rover_model,
    static_box,
)
from tests.harness.simulations import shared_simulation

from roboyard.description.sensors import EncoderSpec, Sensor
from roboyard.errors import InputError, UnknownNameError
from roboyard.hardware import JointCommand
from roboyard.physics.compiled_world import FrictionPatch
from roboyard.simulation import Simulation
from roboyard.simulation.faults import Fault, GroundFault, JointFault, PowerFault, SensorFault

G = 9.8
ENCODER = Sensor("encoder", "encoder", "base_link", IDENTITY, 50.0, "joint_states", "base_link", EncoderSpec())


def driving_rover(speed: float = 5.0) -> Simulation:
    """A rover a second after its wheels were commanded [rad/s]."""
    sim = Simulation(make_world(ground_plane()), seed=3)
    sim.add(rover_model(sensors=(imu_sensor(), ENCODER)), "rover", make_pose(z=0.132))
    hardware = sim.hardware("rover")
    hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, speed)))
    sim.step(500)
    return sim


def standing_rover() -> Simulation:
    """The same with wheels that are held."""
    return driving_rover(0.0)


@pytest.mark.parametrize(("mu", "yaw"), [(0.15, 0.3), (0.4, 0.0)])
def test_box_on_friction_patch_stops_after_v2_over_2_mu_g(mu: float, yaw: float) -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(free_box(mu=0.8), "crate", make_pose(z=0.1))
    sim.faults.start("ice", GroundFault(FrictionPatch(1.0, 0.0, yaw, 20.0, 4.0, mu)))
    sim.step(100)
    start = sim.ground_truth("crate").T_world_base.x
    sim.world.data.qvel[0] = 2.0
    sim.world.evaluate()
    sim.step(1200)
    assert sim.ground_truth("crate").T_world_base.x - start == pytest.approx(4.0 / (2.0 * mu * G), rel=0.01)


def test_friction_patch_acts_only_within_its_bounds() -> None:
    """On the patch it loses mu g t of its speed, behind it the ground holds: energy is lost as two parts of the
    distance."""
    sim = Simulation(make_world(ground_plane()))
    sim.add(free_box(mu=0.5, size=(0.1, 0.1, 0.1)), "crate", make_pose(z=0.05))
    sim.faults.start("ice", GroundFault(FrictionPatch(0.5, 0.0, 0.0, 1.0, 1.0, 0.05)))
    sim.step(50)
    start = sim.ground_truth("crate").T_world_base.x
    sim.world.data.qvel[0] = 2.0
    sim.world.evaluate()
    sim.step(1000)
    lost_square_speed = (1.0 - start) * 2.0 * 0.05 * G
    expected_x = 1.0 + (4.0 - lost_square_speed) / (2.0 * 0.5 * G)
    assert sim.ground_truth("crate").T_world_base.x == pytest.approx(
        expected_x, abs=0.05
    )  # its two edges do not leave at once


def test_friction_patch_never_raises_friction() -> None:
    distances = []
    for friction in (None, 5.0):
        sim = Simulation(make_world(ground_plane(mu=0.3)))
        sim.add(free_box(mu=0.3), "crate", make_pose(z=0.1))
        if friction is not None:
            sim.faults.start("carpet", GroundFault(FrictionPatch(0.0, 0.0, 0.0, 20.0, 20.0, friction)))
        sim.world.data.qvel[0] = 1.0
        sim.step(500)
        distances.append(sim.ground_truth("crate").T_world_base.x)
    assert distances[0] == pytest.approx(distances[1], rel=1e-6)


@pytest.mark.parametrize("yaw", [0.0, 0.7])
def test_object_on_belt_reaches_its_speed_after_v_over_mu_g(yaw: float) -> None:
    mu, speed = 0.5, 1.0
    sim = Simulation(make_world(ground_plane(), static_box("belt", (10.0, 1.0, 0.2), make_pose(z=0.1, yaw=yaw), mu=mu)))
    sim.add(free_box(mu=0.6), "crate", make_pose(z=0.3))
    sim.step(100)
    sim.set_surface_velocity("belt", "link", (speed, 0.0, 0.0))
    direction = np.array([math.cos(yaw), math.sin(yaw), 0.0])
    acceleration_time = speed / (mu * G)
    for fraction in (0.25, 0.5, 0.9):
        sim.advance_to(200_000_000 + round(fraction * acceleration_time * 1e9))
        truth = sim.ground_truth("crate")
        velocity = truth.T_world_base.rotation_matrix() @ truth.linear_velocity
        assert velocity @ direction == pytest.approx(fraction * speed, rel=0.03)
    sim.step(100)
    truth = sim.ground_truth("crate")
    assert np.linalg.norm(truth.linear_velocity) == pytest.approx(speed, rel=1e-3)
    sim.set_surface_velocity("belt", "link", (0.0, 0.0, 0.0))
    sim.step(200)
    assert np.linalg.norm(sim.ground_truth("crate").linear_velocity) < 1e-3


def test_blocked_wheel_holds_its_angle_until_the_fault_ends() -> None:
    sim = shared_simulation(driving_rover)
    before = sim.hardware("rover").read().position[0]
    sim.faults.start("stone", JointFault("rover", sim.hardware("rover").joint_names[0], "blocked"))
    sim.step(25)
    for _ in range(10):
        sim.step(50)
        readings = sim.hardware("rover").read()
        assert abs(readings.velocity[0]) < 0.02
        assert readings.position[0] == pytest.approx(before, abs=0.06)  # it took a few milliseconds to stop
    assert abs(readings.velocity[3]) > 1.0
    sim.faults.end("stone")
    sim.step(500)
    assert sim.hardware("rover").read().velocity[0] == pytest.approx(5.0, rel=0.05)


def test_weak_motor_gives_its_fraction_of_the_effort() -> None:
    sim = shared_simulation(standing_rover)
    joints = sim.hardware("rover").joint_names
    sim.faults.start("weak", JointFault("rover", joints[1], "weak", 0.2))
    sim.hardware("rover").write(JointCommand("velocity", joints, np.full(4, 1000.0)))
    sim.step(2)
    effort = sim.hardware("rover").read().effort
    assert effort[0] == pytest.approx(10.0)
    assert effort[1] == pytest.approx(2.0)


def test_rover_without_power_rolls_out_and_publishes_nothing() -> None:
    sim = shared_simulation(driving_rover)
    sim.faults.start("battery", PowerFault("rover"))
    speed = sim.ground_truth("rover").linear_velocity[0]
    sim.step(50)
    assert np.abs(sim.hardware("rover").read().effort).max() == 0.0
    assert [sim.faults.read_through_faults(sensor) for sensor in sim.sensors("rover")] == [None, None]
    assert 0.0 < sim.ground_truth("rover").linear_velocity[0] <= speed + 1e-6
    last_readings = sim.hardware("rover").read()
    sim.step(50)
    assert np.array_equal(sim.hardware("rover").read().position, last_readings.position)  # what was read last
    sim.faults.end("battery")
    sim.step(500)
    assert sim.ground_truth("rover").linear_velocity[0] == pytest.approx(0.5, rel=0.05)


def test_stuck_sensor_repeats_values_with_new_stamps() -> None:
    sim = shared_simulation(driving_rover)
    imu = sim.sensors("rover")[0]
    last_reading = imu.read()
    sim.faults.start("ice", SensorFault("rover", "imu", "stuck"))
    sim.step(50)
    reading = sim.faults.read_through_faults(imu)
    assert reading.time_ns == sim.time_ns
    assert np.array_equal(reading.linear_acceleration, last_reading.linear_acceleration)


def test_delayed_sensor_gives_values_of_its_stamp() -> None:
    sim = shared_simulation(driving_rover)
    imu = sim.sensors("rover")[0]
    sim.faults.start("queue", SensorFault("rover", "imu", "delayed", 0.02))
    readings = {}
    for k in range(30):
        readings[sim.time_ns] = imu.read()
        found = sim.faults.read_through_faults(imu)
        if k < 5:
            assert found is None
        else:
            assert found is readings[sim.time_ns - 20_000_000]
        sim.step(2)


def test_noise_fault_has_the_requested_deviation() -> None:
    sim = shared_simulation(standing_rover)
    imu = sim.sensors("rover")[0]
    sim.faults.start("noise", SensorFault("rover", "imu", "noisy", 0.5))
    errors = []
    for _ in range(400):
        sim.step(1)
        reading, noiseless = sim.faults.read_through_faults(imu), imu.read()
        assert reading is sim.faults.read_through_faults(imu)  # one measurement an instant
        errors.append(reading.angular_velocity - noiseless.angular_velocity)
    assert np.std(errors) == pytest.approx(0.5, rel=0.1)
    assert abs(np.mean(errors)) < 0.1


FAULTS: dict[str, Fault] = {
    "patch": GroundFault(FrictionPatch(0.5, 0.0, 0.2, 2.0, 2.0, 0.1)),
    "stone": JointFault("rover", "fl_joint", "blocked"),
    "weak": JointFault("rover", "fr_joint", "weak", 0.3),
    "queue": SensorFault("rover", "imu", "delayed", 0.03),
    "noise": SensorFault("rover", "imu", "noisy", 0.1),
    "stuck": SensorFault("rover", "encoder", "stuck"),
}


def start_all_faults(sim: Simulation) -> None:
    joints = sim.hardware("rover").joint_names
    for name, fault in FAULTS.items():
        if isinstance(fault, JointFault):
            fault = JointFault("rover", joints[0 if name == "stone" else 1], fault.mode, fault.magnitude)
        if isinstance(fault, SensorFault) and fault.sensor == "encoder":
            fault = SensorFault("rover", sim.sensors("rover")[1].sensor.name, fault.mode)
        sim.faults.start(name, fault)


def observe(sim: Simulation) -> list[bytes]:
    found = []
    for _ in range(40):
        sim.step(5)
        reading = sim.faults.read_through_faults(sim.sensors("rover")[0])
        noise = b"" if reading is None else reading.angular_velocity.tobytes()
        found.append(sim.world.data.qpos.tobytes() + noise + sim.hardware("rover").read().position.tobytes())
    return found


def test_state_saved_during_faults_continues_bit_for_bit() -> None:
    sim = shared_simulation(driving_rover)
    start_all_faults(sim)
    for _ in range(3):
        sim.step(5)
        sim.faults.read_through_faults(sim.sensors("rover")[0])
    saved = pickle.loads(pickle.dumps(sim.save_state()))
    first = observe(sim)
    restored = driving_rover(-2.0)  # anything else
    restored.load_state(saved)
    assert observe(restored) == first
    assert restored.faults.active.keys() == sim.faults.active.keys()


def test_ended_faults_leave_no_trace_when_models_are_added() -> None:
    sim = driving_rover()
    original_arrays = {
        name: getattr(sim.world.model, name).copy() for name in ("jnt_range", "jnt_limited", "actuator_forcerange")
    }
    floats = sim.world.servos.floats[:, 5].copy()
    start_all_faults(sim)
    sim.add(free_box(), "crate", make_pose(3.0, 3.0, 0.2))  # compiled anew: the faults stay
    assert sim.world.model.jnt_limited.sum() == original_arrays["jnt_limited"].sum() + 1
    assert len(sim.world.surfaces.patches) == 1
    sim.remove("crate")
    for name in FAULTS:
        sim.faults.end(name)
    for name, values in original_arrays.items():
        assert np.array_equal(getattr(sim.world.model, name), values)
    assert np.array_equal(sim.world.servos.floats[:, 5], floats)
    assert not len(sim.world.surfaces.patches)
    sim.faults.end("never begun")


def test_invalid_faults_are_refused_with_the_choices() -> None:
    sim = shared_simulation(driving_rover)
    for fault, error, text in (
        (SensorFault("rovre", "imu", "silent"), UnknownNameError, "rovre"),
        (SensorFault("rover", "nose", "silent"), UnknownNameError, "no sensor 'nose'"),
        (JointFault("rover", "knee", "blocked"), UnknownNameError, "no joint 'knee'"),
        (GroundFault(FrictionPatch(0, 0, 0, -1.0, 1.0, 0.1)), InputError, "patch"),
    ):
        with pytest.raises(error, match=text) as caught:
            sim.faults.start("x", fault)  # type: ignore[arg-type]
        assert caught.value.valid
    assert not sim.faults.active
    with pytest.raises(InputError, match="no link"):
        sim.set_surface_velocity("ground_plane", "lnik", (1.0, 0.0, 0.0))
    with pytest.raises(InputError, match="moves itself"):
        sim.set_surface_velocity("rover", "base_link", (1.0, 0.0, 0.0))
    assert not sim.surface_velocities


DELAYS = (0.0137, 0.033, 0.25)


@pytest.mark.parametrize("delay", DELAYS)
def test_delayed_encoder_repeats_its_earlier_counts(delay: float) -> None:
    """Whatever the reading times are: a twin is read in every step."""
    sim, twin = shared_simulation(driving_rover), driving_rover()
    sim.faults.start("queue", SensorFault("rover", sim.sensors("rover")[1].sensor.name, "delayed", delay))
    step = sim.timestep_ns
    earlier = {}
    for _ in range(300):
        earlier[twin.time_ns] = twin.hardware("rover").read().position
        twin.step(1)
    for steps in (11, 7, 140, 3, 60):
        sim.step(steps)
        sample_time_ns = (sim.time_ns - round(delay * 1e9)) // step * step
        if sample_time_ns in earlier:
            assert np.array_equal(sim.hardware("rover").read().position, earlier[sample_time_ns])
