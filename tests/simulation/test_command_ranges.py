"""Commands stay within what joints, interfaces and safety controllers allow."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.harness.models import IDENTITY, make_pose, make_world

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Inertial,
    Joint,
    JointInterface,
    JointType,
    Link,
    Mimic,
    Model,
    SafetyController,
)
from roboyard.hardware import JointCommand
from roboyard.simulation import Simulation

MODES = ("position", "velocity", "effort")


def flywheel(
    safety: SafetyController | None = None,
    kind: JointType = "revolute",
    speed: float = 4.0,
    ranges: tuple[float, float] = (-math.inf, math.inf),
) -> Model:
    """A wheel of 0.1 kg m² about a vertical axis at the world, limited to ±2."""
    link = Link("wheel", make_pose(z=1.0), Inertial(1.0, IDENTITY, (0.06, 0.06, 0.1, 0, 0, 0)))
    ends = (-math.inf, math.inf) if kind == "continuous" else (-2.0, 2.0)
    axis = Axis((0, 0, 1), AxisLimits(*ends, velocity=speed, effort=30.0))
    joint = Joint("hinge", kind, "world", "wheel", make_pose(z=1.0), IDENTITY, (axis,), safety=safety)
    interface = JointInterface("hinge", tuple((mode, *ranges) for mode in MODES))
    return Model("flywheel", (link,), (joint,), interfaces=(interface,))


def course(model: Model, mode: str, value: float, steps: int = 1500, start: float = 0.0) -> np.ndarray:
    """Position, speed and effort after each step of a constant command."""
    sim = Simulation(make_world())
    sim.add(replace(model, interfaces=tuple(replace(i, initial=(("position", start),)) for i in model.interfaces)), "m")
    hardware = sim.hardware("m")
    rows = []
    for _ in range(steps):
        hardware.write(JointCommand(mode, ("hinge",), np.array([value])))  # type: ignore[arg-type]
        sim.step()
        read = hardware.read()
        rows.append((read.position[0], read.velocity[0], read.effort[0]))
    return np.array(rows)


SOFT = SafetyController(-1.0, 1.0, k_position=5.0, k_velocity=8.0)


def test_commanded_speed_falls_towards_the_soft_limit() -> None:
    """v <= k (soft - q): the joint nears its soft limit exponentially, at the speed's limit before."""
    rows = course(flywheel(SOFT), "velocity", 9.0)
    assert rows[:, 0].max() == pytest.approx(1.0, abs=0.01)
    free = rows[:, 0] < 0.15
    assert rows[20:][free[20:], 1] == pytest.approx(4.0, rel=0.05)  # nearer than 4/5 rad it slows down
    near = (rows[:, 0] > 0.4) & (rows[:, 0] < 0.95)
    np.testing.assert_allclose(rows[near, 1], 5.0 * (1.0 - rows[near, 0]), atol=0.12)
    assert course(flywheel(), "velocity", 9.0)[:, 0].max() > 1.9  # it is the safety controller that does it


def test_position_set_point_is_clamped_to_the_soft_limit() -> None:
    rows = course(flywheel(SOFT), "position", 1.9)
    assert rows[-1, 0] == pytest.approx(1.0, abs=0.01)
    assert np.abs(rows[:, 1]).max() < 4.4
    back = course(flywheel(SOFT), "position", 1.9, start=1.8)
    assert back[-1, 0] == pytest.approx(1.0, abs=0.01)


def test_effort_is_bounded_by_the_remaining_speed() -> None:
    """e <= k (v_max - v): a constant effort ends at the speed's limit, and the joint before its hard limit."""
    wheel = flywheel(SafetyController(k_velocity=8.0), "continuous")
    rows = course(wheel, "effort", 1.0)
    assert rows[-1, 1] == pytest.approx(4.0, rel=0.01)
    assert course(flywheel(kind="continuous"), "effort", 1.0)[-1, 1] > 20.0
    stopped = course(flywheel(SOFT), "effort", 1.0)
    assert stopped[:, 0].max() < 1.05
    assert stopped[-1, 0] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("safety", [SafetyController(0.0, 0.0, 5.0, 0.0), SafetyController(-1.0, 1.0, 0.0, 0.0)])
def test_commands_without_gain_or_range_are_unbounded(safety: SafetyController) -> None:
    for mode, value in (("velocity", 3.0), ("position", 1.5), ("effort", 1.0)):
        assert np.array_equal(course(flywheel(safety), mode, value, 300), course(flywheel(), mode, value, 300))


def test_commands_are_clamped_to_the_interface_range() -> None:
    """Its range counts where it is the narrower one, and not where it lies beside the joint's."""
    assert course(flywheel(ranges=(-0.5, 0.7)), "velocity", 3.0, 200)[-1, 1] == pytest.approx(0.7, abs=0.01)
    assert course(flywheel(ranges=(-0.5, 0.7)), "position", -2.0)[-1, 0] == pytest.approx(-0.5, abs=0.01)
    assert course(flywheel(ranges=(-0.5, 0.7)), "effort", 9.0, 50)[-1, 2] == pytest.approx(0.7)
    assert course(flywheel(ranges=(-9.0, 9.0)), "velocity", 9.0, 100)[-1, 1] == pytest.approx(4.0, abs=0.05)
    assert course(flywheel(ranges=(5.0, 9.0)), "position", 1.5)[-1, 0] == pytest.approx(1.5, abs=0.01)


def test_massless_joint_drives_heavier_mimic_joints() -> None:
    """Car-like robots have such virtual wheels: commands to it move the wheels that follow."""
    wheel = flywheel()
    virtual = Link("virtual", make_pose(z=2.0))
    leader = Joint("lead", "continuous", "world", "virtual", make_pose(z=2.0), IDENTITY, (Axis((0, 0, 1)),))
    follower = replace(wheel.joints[0], type="continuous", axes=(Axis((0, 0, 1)),), mimic=Mimic("lead", 2.0, 0.0))
    interfaces = (JointInterface("lead", (("velocity", -math.inf, math.inf),)),)
    sim = Simulation(make_world())
    sim.add(replace(wheel, links=(virtual, *wheel.links), joints=(leader, follower), interfaces=interfaces), "m")
    hardware = sim.hardware("m")
    assert hardware.joint_names == ("lead", "hinge")
    hardware.write(JointCommand("velocity", ("lead",), np.array([0.6])))
    sim.step(1500)
    np.testing.assert_allclose(hardware.read().velocity, [0.6, 1.2], rtol=0.02)
    assert sim.world.model.body_mass.sum() == pytest.approx(1.0)


def test_mimic_of_a_fixed_joint_stays_at_its_offset() -> None:
    wheel = flywheel()
    fixed = Joint("lead", "fixed", "world", "virtual", make_pose(z=2.0), IDENTITY)
    follower = replace(wheel.joints[0], mimic=Mimic("lead", 2.0, 0.3))
    sim = Simulation(make_world())
    sim.add(replace(wheel, links=(Link("virtual", make_pose(z=2.0)), *wheel.links), joints=(fixed, follower)), "m")
    sim.step(500)
    assert sim.hardware("m").read().position[-1] == pytest.approx(0.3, abs=1e-3)
