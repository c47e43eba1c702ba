"""The skills node: actions of an arm that sees, picks, places and stores, and the loop of all that."""

from __future__ import annotations

from dataclasses import replace

from roboyard.config import parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.manipulation.nodes.skill_doer import Doer, Doings
from roboyard.manipulation.nodes.skill_node import Doing, SkillNode, SkillNodeConfig
from roboyard.manipulation.skills import Finish, Lane, Now, Outcome, Skill, Wish, lanes_of, make_skill


class SkillsNodeConfig(SkillNodeConfig):
    """Configuration of `SkillsNode`."""

    ground: float = parameter(0.0, unit="m", low=-10.0, high=10.0, doc="Height of the floor in the root's frame.")
    look_action: str = parameter("look", doc="Action of the disc finder.")
    move_action: str = parameter("move_action", doc="Action of move_group.")
    grip_action: str = parameter("gripper/gripper_cmd", doc="Action of the gripper.")
    grip_state: str = parameter("gripper/state", doc="Topic of the gripper's state.")
    belts: tuple[str, ...] = parameter((), doc="Topics of the belts' speeds, one of each field in 'moving'.")
    fingers: tuple[str, ...] = parameter(
        (), doc="Topics of the forces on each finger, z along it; empty: not measured."
    )
    touch: float = parameter(4.0, unit="N", low=0.0, high=1e4, doc="Force that counts as a touch on the way down.")
    go_action: str = parameter("navigate_to_pose", doc="Action of the navigator.")
    places: dict[str, tuple[float, float, float]] = parameter(
        factory=dict,
        unit=("m", "m", "rad"),
        doc="Poses (x, y, yaw) in the map of the fields and of start_end, where the robot drives; none: it stands.",
    )
    map_frame: str = parameter("map", doc="Frame of the map.")
    look_time: float = parameter(3.0, unit="s", low=0.1, high=1e3, doc="Longest duration of a look.")
    move_time: float = parameter(40.0, unit="s", low=0.1, high=1e4, doc="Longest duration of a motion.")
    grip_time: float = parameter(6.0, unit="s", low=0.1, high=1e3, doc="Longest duration of a grip.")
    go_time: float = parameter(180.0, unit="s", low=0.1, high=1e5, doc="Longest duration of a drive.")


class SkillsNode(SkillNode[SkillsNodeConfig]):
    """Does what an arm with a camera on its wrist and a gripper knows how to do, and says why when it cannot.

    actions: ~/look, ~/align, ~/check_load, ~/pick, ~/place, ~/stow, ~/unstow, ~/loop (roboyard_msgs/RunSkill); it asks
        disc_detector's look (LookForDiscs), move_group's move_action (moveit_msgs/MoveGroup), the gripper's gripper_cmd
        (control_msgs/GripperCommand), and navigate_to_pose (nav2_msgs/NavigateToPose) where places are given
    service: ~/stop (std_srvs/Trigger): the arm stops at once, what is held stays held; never refused
    in: joint_states (sensor_msgs/JointState), the gripper's ~state (std_msgs/String) and FINGER/force
        (geometry_msgs/WrenchStamped), belts' states (std_msgs/Float64)
    out: ~/events (roboyard_msgs/SkillEvent), ~/loop_status (LoopStatus, latched), planning_scene
        (moveit_msgs/PlanningScene): what was seen, and what is held

    One skill at a time: a newer goal ends the one under way.  Whoever cancels stops the arm; what is held stays held,
    but a loop that is cancelled puts it back and brings the arm to rest.
    """

    def connect(self) -> Doing:
        """Actions of others: looks, motions, grips, drives."""
        config = self.config.skills
        for name in (*config.views, config.load_view, config.rest):
            self.groups.group(self.config.group or None).pose(name)
        if self.config.belts and len(self.config.belts) != len(config.moving):
            what, where = (
                f"{len(self.config.belts)} topics for {len(config.moving)} belts",
                f"{self.full_name}, parameter 'belts'",
            )
            raise ConfigError(what, location=where, valid="one for each field in skills.moving, or none")
        doings = Doings(
            self.config.look_action,
            self.config.move_action,
            self.config.grip_action,
            self.config.grip_state,
            self.config.fingers,
            self.config.touch,
            self.config.go_action,
            dict(zip(config.moving, self.config.belts, strict=False)),
            {name: SE2(*pose) for name, pose in self.config.places.items()},
            self.config.map_frame,
            self.config.look_time,
            self.config.move_time,
            self.config.grip_time,
            self.config.go_time,
        )
        return Doer(self, self.groups, self.config.group, config, self.config.ground, doings, self.came, self._lanes)

    def _lanes(self) -> tuple[Lane, ...]:
        return lanes_of(self.config.skills, self._memory)

    def now_of(self) -> Now:
        """What a skill knows, with how fast things come on belts."""
        doer = self._doer
        return replace(super().now_of(), flows=dict(doer.flows) if isinstance(doer, Doer) else {})

    def make(self, name: str, wish: Wish) -> Skill:
        """One of `SKILLS`."""
        return make_skill(name, wish, self.config.skills, len(self._body.bays))

    def finish(self, why: Outcome) -> Skill:
        """Nothing in the hand, the arm at rest."""
        return Finish(why)
