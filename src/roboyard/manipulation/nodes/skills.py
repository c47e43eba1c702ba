"""The skills node: actions of an arm that sees, picks, places and stores, and the loop of all that."""

from __future__ import annotations

from dataclasses import replace

from roboyard.bus import param
from roboyard.errors import ConfigError
from roboyard.manipulation.nodes.skill_doer import Doer, Doings, places_of
from roboyard.manipulation.nodes.skill_node import Doing, SkillNode
from roboyard.manipulation.skills import Finish, Lane, Now, Outcome, Skill, Wish, lanes_of, make_skill


class SkillsNode(SkillNode):
    """Does what an arm with a camera on its wrist and a gripper knows how to do, and says why when it cannot.

    actions: ~/look, ~/align, ~/check_load, ~/pick, ~/place, ~/stow, ~/unstow, ~/loop (roboyard_msgs/RunSkill); it asks
        disc_finder's look (LookForDiscs), move_group's move_action (moveit_msgs/MoveGroup), the gripper's gripper_cmd
        (control_msgs/GripperCommand), and navigate_to_pose (nav2_msgs/NavigateToPose) where places are given
    service: ~/stop (std_srvs/Trigger): the arm stops at once, what is held stays held; never refused
    in: joint_states (sensor_msgs/JointState), the gripper's ~state (std_msgs/String) and FINGER/force
        (geometry_msgs/WrenchStamped), belts' states (std_msgs/Float64)
    out: ~/events (roboyard_msgs/SkillEvent), ~/loop_status (LoopStatus, latched), planning_scene
        (moveit_msgs/PlanningScene): what was seen, and what is held

    One skill at a time: a newer goal ends the one under way.  Whoever cancels stops the arm; what is held stays held,
    but a loop that is cancelled puts it back and brings the arm to rest.
    """

    ground: float = param(
        0.0, unit="m", low=-10.0, high=10.0, doc="height of the floor in the root's frame", fixed=True
    )
    look_action: str = param("look", doc="disc_finder's", fixed=True)
    move_action: str = param("move_action", doc="move_group's", fixed=True)
    grip_action: str = param("gripper/gripper_cmd", doc="the gripper's", fixed=True)
    grip_state: str = param("gripper/state", doc="topic of the gripper", fixed=True)
    belts: tuple[str, ...] = param((), doc="topics that tell speeds of belts, of each field in 'moving'", fixed=True)
    fingers: tuple[str, ...] = param(
        (), doc="topics of what presses on each finger, z along it; none: not felt", fixed=True
    )
    touch: float = param(4.0, unit="N", low=0.0, high=1e4, doc="more of that on the way down is a touch", fixed=True)
    go_action: str = param("navigate_to_pose", doc="the navigator's", fixed=True)
    places: tuple[str, ...] = param((), doc="fields and start_end, where the robot drives; none: it stands", fixed=True)
    poses: tuple[float, ...] = param((), doc="x, y [m], yaw [rad] of each place in the map", fixed=True)
    map_frame: str = param("map", fixed=True)
    look_time: float = param(3.0, unit="s", low=0.1, high=1e3, doc="for a look", fixed=True)
    move_time: float = param(40.0, unit="s", low=0.1, high=1e4, doc="for a motion", fixed=True)
    grip_time: float = param(6.0, unit="s", low=0.1, high=1e3, doc="for a grip", fixed=True)
    go_time: float = param(180.0, unit="s", low=0.1, high=1e5, doc="for a drive", fixed=True)

    def connect(self) -> Doing:
        """Actions of others: looks, motions, grips, drives."""
        config = self.skills
        for name in (*config.views, config.load_view, config.rest):
            self.groups.group(self.group or None).pose(name)
        if self.belts and len(self.belts) != len(config.moving):
            what, where = (
                f"{len(self.belts)} topics for {len(config.moving)} belts",
                f"{self.full_name}, parameter 'belts'",
            )
            raise ConfigError(what, location=where, valid="one for each field in skills.moving, or none")
        doings = Doings(
            self.look_action, self.move_action, self.grip_action, self.grip_state, self.fingers,
            self.touch, self.go_action, dict(zip(config.moving, self.belts, strict=False)),
            places_of(self.places, self.poses, self.full_name), self.map_frame,
            self.look_time, self.move_time, self.grip_time, self.go_time,
        )  # fmt: skip
        return Doer(self, self.groups, self.group, config, self.ground, doings, self.came, self._lanes)

    def _lanes(self) -> tuple[Lane, ...]:
        return lanes_of(self.skills, self._memory)

    def now_of(self) -> Now:
        """What a skill knows, with how fast things come on belts."""
        doer = self._doer
        return replace(super().now_of(), flows=dict(doer.flows) if isinstance(doer, Doer) else {})

    def make(self, name: str, wish: Wish) -> Skill:
        """One of `SKILLS`."""
        return make_skill(name, wish, self.skills, len(self._body.bays))

    def finish(self, why: Outcome) -> Skill:
        """Nothing in the hand, the arm at rest."""
        return Finish(why)
