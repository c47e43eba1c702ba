"""What nodes of skills have in common: their actions, the skills under way, and what is told of them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from typing_extensions import TypeVar

from roboyard.bus import GoalHandle, Node, resource
from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.nodes.skill_requests import point_msg
from roboyard.manipulation.skills import (
    SKILLS,
    Ask,
    Body,
    Cause,
    Event,
    Memory,
    Now,
    Outcome,
    Rounds,
    Skill,
    SkillConfig,
    Stack,
    Wish,
    packed,
    unpacked,
)
from roboyard.manipulation.skills.causes import ENDED
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import make_header


class Doing(Protocol):
    """Carries out what skills ask for, one thing at a time."""

    holding: bool

    def start(self, ask: Ask) -> Outcome | None:
        """Begin; an outcome if that was all there was to do, else the node's `came` is told later."""

    def cancel(self, why: Outcome) -> None:
        """Stop what is being carried out; it ends with ``why`` once it has stopped."""

    def step(self) -> None:
        """Watch the time; called at a rate."""

    def save_state(self) -> dict[str, Any]:
        """What is under way, as plain data."""

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""


class SkillNodeConfig(Config):
    """Configuration of `SkillNode`."""

    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    skills: SkillConfig = parameter(factory=SkillConfig, doc="Configuration of the skills.")
    stop_service: str = parameter("arm/stop", doc="Service that stops the arm's joints.")
    loop: int = parameter(
        -1,
        low=-1,
        high=1_000_000,
        runtime=True,
        doc="Number of things to place in a loop that begins by itself; 0: no end; -1: no loop.",
    )
    start: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="Time at which that loop begins.")


SkillNodeConfigT = TypeVar("SkillNodeConfigT", bound=SkillNodeConfig, default=SkillNodeConfig, covariant=True)


class SkillNode(Node[SkillNodeConfigT], ABC):
    """A node whose skills are state machines: one of them at a time.

    actions: ~/look, ~/align, ~/check_load, ~/pick, ~/place, ~/stow, ~/unstow, ~/loop (roboyard_msgs/RunSkill), as far
        as the method has them
    service: ~/stop (std_srvs/Trigger): the arm stops at once, what is held stays held; never refused
    in: joint_states (sensor_msgs/JointState)
    out: ~/events (roboyard_msgs/SkillEvent), ~/loop_status (LoopStatus, latched)

    A newer goal ends the one under way.  Whoever cancels stops the arm; what is held stays held, but a loop that is
    cancelled ends well first.  Subclasses say which skills there are (`make`, `finish`) and who does what they ask for
    (`connect`).
    """

    skills_offered: ClassVar[tuple[str, ...]] = SKILLS
    rate: ClassVar[float] = 50.0
    """Of looks at the time [Hz]."""

    groups: Groups = resource(Groups)

    state_fields = ("_joints", "_efforts", "_shift", "_number", "_wanted", "_ending", "_started", "_told")

    def setup(self) -> None:
        """Connect."""
        config = self.config.skills
        self._body = Body.of(self.groups, self.config.group or None, config.bays)
        self._stack = Stack()
        self._memory = Memory("" if config.drives else config.fields[0])
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
        self._doer = self.connect()
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        for name in self.skills_offered:
            self.action_server(
                f"~/{name}", action.RunSkill, partial(self._on_goal, name), preempt=False,
                on_goal_restored=partial(self._on_restored, name),
            )  # fmt: skip
        self.service("~/stop", srv.Trigger, self._on_stop)
        self._stop = self.service_client(self.config.stop_service, srv.Trigger)
        self._events = self.publisher("~/events", msg.SkillEvent)
        self._status = self.publisher("~/loop_status", msg.LoopStatus, latched=True)
        self.timer(rate=self.rate, callback=self._tick)

    # -- the method ----------------------------------------------------------------------------------------------------
    @abstractmethod
    def connect(self) -> Doing:
        """Who does what skills ask for."""

    @abstractmethod
    def make(self, name: str, wish: Wish) -> Skill:
        """A skill that is ready to begin. Raises InputError."""

    @abstractmethod
    def finish(self, why: Outcome) -> Skill:
        """What a loop ends with that somebody cancels."""

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_goal(self, name: str, handle: GoalHandle) -> None:
        try:
            self.make(name, _wish(handle.goal))
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
        self._begin(self.make(self._wanted, _wish(handle.goal)))

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
        if self._stop.is_available():
            self._stop.call(srv.Trigger.Request())
        return srv.Trigger.Response(success=True, message="stopped")

    def _halt(self, why: Outcome, *, finish: bool) -> None:
        """Stop what is being done, then end all skills; a loop may still finish."""
        loop = isinstance(self._stack.frames[0], Rounds)
        if self._ending is not None:
            finish = finish and self._ending[1]
        self._ending = (why, finish and loop)
        self._doer.cancel(why)

    # -- going on ------------------------------------------------------------------------------------------------------
    def now_of(self) -> Now:
        """What a skill knows when it is asked."""
        return Now(
            self.config.skills,
            self._memory,
            self._body,
            self._joints,
            self._doer.holding,
            self._shift,
            self._efforts,
            self.now_ns,
        )

    def _begin(self, skill: Skill) -> None:
        self._carry_on(self._stack.begin(skill, self.now_of()))

    def came(self, outcome: Outcome) -> None:
        """What was asked for has ended."""
        if self._ending is None:
            self._carry_on(self._stack.feed(self.now_of(), outcome))
            return
        (why, finish), self._ending = self._ending, None
        ended = self._stack.abandon(why.cause, why.text)
        self._tell()
        if finish:
            self._begin(self.finish(why))
        else:
            self._over(ended)

    def _carry_on(self, said: Ask | Outcome) -> None:
        """Do what is asked for, and tell what was done at once."""
        self._tell()
        while not isinstance(said, Outcome):
            at_once = self._doer.start(said)
            if at_once is None:
                return
            said = self._stack.feed(self.now_of(), at_once)
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
            success=outcome.done, view_empty=outcome.view_empty, error_code=outcome.cause.value, message=outcome.text,
            recoveries=outcome.recoveries, header=make_header(self.frame(self.groups.root), self.now_ns),
            positions=[point_msg(one) for one in places], load=np.array(self._memory.load, dtype=np.int8),
            placed=self._number,
        )  # fmt: skip
        if outcome.done:
            handle.succeed(result)
        elif handle.is_cancel_requested:
            handle.set_canceled(result, outcome.text)
        else:
            handle.abort(result, outcome.text, outcome.cause.value)

    def _tick(self) -> None:
        if self.config.loop >= 0 and not self._started and self.now >= self.config.start - 1e-9:
            self._started = True
            if not self._stack.busy:
                self._begin(self.make("loop", Wish(objects=self.config.loop)))
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
        known = self.groups.group(self.config.group or None).gripper
        names = self.groups.gripper(known).joints if known is not None else ()
        sliding = [j for j in self.groups.model.joints if j.name in names and j.type == "prismatic"]
        return {joint.name: float(joint.axes[0].xyz[1]) / len(sliding) for joint in sliding}

    # -- telling -------------------------------------------------------------------------------------------------------
    def _tell(self) -> None:
        for event in self._stack.events:
            self._publish(event)
        self._stack.events.clear()
        frames = self._stack.frames
        if frames and isinstance(frames[0], Rounds):
            self._tell_loop(frames[0], frames)

    def _publish(self, event: Event) -> None:
        outcome, at = event.outcome, event.outcome.position
        ended = event.kind == "finished"
        self._events.publish(
            msg.SkillEvent(
                header=make_header(self.frame(self.groups.root), self.now_ns), skill=event.skill, id=event.number,
                parent_id=event.of, event=event.kind, phase=event.phase, success=ended and outcome.done,
                view_empty=outcome.view_empty, error_code=outcome.cause.value, message=outcome.text, bay=outcome.bay,
                has_position=at is not None, position=point_msg(at),
            )
        )  # fmt: skip
        if event.kind == "recovered":
            self.log.info(f"{event.skill}: {outcome.cause.value}: {outcome.text}")
        elif ended and not event.of and not outcome.done and outcome.cause not in ENDED:
            self.log.warn(f"{event.skill} was not done: {outcome.cause.value}: {outcome.text}")
        if self._handle is not None and event.kind in ("started", "phase"):
            self._handle.publish_feedback(action.RunSkill.Feedback(skill=event.skill, phase=event.phase))

    def _tell_loop(self, loop: Rounds, frames: list[Skill]) -> None:
        self._number = loop.placed
        doing = frames[1].name if len(frames) > 1 else {"resting": "rest", "ready": "wait"}.get(loop.phase, "wait")
        load = tuple(self._memory.load)
        told = (doing, self._memory.at, loop.order, load, loop.picked, loop.placed, self._memory.recoveries, loop.text)
        if told == self._told:
            return
        self._told = told
        self._status.publish(
            msg.LoopStatus(
                header=make_header(self.frame(self.groups.root), self.now_ns), action=doing, place=self._memory.at,
                order=loop.order, load=np.array(load, dtype=np.int8), picked=loop.picked, placed=loop.placed,
                recoveries=self._memory.recoveries, message=loop.text,
            )
        )  # fmt: skip

    # -- state ---------------------------------------------------------------------------------------------------------
    def _on_restored(self, name: str, handle: GoalHandle) -> None:
        handle.on_cancel = self._on_cancel
        self._up[handle.id.hex()] = handle

    def save_state(self) -> dict[str, Any]:
        """State as plain data, with all skills under way."""
        ids = [None if one is None else one.id.hex() for one in (self._handle, self._waiting)]
        return super().save_state() | {
            "memory": packed(self._memory), "stack": [packed(one) for one in self._stack.frames],
            "doer": self._doer.save_state(), "goals": ids,
        }  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._up.clear()
        super().load_state(state)
        self._memory = Memory(**copy.deepcopy(state["memory"]))
        self._stack.frames = [unpacked(one) for one in state["stack"]]
        self._doer.load_state(state["doer"])
        self._handle, self._waiting = (None if one is None else self._up[one] for one in state["goals"])


def _wish(goal: Any) -> Wish:
    at = (goal.position.x, goal.position.y, goal.position.z) if goal.has_position else None
    return Wish(
        str(goal.polarity), str(goal.mode), int(goal.num_images), str(goal.field), int(goal.bay), at, int(goal.objects)
    )
