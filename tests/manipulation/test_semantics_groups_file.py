"""Groups: from our YAML, from SRDF, guessed; whatever they name must be there."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from roboyard.description import load_model
from roboyard.errors import ConfigError, DescriptionError, InputError, UnknownNameError
from roboyard.manipulation import SemanticDescription, guess_groups, load_groups

ROBOTS = Path(str(resources.files("roboyard") / "robots"))
ARM = tuple(f"arm_joint_{k}" for k in range(1, 6))
HEAD = "groups:\n  arm: {base: arm_base, tip: gripper_link}\n"


def schunk(path: Path | None = None) -> SemanticDescription:
    folder = ROBOTS / "scitos_arm"
    return load_groups(path or folder / "groups.yaml", load_model(folder / "scitos_arm.urdf.xacro"))


def test_groups_file_of_the_schunk_arm_is_read() -> None:
    groups = schunk()
    arm = groups.group("arm")
    assert arm == groups.group()
    assert arm.joints == ARM
    chain = groups.chain("arm")
    assert (chain.max_acceleration == 0.42).all()
    assert np.isinf(chain.max_jerk).all()
    assert chain.is_within_limits(np.array(list(arm.poses.values()))).all()
    gripper = groups.gripper(arm.gripper)
    assert gripper.joint_positions(0.068) == pytest.approx([0.034])
    assert gripper.opening({"finger_left_joint": 0.017}) == pytest.approx(0.034)
    with pytest.raises(InputError, match=r"an opening of 0.07 m .*0 to 0.068 m"):
        gripper.joint_positions(0.07)
    assert groups.allowed_collisions["arm_link_5", "kinect"] == "adjacent"


def test_chain_tools_are_named_frames_or_links_below() -> None:
    groups = schunk()
    q = groups.group().pose("ahead")
    tips, tool = groups.chain("arm", "fingertips").forward(q), groups.chain("arm").forward(q)
    np.testing.assert_allclose(tips[:3, 3], tool[:3, 3] + 0.107 * tool[:3, 2], atol=1e-12)
    np.testing.assert_allclose(groups.chain("arm", "kinect").forward(q), groups.chain("arm", "camera").forward(q))
    with pytest.raises(
        UnknownNameError, match=r"no tool 'fingertip'; did you mean 'fingertips'.*tools: fingertips, camera"
    ):
        groups.chain("arm", "fingertip")
    with pytest.raises(InputError, match="not carried by all joints|not a free joint"):
        groups.chain("arm", "arm_link_3")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("groups: {arm: {base: arm_base}}", r"key 'tip' is missing"),
        ("groups: {arm: {base: arm_base, tip: nose}}", r"groups\.arm: unknown link 'nose'"),
        (
            "groups: {arm: {base: arm_base, tip: gripper_link, joints: [arm_joint_2, arm_joint_1]}}",
            "not in their order",
        ),
        (HEAD.replace("}", ", poses: {up: [0, 0]}}"), r"arm\.poses\.up: has 2 values"),
        (HEAD.replace("}", ", poses: {up: [0, 9, 0, 0, 0]}}"), "arm_joint_2 at 9 is beyond its limits"),
        (HEAD.replace("}", ", poses: {up: [0, .nan, 0, 0, 0]}}"), "is nan"),
        (HEAD.replace("}", ", tool_axis: [0, 0, 0]}"), "is no direction"),
        (HEAD.replace("}", ", gripper: hand}"), "no gripper 'hand'"),
        (HEAD.replace("}", ", tools: {pen: {link: desk}}}"), "unknown link 'desk'"),
        (HEAD.replace("}", ", tools: {pen: {xyz: [1, 2, 3 s]}}}"), "is a time"),
        (HEAD + "joints: {arm_joint_9: {acceleration: 1}}", "no joint 'arm_joint_9'; did you mean"),
        (HEAD + "joints: {arm_joint_1: {acceleration: 0}}", "is below"),
        (HEAD + "allowed_collisions: {never: [[arm_base, wall]]}", r"allowed_collisions\.never: no link 'wall'"),
        (HEAD + "allowed_collisions: {sometimes: [[arm_base, kinect]]}", "unknown key 'sometimes'"),
        (HEAD + "grippers: {g: {joints: [], closed: [], open: [], opening_range: [0, 1]}}", "at least one"),
        (
            HEAD + "grippers: {g: {joints: [finger_left_joint], closed: [0], open: [0], opening_range: [0, 1]}}",
            "does not open",
        ),
        ("extends: other.yaml", "there is no file other.yaml"),
    ],
)
def test_groups_file_mistakes_are_reported(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "groups.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        schunk(path)
    assert "groups.yaml" in str(caught.value)


def test_groups_file_that_extends_another_adds_to_it(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(HEAD + "allowed_collisions: {never: [[arm_base, kinect]]}")
    (tmp_path / "more.yaml").write_text("extends: base.yaml\nallowed_collisions: {user: [[arm_link_1, kinect]]}")
    groups = schunk(tmp_path / "more.yaml")
    assert groups.group("arm").joints == ARM
    assert groups.allowed_collisions["arm_base", "kinect"] == "never"
    assert groups.allowed_collisions["arm_link_1", "kinect"] == "user"


SRDF = """<robot name="scitos_arm">
  <group name="arm">{arm}</group>
  <group name="hand"><joint name="finger_left_joint"/><joint name="finger_right_joint"/></group>
  <group_state name="home" group="arm"><joint name="arm_joint_3" value="1.5"/></group_state>
  <group_state name="open" group="hand"><joint name="finger_left_joint" value="0.03"/></group_state>
  <end_effector name="hand" parent_link="gripper_link" group="hand" parent_group="arm"/>
  <virtual_joint name="fixed" type="fixed" parent_frame="world" child_link="arm_base"/>
  <disable_collisions link1="kinect" link2="arm_base" reason="Never"/>
</robot>"""
GROUP_DEFINITIONS = {
    "chain": '<chain base_link="arm_base" tip_link="gripper_link"/>',
    "joints": "".join(f'<joint name="{name}"/>' for name in (*reversed(ARM), "gripper_joint")),
    "links": "".join(f'<link name="arm_link_{k}"/>' for k in range(1, 6)) + '<link name="gripper_link"/>',
}


@pytest.mark.parametrize("definition", GROUP_DEFINITIONS)
def test_srdf_groups_by_chain_joints_and_links_are_equal(tmp_path: Path, definition: str) -> None:
    path = tmp_path / "arm.srdf"
    path.write_text(SRDF.replace("{arm}", GROUP_DEFINITIONS[definition]))
    groups = schunk(path)
    arm = groups.group("arm")
    assert (arm.base, arm.tip, arm.joints, arm.gripper) == ("arm_base", "gripper_link", ARM, "hand")
    assert arm.pose("home").tolist() == [0.0, 0.0, 1.5, 0.0, 0.0]
    assert groups.gripper().open == (0.03,)
    assert groups.gripper().opening_range == pytest.approx((0.0, 0.06))
    assert groups.allowed_collisions["arm_base", "kinect"] == "never"


def test_srdf_subgroups_join_and_branched_groups_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "arm.srdf"
    path.write_text(
        '<robot name="r"><group name="low"><joint name="arm_joint_1"/><joint name="arm_joint_2"/></group>'
        '<group name="both"><group name="low"/><joint name="arm_joint_3"/></group>'
        '<group name="fingers"><joint name="arm_joint_1"/><joint name="finger_left_joint"/></group>'
        '<passive_joint name="arm_joint_5"/></robot>'
    )
    groups = schunk(path)
    assert groups.group("both").joints == ARM[:3]
    assert groups.group("fingers").joints == ("arm_joint_1", "finger_left_joint")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<robot name="r"><group name="a"><chain base_link="arm_base" tip_link="nose"/></group></robot>',
            "no link 'nose'",
        ),
        (
            '<robot name="r"><group name="a"><chain base_link="kinect" tip_link="arm_base"/></group></robot>',
            "not below",
        ),
        ('<robot name="r"><group name="a"><joint name="knee"/></group></robot>', "no joint 'knee'"),
        ('<robot name="r"><group name="a"><group name="b"/></group></robot>', "no group 'b'"),
        ('<robot name="r"><group name="a"><group name="a"/></group></robot>', "part of itself"),
        ('<robot name="r"><disable_collisions link1="arm_base" link2="x" reason="Never"/></robot>', "no link 'x'"),
        ('<robot name="r"><group_state group="a" name="b"/></robot>', "no group 'a'"),
        ("<sdf/>", "not an SRDF"),
        ("nothing", "arm.srdf"),
    ],
)
def test_srdf_mistakes_are_reported_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "arm.srdf"
    path.write_text(text)
    with pytest.raises(DescriptionError, match=message) as caught:
        schunk(path)
    assert "arm.srdf" in str(caught.value)


def test_groups_of_a_plain_description_are_guessed() -> None:
    groups = guess_groups(load_model(ROBOTS / "scitos_arm" / "scitos_arm.urdf.xacro"))
    assert list(groups.groups) == ["arm"]
    assert groups.group("arm").joints == ARM
    assert groups.group("arm").tip == "gripper_link"
    assert groups.gripper("gripper").opening_range == (0.0, pytest.approx(0.068))
    assert guess_groups(load_model(ROBOTS / "scitos" / "scitos.urdf.xacro")).group("arm").base == "base_link"
    assert guess_groups(load_model(ROBOTS / "rover" / "rover.urdf.xacro")).groups == {}


@pytest.mark.parametrize(
    ("path", "arguments", "tips", "dof"),
    [
        ("descriptions/franka/franka_description/robots/panda/panda.expanded.urdf", {}, ["panda_hand_tcp"], 7),
        ("descriptions/ur5e/ur_description/urdf/ur.urdf.xacro", {"name": "ur5e", "ur_type": "ur5e"}, ["tool0"], 6),
        ("descriptions/baxter/baxter_description/urdf/baxter.urdf", {}, ["right_gripper", "left_gripper"], 7),
        ("robots/iisy/kuka_lbr_iisy_support/urdf/lbr_iisy3_r760.urdf.xacro", {}, ["tool0"], 6),
    ],
)
def test_groups_of_external_arms_are_guessed(
    external_data: Path, path: str, arguments: dict[str, str], tips: list[str], dof: int
) -> None:
    groups = guess_groups(load_model(external_data / path, arguments=arguments, repair=True))
    assert [group.tip for group in groups.groups.values()] == tips
    assert {len(group.joints) for group in groups.groups.values()} == {dof}


def test_external_srdf_is_read(external_data: Path) -> None:
    folder = external_data / "robots" / "iisy"
    model = load_model(folder / "kuka_lbr_iisy_support" / "urdf" / "lbr_iisy3_r760.urdf.xacro")
    path = folder / "kuka_lbr_iisy_moveit_config" / "srdf" / "lbr_iisy3_r760_arm.srdf.xacro"
    groups = load_groups(path, model)
    assert groups.chain("manipulator").dof == 6
    assert list(groups.group("manipulator").poses) == ["null_pos"]
