"""The node of a thesis's skills: the same actions as ours have, its own way of doing them."""

from __future__ import annotations

import math

from roboyard.config import parameter
from roboyard.errors import ConfigError
from roboyard.manipulation.nodes.skill_node import Doing, SkillNode, SkillNodeConfig
from roboyard.manipulation.nodes.thesis_doer import ThesisDoer, ThesisDoings
from roboyard.manipulation.skills import Now, Outcome, Skill, Wish
from roboyard.manipulation.thesis.asking import ThesisNow
from roboyard.manipulation.thesis.choice import THESIS_SKILLS, make_thesis_skill
from roboyard.manipulation.thesis.config import ThesisConfig
from roboyard.manipulation.thesis.inverse import Scale
from roboyard.manipulation.thesis.loop import Finish


class ThesisSkillsNodeConfig(SkillNodeConfig):
    """Configuration of `ThesisSkillsNode`."""

    thesis: ThesisConfig = parameter(factory=ThesisConfig, doc="Constants of the thesis's program.")
    ground: float = parameter(0.0, unit="m", low=-10.0, high=10.0, doc="Height of the floor in the root's frame.")
    image_topic: str = parameter("camera/rgb/image_raw", doc="Topic of the images.")
    info_topic: str = parameter("camera/rgb/camera_info", high=math.inf, doc="Topic of their camera_info.")
    depth_topic: str = parameter("camera/depth/image", doc="Topic of the depth images, as the depth camera sees them.")
    velocity_topic: str = parameter("arm_1/arm_controller/velocity_command", doc="Topic of the arm's velocities.")
    position_topic: str = parameter("arm_1/arm_controller/position_command", doc="Topic of the arm's positions.")
    gripper_topic: str = parameter("arm_1/gripper_controller/position_command", doc="Topic of both fingers.")
    look_time: float = parameter(3.0, unit="s", low=0.1, high=1e3, doc="Longest wait for an image.")
    move_time: float = parameter(40.0, unit="s", low=0.1, high=1e4, doc="Longest duration of a motion.")


class ThesisSkillsNode(SkillNode[ThesisSkillsNodeConfig]):
    """Picks, stores and places as a bachelor's thesis did (Westfälische Hochschule 2017), with its constants.

    actions: ~/align, ~/check_load, ~/pick, ~/place, ~/stow, ~/unstow, ~/loop (roboyard_msgs/RunSkill)
    service: ~/stop (std_srvs/Trigger)
    in: joint_states, the camera's pictures, camera_info and depth
    out: joints' velocities (brics_actuator/JointVelocities) and positions (brics_actuator/JointPositions), positions of
        both fingers; ~/events (roboyard_msgs/SkillEvent), ~/loop_status (LoopStatus, latched);
        discs/image/compressed: the last picture of each look

    Circles by Hough at one scale, its map from pixels to the arm, P control of the first joint to the nearest symbol, a
    geometric inverse kinematics, P control of the joints.  Nothing is felt, and nothing that is in the way is looked
    out for: it may touch.  The camera is listened to only while it looks.
    """

    skills_offered = THESIS_SKILLS
    rate = 100.0

    def connect(self) -> Doing:
        """Topics of the robot's drivers."""
        count = len(self.config.skills.fields)
        if len(self.config.thesis.bearings) != count:
            raise ConfigError(
                f"{len(self.config.thesis.bearings)} bearings",
                location=self.full_name,
                valid=f"one for each of {count} fields",
            )
        chain = self._body.chain
        known = self.groups.group(self.config.group or None).gripper
        if known is None:
            raise ConfigError("there is no gripper", location=self.full_name, valid="a group with one")
        gripper = self.groups.gripper(known)
        fingers = dict(zip(gripper.joints, gripper.open, strict=True))
        doings = ThesisDoings(
            self.config.image_topic,
            self.config.info_topic,
            self.config.depth_topic,
            self.config.velocity_topic,
            self.config.position_topic,
            self.config.gripper_topic,
            self.config.look_time,
            self.config.move_time,
        )
        self._arm = ThesisDoer(self, self.config.thesis, Scale.of(chain), chain.joints, fingers, doings, self.came)
        return self._arm

    def make(self, name: str, wish: Wish) -> Skill:
        """One of the thesis's."""
        return make_thesis_skill(name, wish, self.config.skills.fields, len(self.config.thesis.bay_turns))

    def finish(self, why: Outcome) -> Skill:
        """The arm at rest; what is held stays held."""
        return Finish(why)

    def now_of(self) -> Now:
        """What a skill knows, with the thesis's constants."""
        memory, body, joints = self._memory, self._body, self._joints
        return ThesisNow(
            self.config.skills,
            memory,
            body,
            joints,
            thesis=self.config.thesis,
            ground=self.config.ground,
            turning=self._arm.turning,
        )
