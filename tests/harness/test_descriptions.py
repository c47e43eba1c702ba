"""Built descriptions are read as what was built."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.harness.descriptions import (
    ARM_URDF,
    UrdfJoint,
    check_model,
    compute_link_poses,
    mjcf,
    sdf_model,
    sdf_world,
    urdf_chain,
)

from roboyard.description import load_model, load_world
from roboyard.geometry import SE3


def test_urdf_chain_reads_back() -> None:
    joints = [
        UrdfJoint("shoulder", "base", "upper", xyz=(0.0, 0.0, 0.5), rpy=(0.1, 0.2, 0.3), axis=(0.0, 1.0, 0.0)),
        UrdfJoint("lift", "upper", "lower", "prismatic", limits=(0.0, 0.25), velocity=0.5, effort=10.0),
        UrdfJoint("elbow", "lower", "hand", "continuous"),
        UrdfJoint("mount", "hand", "tool", "fixed"),
    ]
    model = load_model(urdf_chain(joints, "arm"))
    assert model.name == "arm"
    assert [link.name for link in model.links] == ["base", "upper", "lower", "hand", "tool"]
    read = {joint.name: joint for joint in model.joints}
    assert [read[joint.name].type for joint in joints] == [joint.type for joint in joints]
    assert read["shoulder"].T_parent_child.translation == pytest.approx([0.0, 0.0, 0.5])
    limits = read["lift"].axes[0].limits
    assert (limits.lower, limits.upper, limits.velocity, limits.effort) == (0.0, 0.25, 0.5, 10.0)


def test_sdf_and_mjcf_documents_read_back() -> None:
    assert load_model(sdf_model('<link name="a"/>', name="box")).name == "box"
    world = load_world(sdf_world('<model name="b"><link name="l"/></model>', name="yard"))
    assert world.name == "yard"
    model = load_model(mjcf('<body name="a"><geom type="sphere" size="0.1"/></body>', name="ball"))
    assert "a" in {link.name for link in model.links}


def test_link_poses_of_the_sample_arm_are_those_done_by_hand() -> None:
    model = load_model(ARM_URDF)
    elbow = SE3.from_xyz_rpy((0.0, 0.0, 0.5), (0.1, 0.2, 0.3)) @ SE3.exp([0.0, 0.0, 0.0, 0.0, 0.7, 0.0])
    lower = elbow @ SE3.from_xyz_rpy((0.4, 0.0, 0.0), (0.0, 0.0, 1.0)) @ SE3.exp([0.0, 0.0, 0.0, 0.0, 0.0, -0.4])
    poses = compute_link_poses(model, {"shoulder": 0.7, "elbow": -0.4})
    assert poses["lower"].almost_equal(lower, 1e-12)


def test_check_model_finds_what_readers_must_not_give() -> None:
    model = load_model(ARM_URDF)
    check_model(model)
    base, upper, lower = model.links
    moved = replace(upper, T_model_link=upper.T_model_link @ SE3.from_xyz_rpy((0.0, 0.0, 1e-6), (0.0, 0.0, 0.0)))
    assert lower.inertial is not None
    impossible = replace(lower, inertial=replace(lower.inertial, inertia=(1.0, 1.0, 2.1, 0.0, 0.0, 0.0)))
    for broken in (
        replace(model, links=(base, moved, lower)),
        replace(model, links=(base, upper, impossible)),
        replace(model, links=(base, upper, lower, lower)),
        replace(model, joints=(*model.joints, model.joints[0])),
    ):
        with pytest.raises(AssertionError):
            check_model(broken)
