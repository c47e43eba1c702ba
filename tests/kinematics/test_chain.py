"""Chains: frames agree with MuJoCo, Jacobians with finite differences, and invalid chains are refused."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kinematics.urdf_chains import JointText, make_random_joint, make_urdf

from roboyard.description import load_model
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.kinematics import Chain, build_chain

ROBOTS = Path(str(resources.files("roboyard") / "robots"))


def load_schunk_chain() -> Chain:
    return build_chain(load_model(ROBOTS / "scitos_arm" / "scitos_arm.urdf.xacro"), "arm_base", "gripper_link")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_chain_frames_agree_with_mujoco(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    joints = [*(make_random_joint(rng) for _ in range(count)), make_random_joint(rng, ("revolute",))]
    text = make_urdf(joints)
    chain = build_chain(load_model(text), "link_0", f"link_{len(joints)}")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for q in rng.uniform(-3.0, 3.0, (5, chain.dof)):
        for name, value in zip(chain.joints, q, strict=True):
            data.qpos[model.joint(name).qposadr[0]] = value
        mujoco.mj_kinematics(model, data)
        poses = chain.link_poses(q)
        for k in range(1, len(joints) + 1):
            body = data.body(f"link_{k}")
            np.testing.assert_allclose(poses[f"link_{k}"][:3, 3], body.xpos, atol=1e-9)
            np.testing.assert_allclose(poses[f"link_{k}"][:3, :3], body.xmat.reshape(3, 3), atol=1e-9)
        np.testing.assert_allclose(chain.forward(q), poses[f"link_{len(joints)}"], atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_jacobian_is_the_derivative_of_the_pose(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    joints = [make_random_joint(rng, ("revolute", "prismatic")) for _ in range(count)]
    chain = build_chain(load_model(make_urdf(joints)), "link_0", f"link_{count}").with_tool(
        SE3.from_xyz_rpy(rng.uniform(-0.2, 0.2, 3), rng.uniform(-1.0, 1.0, 3))
    )
    q = rng.uniform(-2.0, 2.0, count)
    J, h = chain.jacobian(q), 1e-6
    for j in range(count):
        step = h * np.eye(count)[j]
        T, before, after = chain.forward(q), chain.forward(q - step), chain.forward(q + step)
        np.testing.assert_allclose(J[:3, j], (after[:3, 3] - before[:3, 3]) / (2 * h), atol=1e-6)
        omega_matrix = (after[:3, :3] - before[:3, :3]) / (2 * h) @ T[:3, :3].T
        np.testing.assert_allclose(J[3:, j], [omega_matrix[2, 1], omega_matrix[0, 2], omega_matrix[1, 0]], atol=1e-6)


def test_chain_batches_equal_single_states_to_the_bit() -> None:
    chain = load_schunk_chain()
    q = chain.sample_positions(np.random.default_rng(1), 50)
    assert np.array_equal(chain.forward(q), np.stack([chain.forward(row) for row in q]))
    assert np.array_equal(chain.frames(q), np.stack([chain.frames(row) for row in q]))
    assert np.array_equal(chain.jacobian(q), np.stack([chain.jacobian(row) for row in q]))
    np.testing.assert_allclose(chain.manipulability(q), [chain.manipulability(row) for row in q], rtol=1e-12)
    assert chain.is_within_limits(q).all()


def test_schunk_chain_has_expected_length_fingers_and_camera() -> None:
    chain = load_schunk_chain()
    np.testing.assert_allclose(chain.forward(np.zeros(5))[:3, 3], [0, 0, 1.219], atol=1e-12)
    assert chain.link_mounts["kinect"][0] == chain.link_mounts["finger_left"][0] == 5
    assert chain.link_mounts["arm_base"][0] == 0
    open_chain = build_chain(
        load_model(ROBOTS / "scitos_arm" / "scitos_arm.urdf.xacro"), "arm_base", "gripper_link",
        fixed_positions={"finger_left_joint": 0.02},
    )  # fmt: skip
    finger_y = {name: open_chain.link_poses(np.zeros(5))[f"finger_{name}"][1, 3] for name in ("left", "right")}
    np.testing.assert_allclose([finger_y["left"], finger_y["right"]], [0.02, -0.02], atol=1e-12)


def test_manipulability_of_a_stretched_arm_is_zero() -> None:
    chain = load_schunk_chain()
    assert chain.manipulability(np.zeros(5)) == pytest.approx(0.0, abs=1e-9)
    assert chain.manipulability(np.array([0.3, 0.7, 1.2, -0.4, 0.1])) > 0.01


def test_mimic_joint_of_a_chain_follows_its_driving_joint() -> None:
    origin, axis = ((0.0, 0.0, 0.1), (0.0, 0.0, 0.0)), (0.0, 1.0, 0.0)
    joints = [
        JointText("revolute", *origin, axis, (-1.0, 1.0)),
        JointText("revolute", *origin, axis, (-1.0, 0.5), '<mimic joint="joint_1" multiplier="-2" offset="0.1"/>'),
    ]
    chain = build_chain(load_model(make_urdf(joints)), "link_0", "link_2")
    assert (chain.joints, chain.moving_joints) == (("joint_1",), ("joint_1", "joint_2"))
    assert (chain.lower[0], chain.upper[0]) == pytest.approx((-0.2, 0.55)), (
        "the limits of the mimic joint restrict its driving joint"
    )
    angle = 0.3 + (-0.6 + 0.1)
    np.testing.assert_allclose(chain.forward([0.3])[:3, 0], [np.cos(angle), 0, -np.sin(angle)], atol=1e-12)
    slope = (chain.forward([0.3 + 1e-6]) - chain.forward([0.3 - 1e-6]))[:3, 3] / 2e-6
    np.testing.assert_allclose(chain.jacobian([0.3])[:3, 0], slope, atol=1e-8)


def test_chain_fixes_joints_that_are_not_selected() -> None:
    rng = np.random.default_rng(3)
    model = load_model(make_urdf([make_random_joint(rng, ("revolute",)) for _ in range(4)]))
    full_chain = build_chain(model, "link_0", "link_4")
    reduced_chain = build_chain(
        model, "link_0", "link_4", joints=("joint_1", "joint_3"), fixed_positions={"joint_2": 0.7, "joint_4": -0.3}
    )
    np.testing.assert_allclose(reduced_chain.forward([0.2, 0.4]), full_chain.forward([0.2, 0.7, 0.4, -0.3]), atol=1e-12)


@pytest.mark.parametrize(
    ("base", "tip", "fixed_positions", "message"),
    [
        ("arm_bsae", "gripper_link", {}, "unknown link 'arm_bsae'; did you mean 'arm_base'?"),
        ("arm_base", "gripper", {}, "unknown link 'gripper'"),
        ("gripper_link", "arm_base", {}, "'arm_base' is not below 'gripper_link'"),
        ("arm_base", "arm_base", {}, "no moving joint between"),
        ("gripper_link", "kinect", {}, "no moving joint between gripper_link and kinect"),
        ("arm_base", "gripper_link", {"arm_joint_1": 0.1}, "cannot fix joint"),
        ("arm_base", "gripper_link", {"finger": 0.1}, "unknown joint 'finger'"),
        ("arm_base", "gripper_link", {"finger_left_joint": float("nan")}, "at nan: it is part of the chain"),
    ],
)
def test_build_chain_refuses_invalid_links_and_fixed_positions(
    base: str, tip: str, fixed_positions: dict[str, float], message: str
) -> None:
    model = load_model(ROBOTS / "scitos_arm" / "scitos_arm.urdf.xacro")
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        build_chain(model, base, tip, fixed_positions=fixed_positions)


def test_build_chain_refuses_floating_joints() -> None:
    text = make_urdf(
        [
            JointText("floating", (0, 0, 0), (0, 0, 0), (0, 0, 1)),
            make_random_joint(np.random.default_rng(0), ("revolute",)),
        ]
    )
    with pytest.raises(InputError, match="has the type floating"):
        build_chain(load_model(text), "link_0", "link_2")
    with pytest.raises(UnknownNameError, match="unknown joint 'knee'"):
        build_chain(load_model(text), "link_1", "link_2", joints=("knee",))


@pytest.mark.parametrize(
    "q", [[0.0] * 4, [[0.0] * 6], [0.0, 0.0, np.nan, 0.0, 0.0], ["a"] * 5, None, 3.0, np.zeros((1, 1, 5))]
)
def test_chain_refuses_invalid_joint_positions(q: object) -> None:
    chain = load_schunk_chain()
    for method in (chain.forward, chain.jacobian, chain.frames, chain.is_within_limits):
        with pytest.raises(InputError, match=r"joint positions|position of"):
            method(q)  # type: ignore[arg-type]


def test_sample_positions_refuses_a_prismatic_joint_without_limits() -> None:
    text = (
        '<mujoco><worldbody><body name="a"><geom size="1"/><body name="b"><joint name="j" type="slide"/>'
        '<geom size="1"/></body></body></worldbody></mujoco>'
    )
    chain = build_chain(load_model(text), "a", "b")
    with pytest.raises(InputError, match="prismatic joint j has no limits"):
        chain.sample_positions(np.random.default_rng(0), 1)
