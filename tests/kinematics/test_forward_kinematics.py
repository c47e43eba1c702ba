"""Forward kinematics agrees with products of 4×4 matrices, and its transforms form the tree of the model."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.description.model import Axis, Joint, Link, Mimic, Model
from roboyard.description.sensors import LidarSpec, Sensor
from roboyard.geometry import SE3
from roboyard.kinematics.forward_kinematics import ForwardKinematics, fixed_transforms

I = SE3.identity()  # noqa: E741
TYPES = ("fixed", "revolute", "continuous", "prismatic", "screw")
small = st.floats(-1.0, 1.0)
poses = st.builds(lambda a, b: SE3.from_xyz_rpy(a, b), st.tuples(small, small, small), st.tuples(small, small, small))
unit_vectors = st.tuples(small, small, st.floats(0.2, 1.0)).map(
    lambda v: tuple((np.array(v) / np.linalg.norm(v)).tolist())
)


@st.composite
def random_trees(draw: st.DrawFn) -> Model:
    """Return a random tree of links with its joints in random order."""
    count = draw(st.integers(2, 6))
    joints = [
        Joint(
            name=f"j{child}",
            type=draw(st.sampled_from(TYPES)),
            parent=f"l{draw(st.integers(0, child - 1))}",
            child=f"l{child}",
            T_parent_child=draw(poses),
            T_child_joint=draw(st.one_of(st.just(I), poses)),
            axes=(Axis(draw(unit_vectors)),),
            thread_pitch=0.3,
        )
        for child in range(1, count)
    ]
    return Model("tree", tuple(Link(f"l{i}", I) for i in range(count)), tuple(draw(st.permutations(joints))))


def compute_joint_transform(joint: Joint, q: float) -> np.ndarray:
    """Compute the transform of a joint independently, by Rodrigues' formula and homogeneous matrices."""
    axis = np.array(joint.axes[0].xyz)
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    M = np.eye(4)
    if joint.type in ("revolute", "continuous", "screw"):
        M[:3, :3] += math.sin(q) * K + (1 - math.cos(q)) * K @ K
    if joint.type == "prismatic":
        M[:3, 3] = q * axis
    if joint.type == "screw":
        M[:3, 3] = joint.thread_pitch * q / (2 * math.pi) * axis
    T_cj = joint.T_child_joint.matrix()
    return joint.T_parent_child.matrix() @ T_cj @ M @ np.linalg.inv(T_cj)


@given(random_trees(), st.lists(st.floats(-4.0, 4.0), min_size=6, max_size=6))
def test_link_poses_agree_with_products_of_matrices(model: Model, values: list[float]) -> None:
    positions = {f"j{i}": value for i, value in enumerate(values)}
    link_poses = ForwardKinematics(model).link_poses(positions)
    parents = {joint.child: joint for joint in model.joints}
    for link in model.links:
        T, name = np.eye(4), link.name
        while name in parents:
            joint = parents[name]
            q = 0.0 if joint.type == "fixed" else positions[joint.name]
            T, name = compute_joint_transform(joint, q) @ T, joint.parent
        np.testing.assert_allclose(link_poses[link.name].matrix(), T, atol=1e-9)


@given(random_trees(), st.lists(st.floats(-4.0, 4.0), min_size=6, max_size=6))
def test_joint_and_fixed_transforms_form_the_same_tree(model: Model, values: list[float]) -> None:
    positions = {f"j{i}": value for i, value in enumerate(values)}
    kinematics = ForwardKinematics(model)
    edges = {child: (T, parent) for T, parent, child in kinematics.joint_transforms(positions)}
    edges |= {child: (T, parent) for T, parent, child in fixed_transforms(model)}
    assert set(edges) == {joint.child for joint in model.joints}, "each link occurs once, as movable or fixed"
    for name, pose in kinematics.link_poses(positions).items():
        T, frame = I, name
        while frame in edges:
            T, frame = edges[frame][0] @ T, edges[frame][1]
        assert T.almost_equal(pose, 1e-9)


def make_two_link_model(**fields: object) -> Model:
    defaults = {
        "name": "j",
        "type": "revolute",
        "parent": "a",
        "child": "b",
        "T_parent_child": I,
        "T_child_joint": I,
    }
    joint = Joint(**(defaults | {"axes": (Axis((0.0, 0.0, 1.0)),)} | fields))  # type: ignore[arg-type]
    return Model("m", (Link("a", I), Link("b", I), Link("c", I)), (joint,))


def test_mimic_of_a_mimic_joint_follows_the_driving_joint() -> None:
    axis = (Axis((1.0, 0.0, 0.0)),)
    joints = (
        Joint("lead", "prismatic", "a", "b", I, I, axis),
        Joint("mid", "prismatic", "a", "c", I, I, axis, mimic=Mimic("lead", 2.0, 0.1)),
        Joint("end", "prismatic", "a", "d", I, I, axis, mimic=Mimic("mid", -1.0)),
    )
    kinematics = ForwardKinematics(Model("m", tuple(Link(n, I) for n in "abcd"), joints))
    assert kinematics.independent_positions == ("lead",)
    link_poses = kinematics.link_poses({"lead": 0.5})
    assert [link_poses[n].x for n in "bcd"] == pytest.approx([0.5, 1.1, -1.1])


def test_universal_joint_rotates_around_its_axes_in_order() -> None:
    model = make_two_link_model(type="universal", axes=(Axis((0.0, 0.0, 1.0)), Axis((0.0, 1.0, 0.0))))
    kinematics = ForwardKinematics(model)
    assert kinematics.independent_positions == ("j", "j_2")
    pose = kinematics.link_poses({"j": math.pi / 2, "j_2": 0.3})["b"]
    expected = SE3.from_xyz_rpy(rpy=(0, 0, math.pi / 2)) @ SE3.from_xyz_rpy(rpy=(0, 0.3, 0))
    assert pose.almost_equal(expected, 1e-12)


def test_sensor_frames_without_link_are_fixed_frames() -> None:
    T = SE3.from_xyz_rpy((0.1, 0.0, 0.2))

    def make_sensor(name: str, frame: str) -> Sensor:
        return Sensor(name, "lidar", "b", T, 10.0, name, frame, LidarSpec())

    model = make_two_link_model()
    model = Model(
        "m",
        model.links,
        model.joints,
        sensors=(make_sensor("x", "eye"), make_sensor("y", "eye"), make_sensor("z", "b")),
    )
    assert [(parent, child) for _, parent, child in fixed_transforms(model)] == [("b", "eye")]
