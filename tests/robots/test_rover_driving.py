"""The rover in simulation follows velocity commands, its odometry fits, and so does the slip factor of its file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.harness.bus import BusHarness, twist

import roboyard
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_loader import load_robot_file
from roboyard.bringup.robot_nodes import create_node
from roboyard.control import Ramp, RampLimits
from roboyard.control.drive_config import DifferentialDriveConfig
from roboyard.description import load_model, load_world
from roboyard.description.model import Collision, Link, Model, PlacedModel, Plane, World
from roboyard.geometry import SE3
from roboyard.hardware import JointCommand
from roboyard.localization import compute_no_slip_rotations, fit_slip_factor
from roboyard.simulation import Simulation

PACKAGE = Path(roboyard.__file__).parent
ROVER = PACKAGE / "robots" / "rover" / "rover.yaml"
ARENA = PACKAGE / "worlds" / "arena.sdf"
START = SE3.from_xyz_rpy((-1.5, 0.0, 0.0))
FLOOR = Model(
    "floor", (Link("floor", SE3.identity(), collisions=(Collision("top", Plane(), SE3.identity()),)),), static=True
)
FLAT = World("flat", (PlacedModel("floor", FLOOR, SE3.identity()),))


@pytest.fixture(scope="module")
def package() -> RobotPackage:
    return load_robot_file(ROVER)


@pytest.fixture(scope="module")
def rover(package: RobotPackage) -> Model:
    return load_model(package.description)


class RoverInArena:
    """The rover in the arena, brought up as its file says, and an operator."""

    def __init__(self, package: RobotPackage, model: Model) -> None:
        self.harness = BusHarness()
        self.simulation = Simulation(load_world(ARENA), seed=1)
        self.simulation.add(model, "rover", START)
        self.harness.bus.executor.on_advance(self.simulation.advance_to)
        hardware = self.simulation.hardware("rover")
        resources = {"hardware": hardware, "description": model, **package.stated_resources()}
        for name in package.config.autostart:
            spec = package.node(name)
            self.harness.add(create_node(spec.type, spec.parameters, resources), name, remap=spec.remap)

    def drive(self, vx: float, wz: float, seconds: float) -> None:
        """Publish a velocity command ten times a second."""
        for _ in range(round(seconds / 0.1)):
            self.harness.publish("/cmd_vel", twist(vx, wz), source="/teleop")
            self.harness.run_for(0.1)

    @property
    def pose(self) -> SE3:
        """True pose, from where it started."""
        return START.inverse() @ self.simulation.ground_truth("rover").T_world_base

    @property
    def contacts(self) -> list[str]:
        """What the rover ran into."""
        return [str(episode) for episode in self.simulation.contact_episodes("rover")]

    @property
    def odom(self) -> SE3:
        """Its pose by odometry."""
        return self.harness.bus.transforms.lookup("odom", "base_link")


@pytest.fixture
def arena(package: RobotPackage, rover: Model) -> Iterator[RoverInArena]:
    """The rover in the arena; its bus is closed in the end."""
    arena = RoverInArena(package, rover)
    with arena.harness:
        yield arena


def test_straight_drive_follows_the_twist_with_odometry(arena: RoverInArena) -> None:
    arena.drive(0.5, 0.0, 4.0)
    assert arena.simulation.ground_truth("rover").linear_velocity[0] == pytest.approx(0.5, abs=0.01)
    arena.harness.run_for(1.5)  # silence: the arbiter's time-out, then the ramp
    assert np.abs(arena.simulation.ground_truth("rover").linear_velocity).max() < 1e-3
    ramps = 0.5**2 / (2 * 2.0) - 0.5**2 / (2 * 1.5)  # braking's way, less what speeding up costs
    assert arena.pose.x == pytest.approx(0.5 * (3.9 + 0.5) + ramps, abs=0.02), "the last command at 3.9 s counts 0.5 s"
    assert math.dist(arena.odom.xyz, arena.pose.xyz) < 0.005
    assert abs(arena.odom.yaw - arena.pose.yaw) < 0.005
    assert arena.contacts == []
    assert len(arena.harness.published("/odom")) == pytest.approx(5.5 * 50, abs=2)


@pytest.mark.parametrize("turn", [0.6, -1.0])
def test_arc_follows_the_twist(arena: RoverInArena, turn: float) -> None:
    arena.drive(0.4, turn, 4.0)
    assert arena.contacts == []
    velocity = arena.simulation.ground_truth("rover")
    assert velocity.angular_velocity[2] == pytest.approx(turn, rel=0.03)
    assert velocity.linear_velocity[0] == pytest.approx(0.4, abs=0.02)
    assert math.dist(arena.odom.xyz, arena.pose.xyz) < 0.1, "slip sideways is not seen by wheels"
    assert abs(math.remainder(arena.odom.yaw - arena.pose.yaw, math.tau)) < 0.05 * abs(turn) * 4.0


def test_rover_keeps_its_speed_limit(arena: RoverInArena) -> None:
    max_speed = 0.0
    for _ in range(20):
        arena.drive(9.0, 0.0, 0.1)
        max_speed = max(max_speed, arena.simulation.ground_truth("rover").linear_velocity[0])
    assert 1.9 < max_speed < 2.02


def test_slip_factor_of_the_file_is_the_calibrated_one(package: RobotPackage, rover: Model) -> None:
    """Drive turns, note wheels and truth, regress.

    Independent of all that: with equal loads and Coulomb friction the moments of the wheels' forces balance at
    k = 1 + (wheelbase / track)² on the spot; wheels of some width add a little.
    """
    drive = package.config.drive
    assert isinstance(drive, DifferentialDriveConfig)
    joints = drive.wheel_joints
    rolled, turned, on_the_spot = [], [], []
    for v in (0.0, 0.3, 0.6):
        for w in (0.4, -0.8, 1.2):
            simulation = Simulation(FLAT)
            simulation.add(rover, "rover")
            hardware = simulation.hardware("rover")
            columns = [hardware.joint_names.index(joint) for joint in joints]
            linear, angular = Ramp(RampLimits(acceleration=1.5)), Ramp(RampLimits(acceleration=4.0))
            rows = []
            for _ in range(250):
                left, right = drive.left_right_speeds(linear.step(v, 0.02), angular.step(w, 0.02))
                hardware.write(JointCommand("velocity", joints, np.array([left, left, right, right])))
                simulation.step(10)
                angles = hardware.read().position[columns]
                rows.append((angles[:2].mean(), angles[2:].mean(), simulation.ground_truth("rover").T_world_base.yaw))
            steady = np.array(rows)[75:]  # without the ramps
            steady[:, 2] = np.unwrap(steady[:, 2])
            left, right, true = steady[-1] - steady[0]
            rolled.append(float(compute_no_slip_rotations(drive, [left], [right])[0]))
            turned.append(true)
            if v == 0.0:
                on_the_spot.append(rolled[-1] / true)
    fit = fit_slip_factor(rolled, turned)
    assert drive.slip_factor == pytest.approx(fit.slip_factor, rel=0.01)  # which other turns are found to have
    assert fit.standard_error < 0.01
    assert on_the_spot == pytest.approx([1 + (0.3 / 0.35) ** 2] * 3, rel=0.02)
