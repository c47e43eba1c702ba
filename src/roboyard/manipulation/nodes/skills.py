"""The skills node: actions of an arm that sees, picks, places and stores, and the loop of all that."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any, Final

import numpy as np

from roboyard.bus import GoalHandle, Node, param, resource, settings
from roboyard.errors import InputError
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.nodes.skill_doer import Doer, Doings, places_of
from roboyard.manipulation.nodes.skill_requests import point_msg
from roboyard.manipulation.skills import (
    SKILLS,
    Ask,
    Body,
    Cause,
    Event,
    Finish,
    Loop,
    Memory,
    Now,
    Outcome,
    Skill,
    SkillConfig,
    Stack,
    Wish,
    make_skill,
    packed,
    unpacked,
)
from roboyard.manipulation.skills.causes import ENDED
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import header

_RATE: Final = 50.0
"""Of looks at the time [Hz]."""


class SkillsNode(Node):
    """Does what an arm with a camera on its wrist and a gripper knows how to do, and says why when it cannot.

    actions: ~/look, ~/align, ~/check_load, ~/pick, ~/place, ~/stow, ~/unstow, ~/loop (roboyard_msgs/RunSkill); it asks
        disc_finder's look (LookForDiscs), move_group's move_action (moveit_msgs/MoveGroup), the gripper's gripper_cmd
        (control_msgs/GripperCommand), and navigate_to_pose (nav2_msgs/NavigateToPose) where places are given
    service: ~/stop (std_srvs/Trigger): the arm stops at once, what is held stays held; never refused
    in: joint_states (sensor_msgs/JointState), the gripper's ~state (std_msgs/String)
    out: ~/events (roboyard_msgs/SkillEvent), ~/loop_status (LoopStatus, latched), planning_scene
        (moveit_msgs/PlanningScene): what was seen, and what is held

    One skill at a time: a newer goal ends the one under way.  Whoever cancels stops the arm; what is held stays held,
    but a loop that is cancelled puts it back and brings the arm to rest.
    """

    groups: Groups = resource(Groups)
    group: str = param("", doc="which joints move; empty: the first group of the robot", fixed=True)
    skills: SkillConfig = settings(SkillConfig)
    ground: float = param(
        0.0, unit="m", low=-10.0, high=10.0, doc="height of the floor in the root's frame", fixed=True
    )
    look_action: str = param("look", doc="disc_finder's", fixed=True)
    move_action: str = param("move_action", doc="move_group's", fixed=True)
    grip_action: str = param("gripper/gripper_cmd", doc="the gripper's", fixed=True)
    grip_state: str = param("gripper/state", doc="topic of the gripper", fixed=True)
    stop_service: str = param("arm/stop", doc="of who moves the arm's joints", fixed=True)
    go_action: str = param("navigate_to_pose", doc="the navigator's", fixed=True)
    places: tuple[str, ...] = param((), doc="fields and start_end, where the robot drives; none: it stands", fixed=True)
    poses: tuple[float, ...] = param((), doc="x, y [m], yaw [rad] of each place in the map", fixed=True)
    map_frame: str = param("map", fixed=True)
    look_time: float = param(3.0, unit="s", low=0.1, high=1e3, doc="for a look", fixed=True)
    move_time: float = param(40.0, unit="s", low=0.1, high=1e4, doc="for a motion", fixed=True)
    grip_time: float = param(6.0, unit="s", low=0.1, high=1e3, doc="for a grip", fixed=True)
    go_time: float = param(180.0, unit="s", low=0.1, high=1e5, doc="for a drive", fixed=True)
    loop: int = param(
        -1, low=-1, high=1_000_000, doc="things to place in a loop that begins by itself; 0: no end; -1: none"
    )
    start: float = param(1.0, unit="s", low=0.0, high=1e6, doc="when that loop begins", fixed=True)

    fields = ("_joints", "_efforts", "_shift", "_number", "_wanted", "_ending", "_started", "_told")

    def setup(self) -> None:
        """Connect."""
        config = self.skills
        self._body = Body.of(self.groups, self.group or None, config.bays)
        for name in (*config.views, config.load_view, config.rest):
            self.groups.group(self.group or None).pose(name)
        self._stack = Stack()
        self._memory = Memory(config.fields[0])
        self._joints: tuple[float, ...] = ()
        self._efforts: tuple[float, ...] = ()
        self._shift = 0.0
        self._fingers = self._aside()
        self._number = 0
        self._handle: GoalHandle | None = None
        self._waiting: GoalHandle | None = None
        self._wanted = ""
        self._ending: tuple[Outcome, bool] | None = None
        self._started = False
        self._told: tuple[Any, ...] = ()
        self._up: dict[str, GoalHandle] = {}
        doings = Doings(
            self.look_action, self.move_action, self.grip_action, self.grip_state, self.go_action,
            places_of(self.places, self.poses, self.full_name), self.map_frame,
            self.look_time, self.move_time, self.grip_time, self.go_time,
        )  # fmt: skip
        self._doer = Doer(self, self.groups, self.group, config, self.ground, doings, self._came)
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        for name in SKILLS:
            self.action_server(
                f"~/{name}", action.RunSkill, partial(self._on_goal, name), preempt=False,
                on_restored=partial(self._on_restored, name),
            )  # fmt: skip
        self.service("~/stop", srv.Trigger, self._on_stop)
        self._stop = self.service_client(self.stop_service, srv.Trigger)
        self._events = self.publisher("~/events", msg.SkillEvent)
        self._status = self.publisher("~/loop_status", msg.LoopStatus, latched=True)
        self.timer(rate=_RATE, callback=self._tick)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_goal(self, name: str, handle: GoalHandle) -> None:
        try:
            make_skill(name, _wish(handle.goal), self.skills, len(self._body.bays))
        except InputError as error:
            handle.reject(str(error), Cause.BAD_GOAL.value)
            return
        handle.accept()
        handle.on_cancel = self._on_cancel
        newer = Outcome(Cause.PREEMPTED, "something newer was asked for")
        if self._waiting is not None:
            self._answer(self._waiting, newer)
        self._waiting, self._wanted = handle, name
        if self._stack.busy:
            self._halt(newer, finish=False)
        else:
            self._begin_waiting()

    def _begin_waiting(self) -> None:
        handle, self._waiting = self._waiting, None
        if handle is None:
            return
        self._handle = handle
        self._begin(make_skill(self._wanted, _wish(handle.goal), self.skills, len(self._body.bays)))

    def _on_cancel(self, handle: GoalHandle) -> None:
        cancelled = Outcome(Cause.CANCELLED, "cancelled")
        if handle is self._waiting:
            self._waiting = None
            self._answer(handle, cancelled)
        elif handle is self._handle:
            self._halt(cancelled, finish=True)

    def _on_stop(self, request: Any) -> Any:
        stopped = Outcome(Cause.CANCELLED, "stopped")
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self._answer(waiting, stopped)
        if self._stack.busy:
            self._halt(stopped, finish=False)
        if self._stop.available():
            self._stop.call(srv.Trigger.Request())
        return srv.Trigger.Response(success=True, message="stopped")

    def _halt(self, why: Outcome, *, finish: bool) -> None:
        """Stop what is being done, then end all skills; a loop may still finish."""
        loop = isinstance(self._stack.frames[0], Loop)
        if self._ending is not None:
            finish = finish and self._ending[1]
        self._ending = (why, finish and loop)
        self._doer.cancel(why)

    # -- going on ------------------------------------------------------------------------------------------------------
    def _now(self) -> Now:
        return Now(self.skills, self._memory, self._body, self._joints, self._doer.holding, self._shift, self._efforts)

    def _begin(self, skill: Skill) -> None:
        self._carry_on(self._stack.begin(skill, self._now()))

    def _came(self, outcome: Outcome) -> None:
        """What was asked for has ended."""
        if self._ending is None:
            self._carry_on(self._stack.feed(self._now(), outcome))
            return
        (why, finish), self._ending = self._ending, None
        ended = self._stack.abandon(why.cause, why.text)
        self._tell()
        if finish:
            self._begin(Finish(why))
        else:
            self._over(ended)

    def _carry_on(self, said: Ask | Outcome) -> None:
        """Do what is asked for, and tell what was done at once."""
        self._tell()
        while not isinstance(said, Outcome):
            at_once = self._doer.start(said)
            if at_once is None:
                return
            said = self._stack.feed(self._now(), at_once)
            self._tell()
        self._over(said)

    def _over(self, outcome: Outcome) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._answer(handle, outcome)
        good = outcome.done or outcome.cause in ENDED
        self.report_health("ok" if good else "warn", outcome.text or "done", cause=outcome.cause.value)
        self._begin_waiting()

    def _answer(self, handle: GoalHandle, outcome: Outcome) -> None:
        seen = [one.position for one in outcome.seen]
        places = seen or ([outcome.position] if outcome.position is not None else [])
        result = action.RunSkill.Result(
            done=outcome.done, view_empty=outcome.view_empty, cause=outcome.cause.value, text=outcome.text,
            recoveries=outcome.recoveries, header=header(self.frame(self.groups.root), self.now_ns),
            positions=[point_msg(one) for one in places], load=np.array(self._memory.load, dtype=np.int8),
            placed=self._number,
        )  # fmt: skip
        if outcome.done:
            handle.succeed(result)
        elif handle.canceling:
            handle.cancel(result, outcome.text)
        else:
            handle.abort(result, outcome.text, outcome.cause.value)

    def _tick(self) -> None:
        if self.loop >= 0 and not self._started and self.now >= self.start - 1e-9:
            self._started = True
            if not self._stack.busy:
                self._begin(make_skill("loop", Wish(objects=self.loop), self.skills, len(self._body.bays)))
        self._doer.step()

    def _on_joints(self, message: Any) -> None:
        where = dict(zip(message.name, message.position, strict=False))
        wanted = self._body.chain.joints
        if all(name in where and np.isfinite(where[name]) for name in wanted):
            self._joints = tuple(float(where[name]) for name in wanted)
        felt = dict(zip(message.name, message.effort, strict=False))
        self._efforts = tuple(float(felt[name]) for name in wanted if np.isfinite(felt.get(name, np.nan)))
        if len(self._efforts) != len(wanted):
            self._efforts = ()
        if all(name in where and np.isfinite(where[name]) for name in self._fingers):
            self._shift = sum(share * float(where[name]) for name, share in self._fingers.items())

    def _aside(self) -> dict[str, float]:
        """Sliding joints of the fingers, and how far each brings the middle between them along the tool's y axis."""
        known = self.groups.group(self.group or None).gripper
        names = self.groups.gripper(known).joints if known is not None else ()
        sliding = [j for j in self.groups.model.joints if j.name in names and j.type == "prismatic"]
        return {joint.name: float(joint.axes[0].xyz[1]) / len(sliding) for joint in sliding}

    # -- telling -------------------------------------------------------------------------------------------------------
    def _tell(self) -> None:
        for event in self._stack.events:
            self._publish(event)
        self._stack.events.clear()
        frames = self._stack.frames
        if frames and isinstance(frames[0], Loop):
            self._tell_loop(frames[0], frames)

    def _publish(self, event: Event) -> None:
        outcome, at = event.outcome, event.outcome.position
        ended = event.kind == "ends"
        self._events.publish(
            msg.SkillEvent(
                header=header(self.frame(self.groups.root), self.now_ns), skill=event.skill, number=event.number,
                of=event.of, event=event.kind, phase=event.phase, done=ended and outcome.done,
                view_empty=outcome.view_empty, cause=outcome.cause.value, text=outcome.text, bay=outcome.bay,
                located=at is not None, position=point_msg(at),
            )
        )  # fmt: skip
        if event.kind == "recovers":
            self.log.info(f"{event.skill}: {outcome.cause.value}: {outcome.text}")
        elif ended and not event.of and not outcome.done and outcome.cause not in ENDED:
            self.log.warn(f"{event.skill} was not done: {outcome.cause.value}: {outcome.text}")
        if self._handle is not None and event.kind in ("begins", "phase"):
            self._handle.feedback(action.RunSkill.Feedback(skill=event.skill, phase=event.phase))

    def _tell_loop(self, loop: Loop, frames: list[Skill]) -> None:
        self._number = loop.placed
        doing = frames[1].name if len(frames) > 1 else {"resting": "rest", "ready": "wait"}.get(loop.phase, "wait")
        load = tuple(self._memory.load)
        told = (doing, self._memory.at, loop.order, load, loop.picked, loop.placed, self._memory.recoveries, loop.text)
        if told == self._told:
            return
        self._told = told
        self._status.publish(
            msg.LoopStatus(
                header=header(self.frame(self.groups.root), self.now_ns), action=doing, place=self._memory.at,
                order=loop.order, load=np.array(load, dtype=np.int8), picked=loop.picked, placed=loop.placed,
                recoveries=self._memory.recoveries, text=loop.text,
            )
        )  # fmt: skip

    # -- state ---------------------------------------------------------------------------------------------------------
    def _on_restored(self, name: str, handle: GoalHandle) -> None:
        handle.on_cancel = self._on_cancel
        self._up[handle.id.hex()] = handle

    def save(self) -> dict[str, Any]:
        """State as plain data, with all skills under way."""
        ids = [None if one is None else one.id.hex() for one in (self._handle, self._waiting)]
        return super().save() | {
            "memory": packed(self._memory), "stack": [packed(one) for one in self._stack.frames],
            "doer": self._doer.save(), "goals": ids,
        }  # fmt: skip

    def load(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._up.clear()
        super().load(state)
        self._memory = Memory(**copy.deepcopy(state["memory"]))
        self._stack.frames = [unpacked(one) for one in state["stack"]]
        self._doer.load(state["doer"])
        self._handle, self._waiting = (None if one is None else self._up[one] for one in state["goals"])


def _wish(goal: Any) -> Wish:
    at = (goal.position.x, goal.position.y, goal.position.z) if goal.at else None
    return Wish(
        str(goal.polarity), str(goal.mode), int(goal.looks), str(goal.field), int(goal.bay), at, int(goal.objects)
    )
