"""Servos reach their set-points, respect their limits, and take their gains from the description."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.models import IDENTITY, RIDE_HEIGHT, ground_plane, make_pose, make_world, rover_model

from roboyard.bringup.catalog import ROBOTS
from roboyard.bringup.robot_loader import load_robot_file
from roboyard.description.joint_interfaces import POSITION_BANDWIDTH
from roboyard.description.model import (
    Axis,
    AxisLimits,
    Inertial,
    Joint,
    JointDynamics,
    JointInterface,
    Link,
    Mimic,
    Model,
)
from roboyard.errors import DescriptionError, InputError, UnknownNameError
from roboyard.hardware import Hardware, JointCommand
from roboyard.physics.servos import MAX_POSITION_ERROR
from roboyard.simulation import Simulation


def arm(
    commands: tuple[str, ...] = ("position", "velocity", "effort"),
    effort: float = 50.0,
    parameters: tuple[tuple[str, str], ...] = (),
    dynamics: JointDynamics = JointDynamics(),  # noqa: B008
    lower: float = -math.inf,
    upper: float = math.inf,
) -> Model:
    """A rod on a hinge at the world, horizontal at zero: 1 kg at 0.5 m."""
    link = Link("rod", make_pose(z=1.0), Inertial(1.0, make_pose(0.5), (0.001, 0.02, 0.02, 0, 0, 0)))
    axis = Axis((0, 1, 0), AxisLimits(lower, upper, effort=effort), dynamics)
    joint = Joint("hinge", "revolute", "world", "rod", make_pose(z=1.0), IDENTITY, (axis,))
    interface = JointInterface("hinge", tuple((mode, -9.0, 9.0) for mode in commands), (), (), 1.0, parameters)
    return Model("arm", (link,), (joint,), interfaces=(interface,))


def command(sim: Simulation, mode: str, value: float, name: str = "arm", joint: str = "hinge") -> None:
    sim.hardware(name).write(JointCommand(mode, (joint,), np.array([value])))  # type: ignore[arg-type]


def drive(sim: Simulation, speed: float, name: str = "rover") -> None:
    hardware = sim.hardware(name)
    hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, speed)))


def test_position_servo_settles_against_gravity() -> None:
    sim = Simulation(make_world())
    sim.add(arm(), "arm")
    command(sim, "position", -0.7)
    sim.step(2500)
    reading = sim.hardware("arm").read()
    assert reading.position[0] == pytest.approx(-0.7, abs=1e-3)
    # Holding a rod of m at l takes -m g l cos(q) about the y axis.
    assert reading.effort[0] == pytest.approx(-9.8 * 0.5 * math.cos(0.7), rel=0.01)


def test_lift_without_an_effort_limit_holds_its_load_in_strong_gravity() -> None:
    link = Link("load", IDENTITY, Inertial(1.0, IDENTITY, (0.01, 0.01, 0.01, 0, 0, 0)))
    joint = Joint("lift", "prismatic", "world", "load", IDENTITY, IDENTITY, (Axis((0, 0, 1)),))
    interface = JointInterface("lift", (("position", -9.0, 9.0),), (), (), 1.0, ())
    sim = Simulation(make_world(gravity=-30.0))
    sim.add(Model("crane", (link,), (joint,), interfaces=(interface,)), "crane")
    command(sim, "position", 0.1, "crane", "lift")
    sim.step(5000)
    assert sim.hardware("crane").read().position[0] == pytest.approx(0.1, abs=1e-4)


def test_velocity_servo_reaches_its_speed_on_the_rover() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(rover_model(), "rover", make_pose(z=RIDE_HEIGHT))
    drive(sim, 5.0)
    sim.step(750)
    np.testing.assert_allclose(sim.hardware("rover").read().velocity, 5.0, atol=0.01)
    assert sim.ground_truth("rover").linear_velocity[0] == pytest.approx(0.5, rel=0.005)


def test_servo_effort_never_exceeds_its_limit() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(rover_model(effort=0.2), "rover", make_pose(z=RIDE_HEIGHT))
    sim.step(100)
    drive(sim, 20.0)
    for _ in range(300):
        sim.step()
        assert np.abs(sim.hardware("rover").read().effort).max() <= 0.2 + 1e-12
    # Four wheels at 0.2 N m push 9 kg and spin four wheels of 0.0025 kg m².
    acceleration = 4 * 0.2 / 0.1 / (9.00001 + 4 * 0.0025 / 0.01)
    assert sim.ground_truth("rover").linear_velocity[0] == pytest.approx(acceleration * 0.6, rel=0.02)


def test_blocked_servo_does_not_wind_up() -> None:
    sim = Simulation(make_world())
    sim.add(arm(effort=3.0), "arm")  # too weak to lift the rod
    command(sim, "position", -0.5)
    sim.step(5000)
    command(sim, "position", 1.9)
    sim.step(1)
    assert sim.hardware("arm").read().effort[0] > 0.0  # it turns round at once
    sim.step(3000)
    assert sim.hardware("arm").read().position[0] == pytest.approx(1.9, abs=0.01)


def test_effort_mode_obeys_newtons_law() -> None:
    sim = Simulation(make_world(gravity=0.0))
    sim.add(arm(), "arm")
    command(sim, "effort", 0.5)
    sim.step(100)
    inertia = 0.02 + 1.0 * 0.25
    assert sim.hardware("arm").read().velocity[0] == pytest.approx(0.5 / inertia * 0.2, rel=1e-6)


def test_set_points_stay_within_joint_limits() -> None:
    sim = Simulation(make_world(gravity=0.0))
    sim.add(arm(lower=-0.3, upper=0.3), "arm")
    command(sim, "position", 2.0)
    sim.step(1500)
    assert sim.hardware("arm").read().position[0] == pytest.approx(0.3, abs=1e-3)


def test_servo_gains_and_ramps_come_from_ros2_control_parameters() -> None:
    sim = Simulation(make_world(gravity=0.0))
    sim.add(arm(parameters=(("vel_ramp", "2.0"), ("vel_ki", "0"), ("pos_kp", "1.0"), ("pos_ki", "0"))), "arm")
    command(sim, "velocity", 5.0)
    sim.step(500)
    assert sim.hardware("arm").read().velocity[0] == pytest.approx(2.0, rel=0.02)
    with pytest.raises(DescriptionError, match="vel_kp"):
        Simulation(make_world()).add(arm(parameters=(("vel_kp", "much"),)), "arm")


def test_uncommanded_joints_are_passive() -> None:
    sim = Simulation(make_world())
    sim.add(arm(), "arm")
    period_free = []
    for _ in range(1500):
        sim.step()
        period_free.append(sim.hardware("arm").read().position[0])
    assert max(period_free) > 2.5  # it swings like a pendulum


def test_simulated_hardware_keeps_the_hardware_contract() -> None:
    sim = Simulation(make_world())
    sim.add(arm(commands=("velocity",)), "arm")
    hardware = sim.hardware("arm")
    assert isinstance(hardware, Hardware)
    assert hardware.joint_names == ("hinge",)
    assert hardware.command_modes("hinge") == ("velocity",)
    with pytest.raises(UnknownNameError, match="hinge"):
        hardware.command_modes("elbow")
    with pytest.raises(UnknownNameError, match="velocity"):
        command(sim, "position", 0.0)
    with pytest.raises(InputError, match="finite"):
        command(sim, "velocity", math.nan)
    with pytest.raises(InputError, match="2 values"):
        hardware.write(JointCommand("velocity", ("hinge",), np.zeros(2)))
    with pytest.raises(UnknownNameError, match="arm"):
        sim.hardware("leg")


def test_model_without_interfaces_takes_every_mode() -> None:
    sim = Simulation(make_world())
    sim.add(replace(arm(), interfaces=()), "arm")
    assert sim.hardware("arm").command_modes("hinge") == ("position", "velocity", "effort")


def test_saturated_wheel_in_the_air_does_not_chatter() -> None:
    sim = Simulation(make_world(gravity=0.0))
    sim.add(rover_model(), "rover", make_pose(z=1.0))
    drive(sim, 20.0)
    sim.step(300)
    speeds = []
    for _ in range(50):
        sim.step()
        speeds.append(sim.hardware("rover").read().velocity)
    assert np.ptp(speeds, axis=0).max() < 0.05


def leg(effort: float, base: float = 20.0, shank_inertia: float = 0.005) -> Model:
    """A free body with a light shank on a hinge."""
    body = Link("body", make_pose(z=1.0), Inertial(base, IDENTITY, (0.5, 0.5, 0.5, 0, 0, 0)))
    shank = Link(
        "shank",
        make_pose(x=0.3, z=1.0),
        Inertial(0.2, IDENTITY, (shank_inertia, shank_inertia, shank_inertia, 0, 0, 0)),
    )
    knee = Joint(
        "hinge", "revolute", "body", "shank", make_pose(0.3), IDENTITY, (Axis((0, 1, 0), AxisLimits(effort=effort)),)
    )
    return Model("leg", (body, shank), (knee,))


@pytest.mark.parametrize("target", [0.5, 0.02, -0.3])
def test_strong_servo_does_not_oscillate_a_light_shank(target: float) -> None:
    """33 N m could turn it by 13 rad/s in one step; it goes one way, and settles, and never gives more."""
    sim = Simulation(make_world(gravity=0.0))
    sim.add(leg(33.0), "arm")
    command(sim, "position", target)
    speeds, efforts = [], []
    for _ in range(300):
        sim.step()
        reading = sim.hardware("arm").read()
        speeds.append(float(reading.velocity[0]))
        efforts.append(float(reading.effort[0]))
    signs = np.sign([speed for speed in speeds if abs(speed) > 1e-3])
    assert np.count_nonzero(np.diff(signs)) <= 1
    assert max(map(abs, efforts)) <= 33.0
    assert sim.hardware("arm").read().position[0] == pytest.approx(target, abs=0.02)


@pytest.mark.parametrize("speed", [0.3, 0.5, 1.0])
def test_drive_of_a_folded_arm_stops_without_chatter(speed: float) -> None:
    """Stretched its first joint carries 2.7 kg m², folded 0.1: there its damping alone asks for many times 75 N m."""
    sim = Simulation(make_world())
    sim.add(load_robot_file(ROBOTS.resolve("iisy")).load_model(), "arm")
    hardware, folded = sim.hardware("arm"), np.array([0.0, -0.5 * math.pi, 2.4, 0.0, 1.2, 0.0])
    hardware.write(JointCommand("position", tuple(f"joint_{k}" for k in range(1, 7)), folded))
    sim.step(3000)
    row, step = hardware.joint_names.index("joint_1"), float(sim.world.model.opt.timestep)
    target, speeds = float(hardware.read().position[row]), []
    for _ in range(250):
        target += speed * step
        command(sim, "position", target, joint="joint_1")
        sim.step()
    for _ in range(400):
        sim.step()
        speeds.append(float(hardware.read().velocity[row]))
    signs = np.sign([each for each in speeds if abs(each) > 5e-3])
    assert np.count_nonzero(np.diff(signs)) <= 2
    assert max(map(abs, speeds[200:])) < 5e-3


def test_servo_gains_scale_with_the_carried_load() -> None:
    """A shank that stands turns its robot: the servo's effort is reached at its give, whatever the shank weighs."""
    stiffness = []
    for shank_inertia in (1e-4, 5e-3):
        sim = Simulation(make_world(gravity=0.0))
        sim.add(leg(33.0, shank_inertia=shank_inertia), "arm")
        stiffness.append(sim.world.servos.servos[("arm", "hinge")].gains["position"].p)
    assert stiffness == pytest.approx([33.0 / MAX_POSITION_ERROR] * 2)
    # Without a limit: the weight at the lever of the mass it carries, or the bandwidth on that mass, whichever is less.
    sim = Simulation(make_world())
    sim.add(leg(math.inf), "arm")
    carried_inertia = 0.5 + 20.0 * 0.3**2
    expected_gain = min(
        carried_inertia * POSITION_BANDWIDTH**2, 9.81 * math.sqrt(20.0 * carried_inertia) / MAX_POSITION_ERROR
    )
    assert sim.world.servos.servos[("arm", "hinge")].gains["position"].p == pytest.approx(expected_gain)


def test_joint_on_a_fixed_base_carries_only_its_own_link() -> None:
    sim = Simulation(make_world())
    sim.add(arm(), "arm")
    link_inertia = 0.02 + 0.25
    assert sim.world.servos.servos[("arm", "hinge")].gains["position"].p == pytest.approx(
        link_inertia * POSITION_BANDWIDTH**2
    )


def test_joint_starts_within_limits_that_exclude_zero() -> None:
    sim = Simulation(make_world(gravity=0.0))
    sim.add(arm(lower=0.4, upper=1.0), "arm")
    assert sim.hardware("arm").read().position[0] == 0.4
    sim.step(200)
    assert sim.hardware("arm").read().position[0] == pytest.approx(0.4, abs=1e-3)


def test_mimic_joints_start_at_their_driving_joints() -> None:
    """Along a chain: c follows b, which follows a."""
    turning = Inertial(1.0, IDENTITY, (0.01, 0.01, 0.01, 0, 0, 0))
    links = tuple(Link(name, make_pose(), turning) for name in "abc")
    axes = (Axis((0.0, 0.0, 1.0)),)
    joints = (
        Joint("c", "revolute", "world", "c", IDENTITY, IDENTITY, axes, Mimic("b", -1.0, 0.1)),
        Joint("b", "revolute", "world", "b", IDENTITY, IDENTITY, axes, Mimic("a", 2.0, 0.05)),
        Joint("a", "revolute", "world", "a", IDENTITY, IDENTITY, axes),
    )
    start = JointInterface("a", (("position", -1.0, 1.0),), (), (("position", 0.3),))
    sim = Simulation(make_world(gravity=0.0))
    sim.add(Model("m", links, joints, interfaces=(start,)), "arm")
    addresses = {joint.name: joint for joint in sim.world.addresses("arm").joints}
    command(sim, "position", -0.2, joint="a")
    for a in (0.3, -0.2):
        q = {name: float(sim.world.data.qpos[address.qpos]) for name, address in addresses.items()}
        assert q["a"] == pytest.approx(a, abs=2e-3)
        assert q["b"] == pytest.approx(2.0 * q["a"] + 0.05, abs=1e-4)
        assert q["c"] == pytest.approx(0.1 - q["b"], abs=1e-4)
        sim.step(1500)


@pytest.mark.parametrize(("mode", "value", "gain"), [("position", 500.0, "pos_kp"), ("velocity", 500.0, "vel_kp")])
def test_motor_effort_falls_towards_the_no_load_speed(mode: str, value: float, gain: str) -> None:
    parameters = ((gain, "5"), (gain.replace("kp", "ki"), "0"), ("pos_kd", "0"), ("no_load_speed", "6"))
    sim = Simulation(make_world(gravity=0.0))
    sim.add(arm(effort=0.6, parameters=parameters), "arm")
    command(sim, mode, min(value, 9.0))
    servo_inertia = 5.0 * 0.002 if mode == "velocity" else 0.0  # what the servo adds
    inertia, slope, speed = 1.0 * 0.5**2 + 0.02 + servo_inertia, 0.6 / 6.0, 0.0
    for _ in range(20):
        sim.step(50)
        speed = sim.hardware("arm").read().velocity[0]
        expected_speed = 6.0 * (1.0 - math.exp(-sim.time_ns * 1e-9 * slope / inertia))  # a motor's run-up
        if mode == "velocity" or sim.hardware("arm").read().position[0] < 8.0:
            assert speed == pytest.approx(expected_speed, rel=0.03, abs=0.03)
    assert 0.2 < speed < 6.0


@pytest.mark.parametrize("text", ["fast", "0", "-2", "inf"])
def test_invalid_no_load_speeds_are_refused(text: str) -> None:
    with pytest.raises(DescriptionError, match="no_load_speed"):
        Simulation(make_world()).add(arm(parameters=(("no_load_speed", text),)), "arm")
    with pytest.raises(DescriptionError, match="effort"):
        Simulation(make_world()).add(arm(effort=0.0, parameters=(("no_load_speed", "3"),)), "arm")
