"""Built descriptions are read as what was built."""

from __future__ import annotations

import pytest
from tests.harness.descriptions import UrdfJoint, mjcf, sdf_model, sdf_world, urdf_chain

from roboyard.description import load_model, load_world


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
