"""Joints that close loops or join models leave exactly their own degrees of freedom free."""

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.harness.models import make_pose, make_world

from roboyard.description import Model, load_model, load_world
from roboyard.description.model import JointInterface
from roboyard.geometry import SE3
from roboyard.hardware import JointCommand
from roboyard.simulation import Simulation

INERTIAL = (
    "<inertial><pose>0.02 0.01 -0.03 0 0 0</pose><mass>{mass}</mass><inertia><ixx>0.02</ixx><iyy>0.03</iyy>"
    "<izz>0.025</izz></inertia></inertial>"
)
PITCH = 0.2
ORIGIN = np.array([0.1, 0.05, 0.2])  # of the joint, in the child's frame
FIRST, SECOND = np.array([0.0, 0.6, 0.8]), np.array([1.0, 0.0, 0.0])
KINDS = ("revolute", "prismatic", "universal", "revolute2", "screw", "fixed", "ball")


def joint_elements(kind: str, first_axis_elements: str = "", second_axis_elements: str = "") -> str:
    axis = f"<axis><xyz>0 0.6 0.8</xyz>{first_axis_elements}</axis>" if kind not in ("ball", "fixed") else ""
    if kind in ("universal", "revolute2"):
        axis += f"<axis2><xyz>1 0 0</xyz>{second_axis_elements}</axis2>"
    return f"<pose>0.1 0.05 0.2 0 0 0</pose>{axis}<screw_thread_pitch>{PITCH}</screw_thread_pitch>"


def joined_pair(
    kind: str, first_axis_elements: str = "", second_axis_elements: str = "", parent: str = "a::link"
) -> Simulation:
    """Two free bodies of 1 and 3 kg without weight, joined by the world."""
    bodies = "".join(
        f'<model name="{name}"><pose>{x} 0 1 0 0 0</pose><link name="link">{INERTIAL.format(mass=mass)}</link></model>'
        for name, x, mass in (("a", 0.0, 3.0), ("b", 0.5, 1.0))
    )
    joint_start = f'<joint name="j" type="{kind}"><parent>{parent}</parent><child>b::link</child>'
    elements = joint_elements(kind, first_axis_elements, second_axis_elements)
    text = f'<sdf version="1.11"><world name="w"><gravity>0 0 0</gravity>{bodies}{joint_start}{elements}'
    return Simulation(load_world(f"{text}</joint></world></sdf>"), timestep=0.001)


def link_pose(sim: Simulation, name: str, link: str = "link") -> SE3:
    body = sim.world.addresses(name).links[link].body
    return SE3(sim.world.data.xquat[body], sim.world.data.xpos[body])


def apply_force(sim: Simulation, name: str, force: NDArray[np.float64]) -> None:
    sim.world.data.xfrc_applied[sim.world.addresses(name).links["link"].body] = force


def joint_error_and_motion(kind: str, T: SE3) -> tuple[float, float]:
    """How far the joint's frame is from where it may be [m, rad]; and how far it has moved along what is free."""
    R, p = T.rotation_matrix(), T.xyz
    rotation = np.asarray(SE3(T.rotation, (0.0, 0.0, 0.0)).log()[3:])
    distance = float(p @ FIRST)
    match kind:
        case "fixed":
            return max(np.linalg.norm(p), np.linalg.norm(rotation)), 1.0
        case "ball":
            return float(np.linalg.norm(p)), float(np.linalg.norm(rotation))
        case "revolute":
            return max(np.linalg.norm(p), np.linalg.norm(np.cross(rotation, FIRST))), float(np.linalg.norm(rotation))
        case "prismatic":
            return max(np.linalg.norm(p - distance * FIRST), np.linalg.norm(rotation)), abs(distance)
        case "screw":
            deviation = max(np.linalg.norm(p - distance * FIRST), np.linalg.norm(np.cross(rotation, FIRST)))
            return max(deviation, abs(distance - PITCH * float(rotation @ FIRST) / (2.0 * math.pi))), float(
                np.linalg.norm(rotation)
            )
        case _:
            return max(np.linalg.norm(p), abs(float(FIRST @ R @ SECOND))), float(np.linalg.norm(rotation))


def T_parent_child_joint(sim: Simulation, start: SE3) -> SE3:
    """The joint's frame in the child, seen from that in the parent."""
    joint = SE3(translation=ORIGIN)
    return joint.inverse() @ start.inverse() @ link_pose(sim, "a").inverse() @ link_pose(sim, "b") @ joint


@pytest.mark.parametrize("kind", KINDS)
def test_loop_joint_frees_only_its_own_directions(kind: str) -> None:
    sim = joined_pair(kind)
    assert not sim.warnings
    start = link_pose(sim, "a").inverse() @ link_pose(sim, "b")
    rng = np.random.default_rng(4)
    max_error = max_motion = 0.0
    for _ in range(10):
        apply_force(sim, "a", rng.uniform(-1.0, 1.0, 6) * [5, 5, 5, 0.3, 0.3, 0.3])
        apply_force(sim, "b", rng.uniform(-1.0, 1.0, 6) * [5, 5, 5, 0.3, 0.3, 0.3])
        for _ in range(10):
            sim.step(10)
            deviation, motion = joint_error_and_motion(kind, T_parent_child_joint(sim, start))
            max_error, max_motion = max(max_error, deviation), max(max_motion, motion)
    assert max_error < 1e-4
    assert max_motion > 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_loop_joints_conserve_momentum_and_energy(kind: str) -> None:
    sim = joined_pair(kind)
    rng = np.random.default_rng(2)
    for name in "ab":
        apply_force(sim, name, rng.uniform(-1.0, 1.0, 6) * [5, 5, 5, 0.3, 0.3, 0.3])
    sim.step(300)
    sim.world.data.xfrc_applied[:] = 0.0

    def momentum_and_energy() -> tuple[NDArray[np.float64], float]:
        mujoco.mj_subtreeVel(sim.world.model, sim.world.data)
        mujoco.mj_energyVel(sim.world.model, sim.world.data)
        mass = sim.world.model.body_subtreemass[1:]
        roots = sim.world.model.body_parentid[1:] == 0
        return (mass[:, None] * sim.world.data.subtree_linvel[1:])[roots].sum(axis=0), float(sim.world.data.energy[1])

    sim.step(1)
    momentum_before, energy_before = momentum_and_energy()
    assert float(sim.world.model.body_mass.sum()) == pytest.approx(4.0)
    sim.step(1000)
    momentum_after, energy_after = momentum_and_energy()
    np.testing.assert_allclose(momentum_after, momentum_before, atol=2e-3 * np.abs(momentum_before).max())
    assert energy_after == pytest.approx(energy_before, rel=0.01)


def test_world_joint_has_its_limits_damping_and_friction() -> None:
    axis_elements = "<limit><lower>-0.1</lower><upper>0.2</upper></limit><dynamics><damping>4</damping></dynamics>"
    sim = joined_pair("prismatic", axis_elements, parent="world")
    start = link_pose(sim, "b")
    apply_force(sim, "b", np.r_[2.0 * FIRST, np.zeros(3)])
    sim.step(300)  # 2 N against 4 N s/m: half a metre a second, after a quarter of a second's time constant
    distance = float((link_pose(sim, "b").xyz - start.xyz) @ FIRST)
    assert distance == pytest.approx(0.5 * (0.3 - 0.25 * (1.0 - math.exp(-0.3 / 0.25))), rel=0.02)
    sim.step(3000)
    assert float((link_pose(sim, "b").xyz - start.xyz) @ FIRST) == pytest.approx(0.2, abs=2e-3)
    with_friction = joined_pair("prismatic", "<dynamics><friction>3</friction></dynamics>", parent="world")
    apply_force(with_friction, "b", np.r_[2.0 * FIRST, np.zeros(3)])
    with_friction.step(1000)
    assert np.linalg.norm(link_pose(with_friction, "b").xyz - start.xyz) < 1e-3


def test_gearbox_couples_joints_of_two_models() -> None:
    wheels = "".join(
        f'<model name="{name}"><pose>{x} 0 1 0 0 0</pose><link name="link">{INERTIAL.format(mass=1)}</link>'
        '<joint name="axle" type="revolute"><parent>world</parent><child>link</child>'
        "<axis><xyz>0 0 1</xyz></axis></joint></model>"
        for name, x in (("a", 0.0), ("b", 0.5))
    )
    gears = (
        '<joint name="g" type="gearbox"><parent>a::link</parent><child>b::link</child><gearbox_ratio>2</gearbox_ratio>'
        "<gearbox_reference_body>world</gearbox_reference_body><axis><xyz>0 0 1</xyz></axis>"
        "<axis2><xyz>0 0 1</xyz></axis2>"
        "</joint>"
    )
    sim = Simulation(load_world(f'<sdf version="1.11"><world name="w">{wheels}{gears}</world></sdf>'), timestep=0.001)
    assert not sim.warnings
    sim.hardware("a").write(JointCommand("velocity", ("axle",), np.array([1.0])))
    sim.step(800)
    first, second = (sim.world.data.qpos[sim.world.addresses(name).joints[0].qpos] for name in "ab")
    assert first > 0.6
    assert second == pytest.approx(-2.0 * first, rel=2e-3)


def crank_model(slide_elements: str = "") -> Model:
    """A crank of 0.1 m, a rod of 0.3 m, and a piston whose slide along x closes the loop."""
    inertial = (
        "<inertial><mass>0.5</mass><inertia><ixx>0.002</ixx><iyy>0.002</iyy><izz>0.002</izz></inertia></inertial>"
    )
    parts = "".join(
        f'<link name="{name}"><pose>{x} 0 0 0 0 0</pose>{inertial}</link>'
        for name, x in (("base", 0.0), ("crank", 0.0), ("rod", 0.1), ("piston", 0.4))
    )

    def revolute_joint(name: str, parent: str, child: str) -> str:
        axis = "<axis><xyz>0 1 0</xyz></axis>"
        return f'<joint name="{name}" type="revolute"><parent>{parent}</parent><child>{child}</child>{axis}</joint>'

    slide = f"<axis><xyz>1 0 0</xyz>{slide_elements}</axis>"
    return load_model(
        f'<sdf version="1.9"><model name="m">{parts}<joint name="w" type="fixed"><parent>world</parent>'
        f"<child>base</child></joint>{revolute_joint('a', 'base', 'crank')}{revolute_joint('b', 'crank', 'rod')}"
        f'{revolute_joint("c", "rod", "piston")}<joint name="s" '
        'type="prismatic"><parent>base</parent><child>piston</child>'
        f"{slide}</joint></model></sdf>"
    )


def test_crank_drives_its_piston() -> None:
    """x = r cos(a) + sqrt(l² - r² sin²(a)), and the slide tells its position like any joint."""
    model = crank_model()
    assert [one.name for one in model.loop_joints] == ["s"]
    sim = Simulation(make_world(gravity=0.0), timestep=0.001)
    sim.add(model, "m")
    assert not sim.warnings
    addresses = {one.name: one for one in sim.world.addresses("m").joints}
    assert set(addresses) == {"a", "b", "c", "s"}
    sim.hardware("m").write(JointCommand("velocity", ("a",), np.array([2.0])))
    for _ in range(60):
        sim.step(50)
        a, s = (float(sim.world.data.qpos[addresses[name].qpos]) for name in "as")
        x = 0.1 * math.cos(a) + math.sqrt(0.09 - (0.1 * math.sin(a)) ** 2)
        piston_pose = link_pose(sim, "m", "piston")
        np.testing.assert_allclose(piston_pose.xyz, (x, 0.0, 0.0), atol=1e-4)
        np.testing.assert_allclose(piston_pose.rotation_matrix(), np.eye(3), atol=2e-4)
        assert s == pytest.approx(x - 0.4, abs=1e-4)
    assert a > 5.5


def test_motor_on_a_loop_joint_drives_the_loop() -> None:
    sim = Simulation(make_world(gravity=0.0), timestep=0.001)
    sim.add(crank_model("<limit><lower>-0.15</lower><upper>0</upper></limit>"), "m", make_pose())
    addresses = {one.name: one for one in sim.world.addresses("m").joints}
    sim.world.data.qpos[addresses["a"].qpos] = 0.0
    sim.hardware("m").write(JointCommand("effort", ("a",), np.array([0.05])))
    sim.step(200)  # off its dead centre
    sim.hardware("m").write(JointCommand("effort", ("a",), np.array([0.0])))
    sim.hardware("m").write(JointCommand("position", ("s",), np.array([-0.08])))
    sim.step(2500)
    assert link_pose(sim, "m", "piston").xyz[0] == pytest.approx(0.32, abs=2e-3)
    sim.hardware("m").write(JointCommand("effort", ("s",), np.array([-20.0])))
    sim.step(2000)
    assert link_pose(sim, "m", "piston").xyz[0] == pytest.approx(0.25, abs=3e-3)


@pytest.mark.parametrize("start", [0.4, -1.1])
def test_loop_closes_from_an_offset_initial_position(start: float) -> None:
    """Only the crank's start is stated: rod, piston and slide go where the closed forms say, and nothing jerks."""
    model = replace(
        crank_model(), interfaces=(JointInterface("a", (("position", -3.0, 3.0),), (), (("position", start),)),)
    )
    sim = Simulation(make_world(gravity=0.0), timestep=0.001)
    sim.add(model, "m")
    x = 0.1 * math.cos(start) + math.sqrt(0.09 - (0.1 * math.sin(start)) ** 2)
    np.testing.assert_allclose(link_pose(sim, "m", "piston").xyz, (x, 0.0, 0.0), atol=1e-6)
    sim.step(100)
    assert np.abs(sim.world.data.qvel).max() < 1e-3
