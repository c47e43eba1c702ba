"""Free rotation conserves energy and momentum; constrained bodies move as MuJoCo moves them."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.models import IDENTITY, box_inertia, free_box, ground_plane, make_pose, make_world

from roboyard.description.model import Axis, AxisLimits, Inertial, Joint, Link, Model
from roboyard.hardware import JointCommand
from roboyard.physics.kernels.step import (
    MIN_ROTATION_RATE,
    ROTATIONAL,
    SINGLE_BODY,
    find_free_rotation,
    free_rotation_trees,
)
from roboyard.simulation import Simulation

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def chain(axes: str, root: str = "", mass: float = 1.0, limits: AxisLimits = AxisLimits()) -> Model:  # noqa: B008
    """Rods 0.4 m long, one on the other, turning about the axes named; the first hangs on ``root``, or floats."""
    size = (0.05, 0.03, 0.4)
    inertial = Inertial(mass, make_pose(z=-0.2), box_inertia(mass, size))
    links, joints = [], []
    if not root:
        links.append(Link("hub", IDENTITY, Inertial(2.0 * mass, IDENTITY, box_inertia(2.0 * mass, (0.2, 0.25, 0.3)))))
    for k, axis in enumerate(axes):
        parent = f"rod{k - 1}" if k else (root or "hub")
        links.append(Link(f"rod{k}", make_pose(z=-0.4 * k), inertial))
        pose = make_pose(z=-0.4 if k else 0.0)
        joints.append(Joint(f"j{k}", "continuous", parent, f"rod{k}", pose, IDENTITY, (Axis(AXES[axis], limits),)))
    return Model("chain", tuple(links), tuple(joints))


def energy(sim: Simulation) -> float:
    mujoco.mj_energyPos(sim.world.model, sim.world.data)
    mujoco.mj_energyVel(sim.world.model, sim.world.data)
    return float(sim.world.data.energy.sum())


def start_motion(model: Model, speeds: list[float], gravity: float, timestep: float = 0.002) -> Simulation:
    sim = Simulation(make_world(gravity=gravity), timestep=timestep)
    sim.add(model, "chain", make_pose(z=5.0))
    sim.world.data.qvel[-len(speeds) :] = speeds
    sim.step(1)
    return sim


speeds = st.lists(st.floats(-6.0, 6.0), min_size=3, max_size=3)


def test_whipping_chains_conserve_energy() -> None:
    """Of the span between hanging and standing, for 3 s: a whip now and then is not followed, most are."""
    random, lost = np.random.default_rng(5), []
    for axes in ["xyx", "yyy", "zxy", "yxz"] * 8:
        sim = start_motion(chain(axes, "world"), random.uniform(-6.0, 6.0, 3).tolist(), -9.8)
        before, span = energy(sim), 2 * 9.8 * (0.2 + 0.6 + 1.0)
        span = max(span, 0.5 * float(sim.world.data.qvel @ _mass_matrix(sim) @ sim.world.data.qvel))
        worst = 0.0
        for _ in range(300):
            sim.step(5)
            worst = max(worst, abs(energy(sim) - before))
        lost.append(worst / span)
    assert np.median(lost) < 0.01
    assert np.quantile(lost, 0.9) < 0.05
    assert max(lost) < 0.15


def _mass_matrix(sim: Simulation) -> np.ndarray:
    full = np.zeros((sim.world.model.nv, sim.world.model.nv))
    mujoco.mj_fullM(sim.world.model, sim.world.data, full)
    return full


def _momentum(sim: Simulation) -> np.ndarray:
    """Angular momentum about the centre of mass of all [kg m²/s]."""
    mujoco.mj_subtreeVel(sim.world.model, sim.world.data)
    root = int(np.flatnonzero(sim.world.model.body_parentid[1:] == 0)[-1]) + 1
    return np.array(sim.world.data.subtree_angmom[root])


@settings(max_examples=12, deadline=None)
@given(speeds, speeds)
def test_floating_bodies_conserve_momentum_and_energy(base_velocity: list[float], joints: list[float]) -> None:
    sim = start_motion(chain("xyz"), [*base_velocity, *joints], 0.0)
    before, momentum = energy(sim), _momentum(sim)
    max_speed = float(np.max(np.abs(sim.world.data.qvel)))
    sim.step(1000)
    assert abs(energy(sim) - before) <= 0.06 * before + 1e-9
    assert np.linalg.norm(_momentum(sim) - momentum) <= 0.03 * (np.linalg.norm(momentum) + 0.1 * max_speed)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.floats(0.01, 0.1), min_size=3, max_size=3), speeds)
def test_tumbling_body_conserves_energy(sides: list[float], angular_velocity: list[float]) -> None:
    """Any box: the engine's own step loses energy on the stable side, ours none."""
    size = tuple(10.0 * side for side in sides)
    sim = Simulation(make_world(gravity=0.0))
    sim.add(free_box(size=size), "box", make_pose())
    sim.world.data.qvel[3:6] = angular_velocity
    sim.step(1)
    before = energy(sim)
    sim.step(2500)
    assert energy(sim) == pytest.approx(before, rel=5e-3, abs=1e-12)


@pytest.mark.parametrize("stiff", [False, True])
def test_servo_arm_agrees_with_a_hundredth_of_the_step(stiff: bool) -> None:
    """A fast arm in the air: no farther off than the engine's own step is, and the servos do not chatter."""
    limits = AxisLimits(effort=400.0 if stiff else 15.0)

    def joint_trajectory(timestep: float) -> np.ndarray:
        sim = start_motion(chain("zyy", "world", 1.0, limits), [0.0, 0.0, 0.0], -9.8, timestep)
        hardware, found = sim.hardware("chain"), []
        for k in range(40):
            angle = 1.5 * math.sin(4.0 * 0.05 * k)
            hardware.write(JointCommand("position", ("j0", "j1", "j2"), np.array([angle, -angle, 2.0 * angle])))
            sim.advance_to(round((k + 1) * 0.05e9))
            found.append([sim.world.data.qpos.copy(), sim.world.data.qvel.copy() * 0.05])
        return np.array(found)

    fine = joint_trajectory(0.0002)
    error = np.abs(joint_trajectory(0.002) - fine)
    assert np.max(error) < 0.12
    assert np.mean(error) < 0.02


# -- when it acts ------------------------------------------------------------------------------------------------------
def is_correction_active(sim: Simulation) -> bool:
    rotation_trees = free_rotation_trees(sim.world.model)
    free = np.zeros(len(rotation_trees), bool)
    return bool(
        find_free_rotation(
            sim.world.data._address, sim.world.contacts.layout, rotation_trees, sim.world.data.qvel, free
        )
    )


def test_exact_rotation_acts_on_free_rotating_bodies_only() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(free_box(), "box", make_pose(z=1.0))
    assert not is_correction_active(sim)  # it does not turn
    sim.world.data.qvel[3:6] = 0.0, 2.0, 0.0
    sim.step(1)
    assert is_correction_active(sim)
    sim.world.data.qvel[3:6] = 0.0, 0.9 * MIN_ROTATION_RATE, 0.0
    assert not is_correction_active(sim)
    sim.world.data.qvel[3:6] = 0.0, 2.0, 0.0
    while not sim.world.data.ncon:
        sim.step(1)
    assert not is_correction_active(sim)  # it has struck the ground
    rotation_trees = free_rotation_trees(sim.world.model)
    np.testing.assert_array_equal(rotation_trees[:, 1], [SINGLE_BODY] * 3 + [SINGLE_BODY | ROTATIONAL] * 3)


def test_resting_body_does_not_disable_exact_rotation_of_others() -> None:
    sim = Simulation(make_world(ground_plane()))
    sim.add(free_box(), "lies", make_pose(z=0.1))
    sim.add(free_box(), "flies", make_pose(3.0, z=50.0))
    sim.world.data.qvel[9:12] = 1.0, 5.0, 2.0
    sim.step(200)
    assert is_correction_active(sim)
    spinning = sim.world.data.qvel[9:12].copy()
    moments = np.array(box_inertia(5.0, (0.4, 0.4, 0.2))[:3])
    first = 0.5 * float(moments @ spinning**2)
    sim.step(1000)
    assert 0.5 * float(moments @ sim.world.data.qvel[9:12] ** 2) == pytest.approx(first, rel=1e-3)
    assert abs(float(sim.world.data.qvel[2])) < 1e-3


def test_exact_rotation_continues_from_a_saved_state() -> None:
    def run(*others: str) -> Simulation:
        sim = start_motion(chain("xyz"), [1.0, 2.0, 3.0, 4.0, -2.0, 1.0], 0.0)
        for k, name in enumerate(others):
            sim.add(free_box(), name, make_pose(10.0 + 3.0 * k))
        return sim

    sim = run()
    sim.step(50)
    saved = sim.save_state()
    sim.step(300)
    final_positions = sim.world.data.qpos.copy()
    sim.load_state(saved)
    sim.step(300)
    np.testing.assert_array_equal(sim.world.data.qpos, final_positions)
    sim_with_boxes = run("one", "two")
    sim_with_boxes.step(350)
    np.testing.assert_allclose(sim_with_boxes.world.data.qpos[: len(final_positions)], final_positions, atol=1e-9)


def test_damped_bodies_are_integrated_by_mujoco() -> None:
    sim = Simulation(make_world(gravity=0.0))
    sim.add(free_box(), "box", make_pose())
    model = sim.world.model
    model.dof_damping[3:6] = 0.01
    assert not (free_rotation_trees(model)[:, 1] & ROTATIONAL).any()
    model.dof_damping[:] = 0.0
    model.opt.density = 1.2
    assert len(free_rotation_trees(model)) == 0
