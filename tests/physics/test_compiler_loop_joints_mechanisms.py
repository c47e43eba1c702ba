"""Screws, gearboxes and closed loops obey the laws of mechanisms."""

import math

import numpy as np
import pytest
from tests.harness.models import make_world

from roboyard.description import Model, load_model
from roboyard.hardware import JointCommand
from roboyard.simulation import Simulation

INERTIAL = "<inertial><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia></inertial>"


def link(name: str, x: float = 0.0, z: float = 0.0) -> str:
    return f'<link name="{name}"><pose>{x} 0 {z} 0 0 0</pose>{INERTIAL}</link>'


def joint(
    name: str, kind: str, parent: str, child: str, axis: str = "0 1 0", elements: str = "", position: str = ""
) -> str:
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    axes = f"<axis><xyz>{axis}</xyz></axis>" if kind not in ("ball", "fixed") else ""
    pose = f"<pose>{position} 0 0 0</pose>" if position else ""
    return f'<joint name="{name}" type="{kind}">{pose}{ends}{axes}{elements}</joint>'


def load_mechanism(elements: str) -> Model:
    return load_model(f'<sdf version="1.9"><model name="m">{elements}</model></sdf>')


def start_simulation(model: Model, gravity: float = 0.0) -> Simulation:
    sim = Simulation(make_world(gravity=gravity), timestep=0.001)
    sim.add(model, "m")
    assert not sim.warnings
    return sim


def joint_position(sim: Simulation, name: str) -> float:
    address = next(one for one in sim.world.addresses("m").joints if one.name == name)
    return float(sim.world.data.qpos[address.qpos])


def drive_joint(sim: Simulation, name: str, speed: float, steps: int = 1000) -> None:
    sim.hardware("m").write(JointCommand("velocity", (name,), np.array([speed])))
    sim.step(steps)


@pytest.mark.parametrize("pitch", [0.05, -0.02])
def test_screw_joint_moves_its_pitch_per_turn(pitch: float) -> None:
    thread = f"<screw_thread_pitch>{pitch}</screw_thread_pitch>"
    sim = start_simulation(load_mechanism(link("a") + link("b", z=0.2) + joint("w", "fixed", "world", "a")
                        + joint("s", "screw", "a", "b", "0 0 1", thread)))  # fmt: skip
    drive_joint(sim, "s", 2.0 * math.pi)
    assert joint_position(sim, "s") == pytest.approx(2.0 * math.pi, rel=0.02)
    assert joint_position(sim, "s_2") == pytest.approx(pitch * joint_position(sim, "s") / (2.0 * math.pi), rel=1e-3)


@pytest.mark.parametrize("axis", ["0 0 1", "0 0 -1"])
def test_screw_joint_drives_a_lift(axis: str) -> None:
    """As in the PR2's torso: the tree holds the nut's slide and the spindle's hinge, the screw couples them."""
    thread = "<screw_thread_pitch>0.1</screw_thread_pitch>"
    sim = start_simulation(load_mechanism(
        link("base") + link("lift", z=0.5) + link("spindle", x=0.1, z=0.2) + joint("w", "fixed", "world", "base")
        + joint("slide", "prismatic", "base", "lift", "0 0 1") + joint("hinge", "revolute", "base", "spindle", axis)
        + joint("screw", "screw", "lift", "spindle", "0 0 1", thread)
    ))  # fmt: skip
    drive_joint(sim, "hinge", 3.0)
    sign = 1.0 if axis == "0 0 1" else -1.0
    rotation = sign * joint_position(sim, "hinge")
    travel = -joint_position(sim, "slide")  # of the spindle in the nut's frame
    assert abs(rotation) > 2.5
    assert travel == pytest.approx(0.1 * rotation / (2.0 * math.pi), rel=1e-2)


@pytest.mark.parametrize("ratio", [3.0, -2.0])
@pytest.mark.parametrize(("first", "second"), [("0 0 1", "0 0 1"), ("0 0 -1", "0 0 1"), ("0 0 1", "0 1 0")])
def test_gears_turn_at_their_ratio(ratio: float, first: str, second: str) -> None:
    """theta_2 = -ratio theta_1, each about the gearbox's own axes, whichever way the hinges point."""
    gears = (
        f"<gearbox_ratio>{ratio}</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>"
        f"<axis2><xyz>{second}</xyz></axis2>"
    )
    sim = start_simulation(load_mechanism(
        link("base") + link("in", x=0.1) + link("out", x=0.3) + joint("w", "fixed", "world", "base")
        + joint("driving", "revolute", "base", "in", first) + joint("driven", "revolute", "base", "out", second)
        + joint("gears", "gearbox", "in", "out", "0 0 1", gears)
    ))  # fmt: skip
    drive_joint(sim, "driving", 1.0)
    sign = -1.0 if first == "0 0 -1" else 1.0
    assert abs(joint_position(sim, "driving")) > 0.9
    assert joint_position(sim, "driven") == pytest.approx(-ratio * sign * joint_position(sim, "driving"), rel=1e-2)


def four_bar(closing_type: str = "revolute") -> Model:
    """A parallelogram: two cranks of 0.2 m, 0.4 m apart, joined by a coupler, which the last joint closes."""
    return load_mechanism(
        link("ground") + link("left", 0.0, 0.0) + link("coupler", 0.0, 0.2) + link("right", 0.4, 0.0)
        + joint("w", "fixed", "world", "ground") + joint("a", "revolute", "ground", "left")
        + joint("b", "revolute", "left", "coupler") + joint("d", "revolute", "ground", "right")
        + joint("c", closing_type, "coupler", "right", position="0 0 0.2")
    )  # fmt: skip


@pytest.mark.parametrize("last", ["revolute", "ball", "universal"])
def test_parallelogram_keeps_its_sides_parallel(last: str) -> None:
    model = four_bar(last)
    assert [one.name for one in model.loop_joints] == ["c"]
    sim = Simulation(make_world(gravity=0.0), timestep=0.001)
    sim.add(model, "m")
    drive_joint(sim, "a", 0.8)
    assert joint_position(sim, "a") == pytest.approx(0.8, rel=0.05)
    assert joint_position(sim, "d") == pytest.approx(joint_position(sim, "a"), abs=2e-3)
    assert joint_position(sim, "b") == pytest.approx(-joint_position(sim, "a"), abs=2e-3)


def test_closed_loop_conserves_energy() -> None:
    """A parallelogram that swings freely: kinetic and potential energy together stay, within the engine's error."""
    sim = start_simulation(four_bar(), gravity=-9.81)
    sim.world.data.qpos[:] = 0.0
    for name, speed in (("a", 0.3), ("b", -0.3), ("c", 0.3), ("d", 0.3)):
        sim.world.data.qvel[next(one.dof for one in sim.world.addresses("m").joints if one.name == name)] = speed
    sim.world.evaluate()

    def energy() -> float:
        import mujoco

        mujoco.mj_energyPos(sim.world.model, sim.world.data)
        mujoco.mj_energyVel(sim.world.model, sim.world.data)
        return float(sim.world.data.energy.sum())

    before, max_speed = energy(), 0.0
    for _ in range(20):
        sim.step(50)
        max_speed = max(max_speed, float(np.abs(sim.world.data.qvel).max()))
        assert energy() == pytest.approx(before, abs=0.05)
    assert max_speed > 2.0, "it fell, and passed its lowest point"


def test_welded_loop_does_not_move() -> None:
    model = load_mechanism(
        link("a") + link("b", 0.3) + joint("w", "fixed", "world", "a") + joint("j", "revolute", "a", "b")
        + joint("k", "fixed", "a", "b")
    )  # fmt: skip
    sim = Simulation(make_world(gravity=-9.81))
    sim.add(model, "m")
    sim.step(500)
    assert abs(sum(float(sim.world.data.qpos[one.qpos]) for one in sim.world.addresses("m").joints)) < 1e-2


def test_unsupported_loop_joints_give_warnings() -> None:
    model = load_mechanism(
        link("a") + link("b", 0.3) + link("c", 0.6) + joint("j", "revolute", "a", "b")
        + joint("k", "revolute", "b", "c") + joint("l", "gearbox", "a", "c")
    )  # fmt: skip
    sim = Simulation(make_world())
    sim.add(model, "m")
    assert [note for note in sim.warnings if note.startswith("m::l: a gearbox that does not join two joints")]


def test_joint_in_gazebo_block_closes_a_loop() -> None:
    inertial = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'
    model = load_model(
        f'<robot name="r"><link name="a">{inertial}</link><link name="b">{inertial}</link>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0 0 1"/></joint>'
        '<gazebo><joint name="k" type="ball"><parent>a</parent><child>b</child></joint>'
        '<joint name="l" type="ball"><parent>a</parent><child>nowhere</child></joint></gazebo></robot>'
    )
    assert [(one.name, one.type) for one in model.loop_joints] == [("k", "ball")]
    assert np.allclose(model.loop_joints[0].T_parent_child.xyz, (0, 0, 1))
    assert [finding for finding in model.warnings if "'nowhere'" in finding.message]
