"""Joints that close loops or join models leave just their own directions free, with all that descriptions say."""

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


def links(kind: str, inside: str = "", second: str = "") -> str:
    axis = f"<axis><xyz>0 0.6 0.8</xyz>{inside}</axis>" if kind not in ("ball", "fixed") else ""
    if kind in ("universal", "revolute2"):
        axis += f"<axis2><xyz>1 0 0</xyz>{second}</axis2>"
    return f"<pose>0.1 0.05 0.2 0 0 0</pose>{axis}<screw_thread_pitch>{PITCH}</screw_thread_pitch>"


def pair(kind: str, inside: str = "", second: str = "", parent: str = "a::link") -> Simulation:
    """Two free bodies of 1 and 3 kg without weight, joined by the world."""
    bodies = "".join(
        f'<model name="{name}"><pose>{x} 0 1 0 0 0</pose><link name="link">{INERTIAL.format(mass=mass)}</link></model>'
        for name, x, mass in (("a", 0.0, 3.0), ("b", 0.5, 1.0))
    )
    joined = f'<joint name="j" type="{kind}"><parent>{parent}</parent><child>b::link</child>'
    text = f'<sdf version="1.11"><world name="w"><gravity>0 0 0</gravity>{bodies}{joined}{links(kind, inside, second)}'
    return Simulation(load_world(f"{text}</joint></world></sdf>"), timestep=0.001)


def pose(sim: Simulation, name: str, link: str = "link") -> SE3:
    body = sim.placement(name).links[link].body
    return SE3(sim.data.xquat[body], sim.data.xpos[body])


def push(sim: Simulation, name: str, force: NDArray[np.float64]) -> None:
    sim.data.xfrc_applied[sim.placement(name).links["link"].body] = force


def error(kind: str, T: SE3) -> tuple[float, float]:
    """How far the joint's frame is from where it may be [m, rad]; and how far it has moved along what is free."""
    R, p = T.rotation_matrix(), T.xyz
    turn = np.asarray(SE3(T.rotation, (0.0, 0.0, 0.0)).log()[3:])
    along = float(p @ FIRST)
    match kind:
        case "fixed":
            return max(np.linalg.norm(p), np.linalg.norm(turn)), 1.0
        case "ball":
            return float(np.linalg.norm(p)), float(np.linalg.norm(turn))
        case "revolute":
            return max(np.linalg.norm(p), np.linalg.norm(np.cross(turn, FIRST))), float(np.linalg.norm(turn))
        case "prismatic":
            return max(np.linalg.norm(p - along * FIRST), np.linalg.norm(turn)), abs(along)
        case "screw":
            off = max(np.linalg.norm(p - along * FIRST), np.linalg.norm(np.cross(turn, FIRST)))
            return max(off, abs(along - PITCH * float(turn @ FIRST) / (2.0 * math.pi))), float(np.linalg.norm(turn))
        case _:
            return max(np.linalg.norm(p), abs(float(FIRST @ R @ SECOND))), float(np.linalg.norm(turn))


def apart(sim: Simulation, start: SE3) -> SE3:
    """The joint's frame in the child, seen from that in the parent."""
    joint = SE3(translation=ORIGIN)
    return joint.inverse() @ start.inverse() @ pose(sim, "a").inverse() @ pose(sim, "b") @ joint


@pytest.mark.parametrize("kind", KINDS)
def test_loop_joint_frees_only_its_own_directions(kind: str) -> None:
    sim = pair(kind)
    assert not sim.notes
    start = pose(sim, "a").inverse() @ pose(sim, "b")
    rng = np.random.default_rng(4)
    worst = moved = 0.0
    for _ in range(10):
        push(sim, "a", rng.uniform(-1.0, 1.0, 6) * [5, 5, 5, 0.3, 0.3, 0.3])
        push(sim, "b", rng.uniform(-1.0, 1.0, 6) * [5, 5, 5, 0.3, 0.3, 0.3])
        for _ in range(10):
            sim.step(10)
            off, far = error(kind, apart(sim, start))
            worst, moved = max(worst, off), max(moved, far)
    assert worst < 1e-4
    assert moved > 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_loop_joints_conserve_momentum_and_energy(kind: str) -> None:
    sim = pair(kind)
    rng = np.random.default_rng(2)
    for name in "ab":
        push(sim, name, rng.uniform(-1.0, 1.0, 6) * [5, 5, 5, 0.3, 0.3, 0.3])
    sim.step(300)
    sim.data.xfrc_applied[:] = 0.0

    def momenta() -> tuple[NDArray[np.float64], float]:
        mujoco.mj_subtreeVel(sim.model, sim.data)
        mujoco.mj_energyVel(sim.model, sim.data)
        mass = sim.model.body_subtreemass[1:]
        roots = sim.model.body_parentid[1:] == 0
        return (mass[:, None] * sim.data.subtree_linvel[1:])[roots].sum(axis=0), float(sim.data.energy[1])

    sim.step(1)
    push_before, energy_before = momenta()
    assert float(sim.model.body_mass.sum()) == pytest.approx(4.0)
    sim.step(1000)
    push_after, energy_after = momenta()
    np.testing.assert_allclose(push_after, push_before, atol=2e-3 * np.abs(push_before).max())
    assert energy_after == pytest.approx(energy_before, rel=0.01)


def test_world_joint_has_its_limits_damping_and_friction() -> None:
    inside = "<limit><lower>-0.1</lower><upper>0.2</upper></limit><dynamics><damping>4</damping></dynamics>"
    sim = pair("prismatic", inside, parent="world")
    start = pose(sim, "b")
    push(sim, "b", np.r_[2.0 * FIRST, np.zeros(3)])
    sim.step(300)  # 2 N against 4 N s/m: half a metre a second, after a quarter of a second's time constant
    gone = float((pose(sim, "b").xyz - start.xyz) @ FIRST)
    assert gone == pytest.approx(0.5 * (0.3 - 0.25 * (1.0 - math.exp(-0.3 / 0.25))), rel=0.02)
    sim.step(3000)
    assert float((pose(sim, "b").xyz - start.xyz) @ FIRST) == pytest.approx(0.2, abs=2e-3)
    rough = pair("prismatic", "<dynamics><friction>3</friction></dynamics>", parent="world")
    push(rough, "b", np.r_[2.0 * FIRST, np.zeros(3)])
    rough.step(1000)
    assert np.linalg.norm(pose(rough, "b").xyz - start.xyz) < 1e-3


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
    assert not sim.notes
    sim.hardware("a").write(JointCommand("velocity", ("axle",), np.array([1.0])))
    sim.step(800)
    first, second = (sim.data.qpos[sim.placement(name).joints[0].qpos] for name in "ab")
    assert first > 0.6
    assert second == pytest.approx(-2.0 * first, rel=2e-3)


def crank(closing: str = "") -> Model:
    """A crank of 0.1 m, a rod of 0.3 m, and a piston whose slide along x closes the loop."""
    inertial = (
        "<inertial><mass>0.5</mass><inertia><ixx>0.002</ixx><iyy>0.002</iyy><izz>0.002</izz></inertia></inertial>"
    )
    parts = "".join(
        f'<link name="{name}"><pose>{x} 0 0 0 0 0</pose>{inertial}</link>'
        for name, x in (("base", 0.0), ("crank", 0.0), ("rod", 0.1), ("piston", 0.4))
    )

    def turning(name: str, parent: str, child: str) -> str:
        axis = "<axis><xyz>0 1 0</xyz></axis>"
        return f'<joint name="{name}" type="revolute"><parent>{parent}</parent><child>{child}</child>{axis}</joint>'

    slide = f"<axis><xyz>1 0 0</xyz>{closing}</axis>"
    return load_model(
        f'<sdf version="1.9"><model name="m">{parts}<joint name="w" type="fixed"><parent>world</parent>'
        f"<child>base</child></joint>{turning('a', 'base', 'crank')}{turning('b', 'crank', 'rod')}"
        f'{turning("c", "rod", "piston")}<joint name="s" type="prismatic"><parent>base</parent><child>piston</child>'
        f"{slide}</joint></model></sdf>"
    )


def test_crank_drives_its_piston() -> None:
    """x = r cos(a) + sqrt(l² - r² sin²(a)), and the slide tells its position like any joint."""
    made = crank()
    assert [one.name for one in made.loop_joints] == ["s"]
    sim = Simulation(make_world(gravity=0.0), timestep=0.001)
    sim.add(made, "m")
    assert not sim.notes
    places = {one.name: one for one in sim.placement("m").joints}
    assert set(places) == {"a", "b", "c", "s"}
    sim.hardware("m").write(JointCommand("velocity", ("a",), np.array([2.0])))
    for _ in range(60):
        sim.step(50)
        a, s = (float(sim.data.qpos[places[name].qpos]) for name in "as")
        x = 0.1 * math.cos(a) + math.sqrt(0.09 - (0.1 * math.sin(a)) ** 2)
        where = pose(sim, "m", "piston")
        np.testing.assert_allclose(where.xyz, (x, 0.0, 0.0), atol=1e-4)
        np.testing.assert_allclose(where.rotation_matrix(), np.eye(3), atol=2e-4)
        assert s == pytest.approx(x - 0.4, abs=1e-4)
    assert a > 5.5


def test_motor_on_a_loop_joint_drives_the_loop() -> None:
    sim = Simulation(make_world(gravity=0.0), timestep=0.001)
    sim.add(crank("<limit><lower>-0.15</lower><upper>0</upper></limit>"), "m", make_pose())
    places = {one.name: one for one in sim.placement("m").joints}
    sim.data.qpos[places["a"].qpos] = 0.0
    sim.hardware("m").write(JointCommand("effort", ("a",), np.array([0.05])))
    sim.step(200)  # off its dead centre
    sim.hardware("m").write(JointCommand("effort", ("a",), np.array([0.0])))
    sim.hardware("m").write(JointCommand("position", ("s",), np.array([-0.08])))
    sim.step(2500)
    assert pose(sim, "m", "piston").xyz[0] == pytest.approx(0.32, abs=2e-3)
    sim.hardware("m").write(JointCommand("effort", ("s",), np.array([-20.0])))
    sim.step(2000)
    assert pose(sim, "m", "piston").xyz[0] == pytest.approx(0.25, abs=3e-3)


@pytest.mark.parametrize("start", [0.4, -1.1])
def test_loop_closes_from_an_offset_initial_position(start: float) -> None:
    """Only the crank's start is stated: rod, piston and slide go where the closed forms say, and nothing jerks."""
    made = replace(crank(), interfaces=(JointInterface("a", (("position", -3.0, 3.0),), (), (("position", start),)),))
    sim = Simulation(make_world(gravity=0.0), timestep=0.001)
    sim.add(made, "m")
    x = 0.1 * math.cos(start) + math.sqrt(0.09 - (0.1 * math.sin(start)) ** 2)
    np.testing.assert_allclose(pose(sim, "m", "piston").xyz, (x, 0.0, 0.0), atol=1e-6)
    sim.step(100)
    assert np.abs(sim.data.qvel).max() < 1e-3
