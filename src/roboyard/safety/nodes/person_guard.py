"""The person guard's node: between a planner and an arm's joints, it sets the pace by where people are."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import astuple
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import STATE_RATE, Node, resource
from roboyard.config import Config, parameter
from roboyard.control import JointBounds, JointRates, Trajectory
from roboyard.control.nodes.trajectory_messages import read_trajectory
from roboyard.description import Model
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics import ChainDynamics, build_chain
from roboyard.messages import msg
from roboyard.messages.convert import person_capsules_from_msg
from roboyard.messages.convert.poses import make_header, vector_to_array
from roboyard.messages.time import is_in_future, to_nanoseconds, to_seconds
from roboyard.safety.allowance import going_on
from roboyard.safety.capsules import LinkCapsules, placed
from roboyard.safety.nearness import BodyCapsules
from roboyard.safety.person_guard import GuardConfig, Mode, Motion, PersonGuard, Verdict
from roboyard.safety.separation import SeparationRules

_NEVER = -(10**18)
_LASTS_NS = 200_000_000
"""What is wanted by hand, and the switch of who guides, hold so long without another word [ns]."""
_CHANGE = 1e-3
"""Paces that differ by less are not told anew."""


class PersonGuardNodeConfig(Config):
    """Configuration of `PersonGuardNode`."""

    guard: GuardConfig = parameter(factory=GuardConfig, flatten="", doc="Zones, distances and restart of the guard.")
    rules: SeparationRules = parameter(factory=SeparationRules, doc="Rules of the protective separation distance.")

    mode: str = parameter(
        "ssm", choices=tuple(mode.value for mode in Mode), runtime=True, doc="Mode of collaboration of ISO/TS 15066."
    )
    people: tuple[str, ...] = parameter((), doc="People whose true bodies the guard sees.")
    tracked_topic: str = parameter("", doc="Topic of the people that sensors see; empty: none.")
    joints: tuple[str, ...] = parameter((), doc="Joints of the arm.")
    base: str = parameter("base_link", doc="Link on which the arm stands.")
    tip: str = parameter("tool0", doc="Link at the end of the arm.")
    place: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of the robot in the world.")
    controller: str = parameter("arm", doc="Node that moves the joints along trajectories.")
    servo: str = parameter("servo", doc="Node that drives the joints by hand.")
    guiding: str = parameter("hand_guiding", doc="Node of the hand guiding.")
    payload: float = parameter(0.0, unit="kg", low=0.0, high=1e3, doc="Mass that the arm carries.")
    braking: float = parameter(0.8, low=0.01, high=1.0, doc="Share of the joints' accelerations that a stop reaches.")
    latency: float = parameter(0.0, unit="s", low=0.0, high=5.0, doc="Latency of the measured people.")
    rate: float = parameter(25.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the judgements.")
    source_timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, runtime=True, doc="Silence of a source after which the arm stops."
    )
    handover_limit: float = parameter(20.0, unit="s", low=0.0, high=1e4, doc="Longest hand-over.")


class PersonGuardNode(Node[PersonGuardNodeConfig]):
    """Slows an arm down, and stops it, by how near people are and how fast both move.

    in: joint_states (sensor_msgs/JointState); of who moves the arm ``controller``/controller_state and
        ``controller``/plan, with which it looks ahead, or ``servo``/wanted (control_msgs/JointJog); of each of
        ``people`` the truth /truth/<name>/body (roboyard_msgs/PersonBody), seen ``latency`` later; or ``tracked_topic``
        (roboyard_msgs/TrackedPeople) of sensors; handover (std_msgs/Bool): whether somebody takes or gives a thing by
        intention; ``hand_guiding``/enable (std_msgs/Bool): the switch of who guides the arm by hand, told again and
        again
    out: ``controller``/speed_scaling (std_msgs/Float64), ``servo``/allowed (std_msgs/Float64) as often as it judges
        while something is wanted, ~state (roboyard_msgs/CollaborativeSafetyState, latched), /diagnostics

    Modes, see `Mode`: off, zones, ssm, pfl; they may be changed while it runs.  During a hand-over contact limits hold
    instead of the separation, and while somebody guides it for them alone.  A new plan, and a new want, are judged at
    once.  What is silent for ``source_timeout`` stops the arm.
    """

    description: Model = resource(Model)
    rates: JointRates = resource(JointRates, make=JointRates)

    state_fields = ("_heard", "_stops", "_told_pace", "_told_ns", "_handover_ns", "_guided_ns", "_q", "_velocity",
              "_place_on_plan", "_wanted", "_wanted_ns")  # fmt: skip

    def setup(self) -> None:
        """Connect."""
        where = f"{self.full_name}, parameter"
        if not self.config.joints:
            raise ConfigError("no joints", location=f"{where} 'joints'", valid="names of the arm's")
        self._check_sight(Mode(self.config.mode))
        if len(self.config.place) not in (0, 3, 6):
            raise ConfigError(f"{len(self.config.place)} numbers", location=f"{where} 'place'", valid="3 or 6")
        chain = build_chain(self.description, self.config.base, self.config.tip, joints=self.config.joints)
        bounds = JointBounds.of(self.description, self.config.joints, self.rates)
        moved = float(ChainDynamics.from_model(self.description, chain).masses.mass[1:].sum())
        self._deceleration = self.config.braking * bounds.acceleration
        self._guard = PersonGuard(
            chain, LinkCapsules.of(self.description, chain), self._deceleration, 0.5 * moved + self.config.payload,
            Mode(self.config.mode), self.config.guard, self.config.rules,
        )  # fmt: skip
        numbers = [*self.config.place, *[0.0] * (6 - len(self.config.place))]
        T_world_root = SE3.from_xyz_rpy(numbers[:3], numbers[3:])
        self._T_base_world = (T_world_root @ self.description.link(self.config.base).T_model_link).inverse()
        self._seen: dict[str, deque[tuple[int, BodyCapsules]]] = {name: deque() for name in self.config.people}
        self._heard: dict[str, int] = {}
        self._names: list[str] = []  # of the message of joints before, and where the arm's are in it
        self._rows: list[int] = []
        self._q: Array | None = None
        self._velocity = np.zeros(len(self.config.joints))
        self._plan: Trajectory | None = None
        self._plan_message: Any = None
        self._place_on_plan = 0.0
        self._wanted = np.zeros(len(self.config.joints))
        self._handover_ns = self._guided_ns = self._wanted_ns = _NEVER
        self._stops, self._told_pace, self._told_ns = 0, -1.0, _NEVER
        self._began_ns = self.now_ns
        self._verdict = Verdict(1.0)
        self._scaling = self.publisher(f"{self.config.controller}/speed_scaling", msg.Float64)
        self._allowed = self.publisher(f"{self.config.servo}/allowed", msg.Float64)
        self._state = self.publisher("~state", msg.CollaborativeSafetyState, latched=True)
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self.subscribe(f"{self.config.controller}/plan", msg.JointTrajectory, self._on_plan)
        state = msg.JointTrajectoryControllerState
        self.subscribe(f"{self.config.controller}/controller_state", state, self._on_controller)
        self.subscribe(f"{self.config.servo}/wanted", msg.JointJog, self._on_wanted)
        self.subscribe("handover", msg.Bool, self._on_handover)
        self.subscribe(f"{self.config.guiding}/enable", msg.Bool, self._on_guiding)
        for name in self.config.people:
            self.subscribe(f"/truth/{name}/body", msg.PersonBody, partial(self._on_body, name))
        if self.config.tracked_topic:
            self._seen[self.config.tracked_topic] = deque()
            self.subscribe(self.config.tracked_topic, msg.TrackedPeople, self._on_tracked)
        self.timer(rate=self.config.rate, callback=self._tick)

    def on_config_change(self, old: PersonGuardNodeConfig, new: PersonGuardNodeConfig) -> None:
        """Apply another mode at once; raises ConfigError where the guard has no source of people."""
        if new.mode != old.mode:
            self._check_sight(Mode(new.mode))
            self._guard.mode = Mode(new.mode)

    def _check_sight(self, mode: Mode) -> None:
        if mode is not Mode.OFF and not (self.config.people or self.config.tracked_topic):
            where = f"{self.full_name}, mode {mode.value}"
            raise ConfigError("nobody to look for", location=where, valid="'people' or 'tracked_topic', or mode off")

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        seen = {source: [(ns, astuple(one)) for ns, one in kept] for source, kept in self._seen.items()}
        return super().save_state() | {
            "guard": self._guard.save_state(),
            "plan": self._plan_message,
            "seen": seen,
            "verdict": astuple(self._verdict),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._guard.load_state(state["guard"])
        self._guard.mode = Mode(self.config.mode)
        self._verdict = Verdict(*state["verdict"])
        place = self._place_on_plan
        if state["plan"] is not None:
            self._take_plan(state["plan"])
        self._place_on_plan = place
        for source, kept in state["seen"].items():
            self._seen[source] = deque((ns, BodyCapsules(*one)) for ns, one in kept)

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _on_joints(self, message: Any) -> None:
        if message.name != self._names:
            self._names = list(message.name)
            self._rows = [self._names.index(name) for name in self.config.joints if name in self._names]
        if len(self._rows) < len(self.config.joints):
            return
        q, velocity = np.asarray(message.position)[self._rows], np.asarray(message.velocity)[self._rows]
        if np.isfinite(q).all() and np.isfinite(velocity).all():
            self._q, self._velocity = q, velocity
            self._heard["joint_states"] = self.now_ns

    def _on_plan(self, message: Any) -> None:
        self._take_plan(message)
        if self._plan is not None:
            self._judge()

    def _take_plan(self, message: Any) -> None:
        self._plan, self._plan_message, self._place_on_plan = None, message, 0.0
        if message.points:
            try:
                self._plan = Trajectory(
                    read_trajectory(message, self.config.joints, np.zeros(len(self.config.joints)), False)
                )
            except InputError as error:
                self.log.error(f"a plan that makes no sense: {error}", throttle=5.0)

    def _on_controller(self, message: Any) -> None:
        time = message.reference.time_from_start
        self._place_on_plan = to_seconds(time)
        self._heard[f"{self.config.controller}/controller_state"] = self.now_ns

    def _on_wanted(self, message: Any) -> None:
        speeds = dict(zip(message.joint_names, message.velocities, strict=False))
        wanted = np.array([speeds.get(name, 0.0) for name in self.config.joints])
        fresh = self._drives()
        if np.isfinite(wanted).all():
            self._wanted, self._wanted_ns = wanted, self.now_ns
            if not fresh:
                self._judge()

    def _drives(self) -> bool:
        """Whether somebody drives the arm by hand."""
        return self.now_ns - self._wanted_ns <= _LASTS_NS

    def _on_guiding(self, message: Any) -> None:
        self._guided_ns = self.now_ns if message.data else _NEVER

    def _on_handover(self, message: Any) -> None:
        self._handover_ns = self.now_ns if message.data else _NEVER

    def _on_body(self, name: str, message: Any) -> None:
        try:
            parts, ends, radii = person_capsules_from_msg(message)
        except InputError as error:
            self.log.error(f"left out {name}'s body: {error}", throttle=5.0)
            return
        time_ns = to_nanoseconds(message.header.stamp)
        if self._is_from_future(f"{name}'s body", time_ns):
            return
        self._see(name, time_ns, (name,) * len(parts), parts, ends, radii)

    def _on_tracked(self, message: Any) -> None:
        time_ns = to_nanoseconds(message.header.stamp)
        if self._is_from_future("tracked people", time_ns):
            return
        wider = max(float(message.uncertainty) - self.config.rules.person_uncertainty, 0.0)
        found = []
        try:
            for body in message.people:
                parts, ends, radii = person_capsules_from_msg(body)
                velocity = np.array([vector_to_array(one) for one in body.velocities]).reshape(-1, 1, 3)
                moving = np.repeat(velocity @ self._T_base_world.rotation_matrix().T, 2, axis=1)
                line = placed(ends, self._T_base_world)
                found.append(BodyCapsules((body.name,) * len(parts), parts, line, radii + wider, moving))
        except InputError as error:
            self.log.error(f"left out tracked people: {error}", throttle=5.0)
            return
        self._remember(self.config.tracked_topic, time_ns, BodyCapsules.joined(found))

    def _is_from_future(self, source: str, time_ns: int) -> bool:
        """Whether a measurement is stamped in the future; it would be used as the newest one for too long."""
        is_future = is_in_future(time_ns, self.now_ns)
        if is_future:
            self.log.error(f"left out {source}: stamped in the future", throttle=5.0)
        return is_future

    def _see(
        self, source: str, time_ns: int, people: Sequence[str], parts: tuple[str, ...], ends: Array, radii: Array
    ) -> None:
        """Keep a body with how fast the ends of its parts have become."""
        line = placed(ends, self._T_base_world)
        velocities = np.zeros_like(line)
        if self._seen[source]:
            before_ns, before = self._seen[source][-1]
            if before.parts == parts and time_ns > before_ns:
                velocities = (line - before.ends) / ((time_ns - before_ns) * 1e-9)
        self._remember(source, time_ns, BodyCapsules(tuple(people), parts, line, radii, velocities))

    def _remember(self, source: str, time_ns: int, bodies: BodyCapsules) -> None:
        seen = self._seen[source]
        seen.append((time_ns, bodies))
        while len(seen) > 1 and seen[1][0] <= self.now_ns - round(self.config.latency * 1e9):
            seen.popleft()

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        self._judge()

    def _judge(self) -> None:
        due_ns = self.now_ns - round(self.config.latency * 1e9)
        people, times = [], []
        for source, seen in self._seen.items():
            while len(seen) > 1 and seen[1][0] <= due_ns:
                seen.popleft()
            if seen and seen[0][0] <= due_ns:
                self._heard[source] = seen[0][0] + round(self.config.latency * 1e9)
                people.append(seen[0][1])
                times.append(seen[0][0])
        silent = self._silent()
        before = self._verdict
        if self._guard.mode is not Mode.OFF and silent:
            self._verdict = self._guard.stop(self.now_ns, silent)
        elif self._q is not None and times:
            planned = None if self._plan is None else self._ahead
            driven = going_on(self._q, self._wanted) if self._drives() else None
            motion = Motion(self._q, self._velocity, driven or planned)
            age = (self.now_ns - min(times)) * 1e-9
            handover = 0 <= self.now_ns - self._handover_ns <= self.config.handover_limit * 1e9
            guided = self.now_ns - self._guided_ns <= _LASTS_NS
            bodies = BodyCapsules.joined(people)
            self._verdict = self._guard.judge(self.now_ns, motion, bodies, age, handover=handover, guided=guided)
        self._stops += self._verdict.stopped and not before.stopped
        self._tell(self._verdict, changed=self._verdict.stopped != before.stopped)

    def _ahead(self, times: Array) -> tuple[Array, Array]:
        plan = self._plan
        if plan is None:
            raise InputError("no plan")
        return plan.ahead(self._place_on_plan + times)

    def _silent(self) -> str:
        wanted = ["joint_states", *self._seen]
        if not self._drives():  # a servo may do without a controller of trajectories
            wanted.insert(1, f"{self.config.controller}/controller_state")
        late = {name: (self.now_ns - self._heard.get(name, self._began_ns)) * 1e-9 for name in wanted}
        return "; ".join(
            f"{name} silent for {math.floor(seconds * 10.0) / 10.0:.1f} s"
            for name, seconds in late.items()
            if seconds > self.config.source_timeout
        )

    def _tell(self, verdict: Verdict, *, changed: bool) -> None:
        if abs(verdict.pace - self._told_pace) > _CHANGE or (verdict.pace != self._told_pace and changed):
            self._told_pace = verdict.pace
            self._scaling.publish(msg.Float64(data=verdict.pace))
        if self._drives():
            self._allowed.publish(msg.Float64(data=verdict.pace))
        level, text = ("ok", "full pace") if verdict.pace >= 1.0 else ("warn", f"pace {verdict.pace:.2f}")
        if verdict.stopped:
            level, text = "warn", "protective stop"
        if "silent" in verdict.reason:
            level = "error"
        self.report_health(level, f"{text}: {verdict.reason}" if verdict.reason else text, mode=self.config.mode)  # type: ignore[arg-type]
        if changed and verdict.stopped:
            self.log.warn(f"protective stop: {verdict.reason}", throttle=1.0)
        if not changed and self.now_ns - self._told_ns < 1e9 / STATE_RATE - 1:
            return
        self._told_ns = self.now_ns
        rules = self.config.rules
        self._state.publish(
            msg.CollaborativeSafetyState(
                header=make_header("world", self.now_ns),
                mode=self.config.mode,
                is_stopped=verdict.stopped,
                stop_count=self._stops,
                speed_scaling=verdict.pace,
                min_separation=verdict.separation,
                protective_distance=verdict.protective,
                robot_link=verdict.part,
                person=verdict.person,
                body_part=verdict.body_part,
                reason=verdict.reason,
                reaction_time=rules.reaction_time,
                intrusion_distance=rules.intrusion,
                person_uncertainty=rules.person_uncertainty,
                robot_uncertainty=rules.robot_uncertainty,
                person_speed=rules.person_speed,
                deceleration=self._deceleration.copy(),
            )
        )
