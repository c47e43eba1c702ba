"""Laws of all nodes that command a group of joints: checks of the joints, claims, and their saved states."""

from __future__ import annotations

import numpy as np
import pytest
from tests.control.two_joint_arm import ARM
from tests.harness.bus import BusHarness
from tests.harness.hardware import FakeHardware

from roboyard.bus import NodeError
from roboyard.control.joint_claims import JointClaims
from roboyard.control.nodes import (
    GripperNode,
    IndexedJointMotionNode,
    JointCommandNode,
    JointTrajectoryNode,
    NamedJointMotionNode,
)
from roboyard.control.nodes.joint_group import JointGroupNode
from roboyard.errors import UnknownNameError
from roboyard.hardware.interface import joint_indices

KINDS = [GripperNode, IndexedJointMotionNode, JointCommandNode, JointTrajectoryNode, NamedJointMotionNode]
each_node = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
ORDER = ("slide", "other", "turn")
GROUP = ("turn",)


def make(harness: BusHarness, kind: type[JointGroupNode], claims: JointClaims, **more: object) -> JointGroupNode:
    arm = FakeHardware(ORDER, lambda: harness.now_ns, modes=["position"], position=[0.3, 0.7, -0.2])
    node = kind(**{"hardware": arm, "description": ARM, "joints": GROUP, "joint_claims": claims, **more})
    return harness.add(node, "group")


@each_node
def test_nodes_read_the_positions_of_their_joints(harness: BusHarness, kind) -> None:
    assert make(harness, kind, JointClaims()).measured_positions() == pytest.approx([-0.2])


@each_node
@pytest.mark.parametrize(("joints", "words"), [((), "no joints"), (("elbow",), "elbow")])
def test_nodes_reject_missing_and_unknown_joints(harness: BusHarness, kind, joints, words: str) -> None:
    with pytest.raises(NodeError, match=words):
        make(harness, kind, JointClaims(), joints=joints)


@each_node
def test_nodes_reject_joints_without_the_command_mode(harness: BusHarness, kind) -> None:
    arm = FakeHardware(ORDER, lambda: harness.now_ns, modes=["effort"], position=[0.0, 0.0, 0.0])
    with pytest.raises(NodeError, match="takes no position commands"):
        make(harness, kind, JointClaims(), hardware=arm)


@each_node
def test_closed_nodes_release_their_claims(harness: BusHarness, kind) -> None:
    claims = JointClaims()
    node = make(harness, kind, claims)
    claims.claim(node.full_name, GROUP)
    node.close()
    assert not claims.has_claim(node.full_name, GROUP)
    claims.claim("/another", GROUP)


@each_node
@pytest.mark.parametrize("is_moving", [True, False])
@pytest.mark.parametrize("paused", [True, False])
def test_saved_claims_are_restored(harness: BusHarness, kind, is_moving: bool, paused: bool) -> None:
    claims = JointClaims()
    node = make(harness, kind, claims)
    claims.claim(node.full_name, GROUP)
    claims.set_paused(GROUP, paused)
    saved = node.save_claims()
    claims.unregister(node.full_name)
    claims.set_paused(GROUP, not paused)
    node.load_claims(saved, is_moving=is_moving)
    assert node.has_claim()
    assert claims.is_paused(GROUP) == paused
    assert claims.stop(GROUP) == ([node.full_name] if is_moving else [])


def test_joint_indices_name_unknown_joints_and_those_of_the_hardware() -> None:
    arm = FakeHardware(ORDER, lambda: 0, modes=["position"], position=[0.0, 0.0, 0.0])
    np.testing.assert_array_equal(joint_indices(arm, ("turn", "slide")), [2, 0])
    with pytest.raises(UnknownNameError, match="elbow") as caught:
        joint_indices(arm, ("turn", "elbow"))
    assert "slide, other, turn" in str(caught.value)
