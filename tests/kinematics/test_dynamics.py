"""Chain dynamics: agreement with MuJoCo and Pinocchio, conservation of energy, payloads, and invalid input."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinematics.urdf_chains import JointText, make_random_inertial, make_random_joint, make_urdf

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import Box, Inertial, Sphere, load_model
from roboyard.errors import InputError, RoboyardError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.kinematics import ChainDynamics, Payload, build_chain
from roboyard.manipulation.collision.obstacles import AttachedBody
from roboyard.manipulation.collision.planning_scene import PlanningScene

seeds = st.integers(0, 2**32 - 1)
_JOINT_TYPES = ("revolute", "prismatic", "continuous", "fixed")


def make_random_chain(rng: np.random.Generator, count: int, name: str = "chain") -> tuple[str, ChainDynamics]:
    joints = [*(make_random_joint(rng, _JOINT_TYPES) for _ in range(count)), make_random_joint(rng, ("revolute",))]
    text = make_urdf(joints, name, [make_random_inertial(rng) for _ in joints])
    model = load_model(text)
    return text, ChainDynamics.from_model(model, build_chain(model, "link_0", f"link_{count + 1}"))


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(0, 7))
def test_efforts_agree_with_mujoco(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    text, dynamics = make_random_chain(rng, count)
    model = mujoco.MjModel.from_xml_string(text)
    data, names = mujoco.MjData(model), dynamics.chain.joints
    position_addresses = [model.joint(name).qposadr[0] for name in names]
    velocity_addresses = [model.joint(name).dofadr[0] for name in names]
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    for _ in range(5):
        q, v, a = rng.normal(size=(3, len(names)))
        data.qpos[position_addresses], data.qvel[velocity_addresses], data.qacc[velocity_addresses] = q, v, a
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(
            dynamics.inverse_dynamics(q, v, a), data.qfrc_inverse[velocity_addresses], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("seed", range(3))
def test_efforts_and_inertia_agree_with_pinocchio(seed: int) -> None:
    pinocchio = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(seed)
    text, dynamics = make_random_chain(rng, 6)
    text = text.replace('type="continuous"', 'type="revolute"').replace(
        "<axis", '<limit lower="-9" upper="9" effort="1" velocity="1"/><axis'
    )
    model = pinocchio.buildModelFromXML(text)
    data = model.createData()
    for _ in range(5):
        q, v, a = rng.normal(size=(3, dynamics.chain.dof))
        expected = pinocchio.rnea(model, data, q, v, a)
        np.testing.assert_allclose(dynamics.inverse_dynamics(q, v, a), expected, rtol=1e-9, atol=1e-9)
        inertia = pinocchio.crba(model, data, q)
        inertia = np.triu(inertia) + np.triu(inertia, 1).T
        np.testing.assert_allclose(dynamics.mass_matrix(q), inertia, rtol=1e-9, atol=1e-9)


def make_coupled_chain() -> ChainDynamics:
    """Return a chain of a revolute joint, a mimic joint with damping and friction, and a prismatic joint."""
    rng = np.random.default_rng(5)
    joints = [
        make_random_joint(rng, ("revolute",)),
        JointText("revolute", (0.2, 0, 0.1), (0.3, 0, 0), (0, 1, 0), (-3, 3),
                  '<mimic joint="joint_1" multiplier="-2" offset="0.1"/><dynamics damping="0.5" friction="0.25"/>'),
        make_random_joint(rng, ("prismatic",)),
    ]  # fmt: skip
    model = load_model(make_urdf(joints, "coupled", [make_random_inertial(rng) for _ in joints]))
    return ChainDynamics.from_model(model, build_chain(model, "link_0", "link_3"))


def test_power_equals_the_rate_of_energy_with_mimic_joints() -> None:
    dynamics, rng = make_coupled_chain(), np.random.default_rng(0)
    h = 1e-5
    for _ in range(10):
        q, v, a = rng.uniform(-0.4, 0.4, (3, 2))

        def compute_energy(t: float, q: np.ndarray = q, v: np.ndarray = v, a: np.ndarray = a) -> float:
            positions, speed = q + v * t + 0.5 * a * t * t, v + a * t
            return float(0.5 * speed @ dynamics.mass_matrix(positions) @ speed) + compute_potential_energy(
                dynamics, positions
            )

        frictionless = dynamics.inverse_dynamics(q, v, a) - dynamics.damping * v
        assert frictionless @ v == pytest.approx((compute_energy(h) - compute_energy(-h)) / (2 * h), rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(dynamics.damping, [2.0, 0.0])  # twice the velocity at twice the lever arm
    np.testing.assert_allclose(dynamics.friction, [0.5, 0.0])


def compute_potential_energy(dynamics: ChainDynamics, q: np.ndarray) -> float:
    """Compute the potential energy [J] from the positions of the centers of mass."""
    masses, frames = dynamics.masses, dynamics.chain.frames(q)
    centers = np.einsum("kij,kj->ki", frames[:, :3, :3], masses.com) + frames[:, :3, 3]
    return -float(masses.mass @ (centers @ masses.gravity))


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(1, 6))
def test_inertia_is_symmetric_and_positive(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    dynamics = make_random_chain(rng, count)[1]
    M = dynamics.mass_matrix(rng.normal(size=dynamics.chain.dof))
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    assert np.linalg.eigvalsh(M).min() > 0.0


def test_payload_adds_its_weight_through_the_jacobian() -> None:
    groups = load_joint_groups("youbot_arm")
    unloaded = PlanningScene.create(groups, "arm")
    T = SE3.from_xyz_rpy((0.01, 0.02, 0.05))
    scene = unloaded.attach(AttachedBody("thing", "gripper_palm", Box((0.04, 0.05, 0.06)), T, mass=0.4))
    chain = groups.chain("arm", "gripper_palm").with_tool(T)
    q = scene.chain.sample_positions(np.random.default_rng(0), 20)
    weight = np.array([0.0, 0.0, 9.81 * 0.4, 0.0, 0.0, 0.0])
    for row in q:
        added = scene.dynamics.inverse_dynamics(row) - unloaded.dynamics.inverse_dynamics(row)
        np.testing.assert_allclose(added, chain.jacobian(row).T @ weight, atol=1e-9)
    inertia = np.diag(0.4 / 12 * np.array([0.05**2 + 0.06**2, 0.04**2 + 0.06**2, 0.04**2 + 0.05**2]))
    J, R = chain.jacobian(q[0]), chain.forward(q[0])[:3, :3]
    expected = 0.4 * J[:3].T @ J[:3] + J[3:].T @ R @ inertia @ R.T @ J[3:]
    np.testing.assert_allclose(
        scene.dynamics.mass_matrix(q[0]) - unloaded.dynamics.mass_matrix(q[0]), expected, atol=1e-9
    )


def test_gravity_of_a_tilted_arm_points_sideways() -> None:
    groups = load_joint_groups("iisy")
    tilted = PlanningScene.create(groups, T_world_robot=SE3.from_xyz_rpy((0, 0, 1), (math.pi / 2, 0, 0)))
    np.testing.assert_allclose(tilted.dynamics.masses.gravity, [0, -9.81, 0], atol=1e-9)
    upright = PlanningScene.create(groups).dynamics.inverse_dynamics(groups.group().pose("upright"))
    assert abs(upright[0]) < 1e-9 < 1.0 < abs(tilted.dynamics.inverse_dynamics(groups.group().pose("home"))[0])


def test_effort_batches_equal_single_states_to_the_bit() -> None:
    dynamics = make_random_chain(np.random.default_rng(1), 5)[1]
    q, v, a = np.random.default_rng(2).normal(size=(3, 20, dynamics.chain.dof))
    single = [dynamics.inverse_dynamics(*row) for row in zip(q, v, a, strict=True)]
    assert np.array_equal(dynamics.inverse_dynamics(q, v, a), np.stack(single))


def test_dynamics_refuses_invalid_input() -> None:
    groups = load_joint_groups("youbot_arm")
    chain = groups.chain("arm")
    body = Inertial(0.1, SE3.identity(), (0.0,) * 6)
    model = groups.model
    negative_inertial = Inertial(-1.0, SE3(), (0.0,) * 6)
    from_model = ChainDynamics.from_model
    cases: list[tuple[type[RoboyardError], str, object]] = [
        (InputError, "gravity", lambda: from_model(model, chain, gravity=(0, math.nan, 0))),
        (UnknownNameError, "mean 'gripper_palm'", lambda: from_model(model, chain, [Payload("gripper_plam", body)])),
        (InputError, "kg", lambda: from_model(model, chain, [Payload("gripper_palm", negative_inertial)])),
        (InputError, "shapes", lambda: from_model(model, chain).inverse_dynamics(np.zeros(5), np.zeros((2, 5)))),
        (InputError, "shape", lambda: from_model(model, chain).mass_matrix(np.zeros((2, 5)))),
        (InputError, "mass", lambda: AttachedBody("a", "gripper_palm", Sphere(0.1), SE3(), mass=-0.1)),
    ]  # fmt: skip
    for kind, message, call in cases:
        with pytest.raises(kind, match=message):
            call()  # type: ignore[operator]
