"""Robots put on level ground rest, tip or fall as statics says."""

import math

import pytest
from tests.harness.models import IDENTITY, box_inertia, make_pose, rover_model

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Box,
    Collision,
    Inertial,
    Joint,
    JointInterface,
    Link,
    Model,
    Sphere,
)
from roboyard.simulation.stability_check import check_stability


def make_block(name: str, size: tuple[float, float, float], mass: float = 1.0, x: float = 0.0, z: float = 0.0) -> Link:
    shape = Collision(f"{name}_shape", Box(size), IDENTITY)
    return Link(name, make_pose(x=x, z=z), Inertial(mass, IDENTITY, box_inertia(mass, size)), (shape,))


def make_crane(reach: float) -> Model:
    """A foot of 0.2 m and 1 kg with a weight of 1 kg at ``reach`` beside its center: the common center of mass is at
    half of that."""
    foot, weight = make_block("foot", (0.2, 0.2, 0.1)), make_block("weight", (0.02, 0.02, 0.02), x=reach, z=0.2)
    boom = Joint("boom", "revolute", "foot", "weight", make_pose(x=reach, z=0.2), IDENTITY, (Axis((0.0, 1.0, 0.0)),))
    return Model("crane", (foot, weight), (boom,))


@pytest.mark.parametrize(("reach", "falls"), [(0.0, False), (0.19, False), (0.21, True), (0.5, True)])
def test_stability_depends_on_the_center_of_mass(reach: float, falls: bool) -> None:
    """It stands as long as half of the reach is less than half of the foot."""
    found = check_stability(make_crane(reach), duration=1.5, use_servos=True)
    assert found is not None
    assert found.com_overhang == pytest.approx(max(0.0, reach / 2 - 0.1), abs=1e-9)
    assert found.has_fallen() == falls
    assert found.n_servo_joints == 1
    if not falls:
        assert found.is_at_rest()
        assert found.tilt < 0.01
    locked = check_stability(make_crane(reach), duration=1.5)
    assert locked is not None
    assert (locked.n_servo_joints, locked.n_locked_joints) == (0, 1)
    assert locked.has_fallen() == falls
    assert locked.com_overhang == pytest.approx(found.com_overhang)


def test_rover_rests_on_level_ground() -> None:
    found = check_stability(rover_model())
    assert found is not None
    assert found.is_at_rest()
    assert found.penetration < 0.001
    assert found.com_overhang == 0.0


def test_joints_without_position_mode_are_locked_at_start() -> None:
    """An arm that starts folded over the foot stands, and falls when it starts stretched."""
    foot, weight = make_block("foot", (0.2, 0.2, 0.1)), make_block("weight", (0.02, 0.02, 0.02))
    joint = Joint("turn", "revolute", "foot", "weight", make_pose(z=0.2), make_pose(x=-0.5), (Axis((0.0, 0.0, 1.0)),))
    foot = Link("foot", make_pose(), foot.inertial, foot.collisions)
    for angle, falls in ((0.0, False), (math.pi, True)):
        interface = JointInterface("turn", (("effort", -1.0, 1.0),), ("position",), (("position", angle),))
        found = check_stability(
            Model("m", (foot, weight), (joint,), interfaces=(interface,)), duration=1.5, use_servos=True
        )
        assert found is not None
        assert (found.n_servo_joints, found.n_locked_joints) == (0, 1)
        assert found.has_fallen() == falls, angle


def test_model_without_collisions_has_no_stability() -> None:
    assert (
        check_stability(Model("ghost", (Link("l", IDENTITY, Inertial(1.0, IDENTITY, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))),)))
        is None
    )


def test_ball_on_one_contact_point_is_stable() -> None:
    ball = Link(
        "ball",
        IDENTITY,
        Inertial(1.0, IDENTITY, (0.4, 0.4, 0.4, 0.0, 0.0, 0.0)),
        (Collision("c", Sphere(0.1), IDENTITY),),
    )
    found = check_stability(Model("ball", (ball,)))
    assert found is not None
    assert found.com_overhang == pytest.approx(0.0, abs=1e-9)
    assert found.is_at_rest()


def make_quadruped(effort: float, foot: float = 0.05) -> Model:
    """A body of 20 kg on four legs of two light links each, bent at the knee."""
    body = make_block("body", (0.5, 0.3, 0.1), 20.0, z=1.0)
    links, joints = [body], []
    for x in (-0.2, 0.2):
        for y in (-0.15, 0.15):
            name = f"{'fl' if x > 0 else 'hl'}{'l' if y > 0 else 'r'}"
            thigh = Link(
                f"{name}_thigh", make_pose(x, y, 1.0), Inertial(0.3, make_pose(z=-0.1), (1e-3, 1e-3, 1e-4, 0, 0, 0))
            )
            ball = Collision(f"{name}_foot", Sphere(0.02), make_pose(z=-0.25))
            shank = Link(
                f"{name}_shank",
                make_pose(x, y, 0.75),
                Inertial(foot, make_pose(z=-0.12), (1e-4,) * 3 + (0.0,) * 3),
                (ball,),
            )
            axis = Axis((0.0, 1.0, 0.0), AxisLimits(effort=effort))
            knee = Axis((0.0, 1.0, 0.0), AxisLimits(-2.5, -0.9, effort=effort))
            joints += [
                Joint(f"{name}_hip", "revolute", "body", thigh.name, make_pose(x, y), IDENTITY, (axis,)),
                Joint(f"{name}_knee", "revolute", thigh.name, shank.name, make_pose(z=-0.25), IDENTITY, (knee,)),
            ]
            links += [thigh, shank]
    starts = tuple(
        JointInterface(one.name, (("position", -3.0, 3.0),), (), (("position", 0.6),) if "hip" in one.name else ())
        for one in joints
    )
    return Model("dog", tuple(links), tuple(joints), interfaces=starts)


@pytest.mark.parametrize("foot", [0.02, 0.2])
def test_servos_hold_light_legs(foot: float) -> None:
    """Legs of a fiftieth of the weight; the knees' limits leave out zero."""
    found = check_stability(make_quadruped(30.0, foot), use_servos=True)
    assert found is not None
    assert found.n_servo_joints == 8
    assert found.is_at_rest(max_penetration=0.002, max_speed=0.02, max_angular_speed=0.1)
    assert found.tilt < 0.02
    assert found.weak_joints == ()


def test_too_weak_servos_are_named() -> None:
    found = check_stability(make_quadruped(3.0), use_servos=True)
    assert found is not None
    assert found.weak_joints
