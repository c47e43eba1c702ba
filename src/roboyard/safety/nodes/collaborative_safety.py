"""The collaborative safety node: scales the speed of an arm by the positions of people."""

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
from roboyard.control import JointAccelerationLimits, JointGroupLimits, Trajectory
from roboyard.control.nodes.trajectory_messages import read_trajectory
from roboyard.description import Model
from roboyard.errors import ConfigError, InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics import ChainDynamics, build_chain
from roboyard.messages import msg
from roboyard.messages.convert import person_capsules_from_msg
from roboyard.messages.convert.poses import make_header, vector_to_array
from roboyard.messages.time import is_in_future, to_nanoseconds, to_seconds
from roboyard.safety.collaborative.capsules import LinkCapsules, PersonCapsules, transform_ends
from roboyard.safety.collaborative.monitor import (
    CollaborativeMode,
    CollaborativeSafetyConfig,
    CollaborativeSafetyMonitor,
    PlannedMotion,
    SpeedScalingDecision,
    extrapolate_motion,
)
from roboyard.safety.collaborative.separation import SeparationParameters
from roboyard.safety.nodes.people_tracker import read_robot_pose

_NEVER = -(10**18)
_INPUT_TIMEOUT_NS = 200_000_000
"""Servo commands and the enabling switch of hand guiding hold so long without another message [ns]."""
_MIN_SCALING_CHANGE = 1e-3
"""Speed scalings that differ by less are not published again."""


class CollaborativeSafetyNodeConfig(Config):
    """Configuration of `CollaborativeSafetyNode`."""

    monitor: CollaborativeSafetyConfig = parameter(
        factory=CollaborativeSafetyConfig, flatten="", doc="Zones, distances and restart of the monitor."
    )
    separation: SeparationParameters = parameter(
        factory=SeparationParameters, doc="Parameters of the protective separation distance."
    )

    mode: str = parameter(
        "ssm",
        choices=tuple(mode.value for mode in CollaborativeMode),
        runtime=True,
        doc="Mode of collaborative operation (ISO/TS 15066).",
    )
    people: tuple[str, ...] = parameter((), doc="Simulated people whose true bodies are used, by name.")
    tracked_topic: str = parameter("", doc="Topic of people that sensors track; empty: none.")
    joints: tuple[str, ...] = parameter((), doc="Joints of the arm.")
    base: str = parameter("base_link", doc="Link at the base of the arm.")
    tip: str = parameter("tool0", doc="Link at the end of the arm.")
    robot_pose: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of the robot in the world.")
    controller_node: str = parameter("arm", doc="Node that moves the joints along trajectories.")
    servo_node: str = parameter("servo", doc="Servo node, which moves the joints by teleoperation or hand guiding.")
    guiding_node: str = parameter("hand_guiding", doc="Hand guiding node.")
    payload: float = parameter(0.0, unit="kg", low=0.0, high=1e3, doc="Mass that the arm carries.")
    braking_fraction: float = parameter(
        0.8, low=0.01, high=1.0, doc="Fraction of the joints' acceleration limits that a stop reaches."
    )
    latency: float = parameter(0.0, unit="s", low=0.0, high=5.0, doc="Latency of the measured people.")
    rate: float = parameter(25.0, unit="Hz", low=1.0, high=1000.0, doc="Rate at which the speed scaling is computed.")
    source_timeout: float = parameter(
        0.5,
        unit="s",
        low=0.01,
        high=60.0,
        runtime=True,
        doc="Time without a message of a source after which the arm stops.",
    )
    handover_limit: float = parameter(20.0, unit="s", low=0.0, high=1e4, doc="Longest duration of a handover.")


class CollaborativeSafetyNode(Node[CollaborativeSafetyNodeConfig]):
    """Slows down and stops an arm by the distances of people and by the speeds of both.

    in: joint_states (sensor_msgs/JointState); the planned motion: ``controller_node``/controller_state and
        ``controller_node``/plan, or ``servo_node``/wanted (control_msgs/JointJog); people: for each of ``people`` the
        truth /truth/<name>/body (roboyard_msgs/PersonBody), used ``latency`` later, or ``tracked_topic``
        (roboyard_msgs/TrackedPeople) of sensors; handover (std_msgs/Bool): whether a person takes or gives an object by
        intention; ``guiding_node``/enable (std_msgs/Bool): the enabling switch of hand guiding, published periodically
    out: ``controller_node``/speed_scaling (std_msgs/Float64); ``servo_node``/allowed_speed_fraction
        (std_msgs/Float64) in every cycle
        while the servo node moves the arm; ~state (roboyard_msgs/CollaborativeSafetyState, latched); /diagnostics

    The modes are those of `CollaborativeMode`: off, zones, ssm, pfl; ``mode`` may be changed while the node runs.
    During a handover the contact limits apply instead of the separation distance; during hand guiding they apply to the
    guiding person alone. The node computes the speed scaling again as soon as a new plan or a new servo motion begins.
    A source without messages for ``source_timeout`` stops the arm.
    """

    description: Model = resource(Model)
    acceleration_limits: JointAccelerationLimits = resource(JointAccelerationLimits, make=JointAccelerationLimits)

    state_fields = (
        "_received_ns",
        "_stop_count",
        "_published_scaling",
        "_published_ns",
        "_handover_ns",
        "_guided_ns",
        "_q",
        "_velocity",
        "_path_time",
        "_servo_velocity",
        "_servo_ns",
    )

    def setup(self) -> None:
        """Connect."""
        location = f"{self.full_name}, parameter"
        if not self.config.joints:
            raise ConfigError("no joints", location=f"{location} 'joints'", valid="names of the arm's")
        self._check_people_source(CollaborativeMode(self.config.mode))
        chain = build_chain(self.description, self.config.base, self.config.tip, joints=self.config.joints)
        limits = JointGroupLimits.from_model(self.description, self.config.joints, self.acceleration_limits)
        moving_mass = float(ChainDynamics.from_model(self.description, chain).masses.mass[1:].sum())
        self._deceleration = self.config.braking_fraction * limits.acceleration
        self._monitor = CollaborativeSafetyMonitor(
            chain,
            LinkCapsules.from_model(self.description, chain),
            self._deceleration,
            0.5 * moving_mass + self.config.payload,
            CollaborativeMode(self.config.mode),
            self.config.monitor,
            self.config.separation,
        )
        T_world_root = read_robot_pose(self.config.robot_pose, self.full_name)
        self._T_base_world = (T_world_root @ self.description.link(self.config.base).T_model_link).inverse()
        self._observations: dict[str, deque[tuple[int, PersonCapsules]]] = {
            name: deque() for name in self.config.people
        }
        self._received_ns: dict[str, int] = {}
        self._message_joints: list[str] = []  # of the message of joints before, and where the arm's are in it
        self._joint_indices: list[int] = []
        self._q: Array | None = None
        self._velocity = np.zeros(len(self.config.joints))
        self._plan: Trajectory | None = None
        self._plan_message: Any = None
        self._path_time = 0.0
        self._servo_velocity = np.zeros(len(self.config.joints))
        self._handover_ns = self._guided_ns = self._servo_ns = _NEVER
        self._stop_count, self._published_scaling, self._published_ns = 0, -1.0, _NEVER
        self._start_ns = self.now_ns
        self._decision = SpeedScalingDecision(1.0)
        self._scaling_publisher = self.publisher(f"{self.config.controller_node}/speed_scaling", msg.Float64)
        self._servo_scaling_publisher = self.publisher(f"{self.config.servo_node}/allowed_speed_fraction", msg.Float64)
        self._state = self.publisher("~state", msg.CollaborativeSafetyState, latched=True)
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self.subscribe(f"{self.config.controller_node}/plan", msg.JointTrajectory, self._on_plan)
        state = msg.JointTrajectoryControllerState
        self.subscribe(f"{self.config.controller_node}/controller_state", state, self._on_controller)
        self.subscribe(f"{self.config.servo_node}/desired_joint_velocity", msg.JointJog, self._on_servo_velocity)
        self.subscribe("handover", msg.Bool, self._on_handover)
        self.subscribe(f"{self.config.guiding_node}/enable", msg.Bool, self._on_guiding)
        for name in self.config.people:
            self.subscribe(f"/truth/{name}/body", msg.PersonBody, partial(self._on_body, name))
        if self.config.tracked_topic:
            self._observations[self.config.tracked_topic] = deque()
            self.subscribe(self.config.tracked_topic, msg.TrackedPeople, self._on_tracked)
        self.timer(rate=self.config.rate, callback=self._update)

    def on_config_change(self, old: CollaborativeSafetyNodeConfig, new: CollaborativeSafetyNodeConfig) -> None:
        """Apply another mode at once; raises ConfigError if the mode needs a source of people and there is none."""
        if new.mode != old.mode:
            self._check_people_source(CollaborativeMode(new.mode))
            self._monitor.mode = CollaborativeMode(new.mode)

    def _check_people_source(self, mode: CollaborativeMode) -> None:
        if mode is not CollaborativeMode.OFF and not (self.config.people or self.config.tracked_topic):
            raise ConfigError(
                f"no source of people for mode {mode.value}",
                location=self.full_name,
                valid="parameter 'people' or 'tracked_topic', or mode off",
            )

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        observations = {
            source: [(ns, astuple(capsules)) for ns, capsules in samples]
            for source, samples in self._observations.items()
        }
        return super().save_state() | {
            "guard": self._monitor.save_state(),
            "plan": self._plan_message,
            "seen": observations,
            "verdict": astuple(self._decision),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._monitor.load_state(state["guard"])
        self._monitor.mode = CollaborativeMode(self.config.mode)
        self._decision = SpeedScalingDecision(*state["verdict"])
        path_time = self._path_time
        if state["plan"] is not None:
            self._set_plan(state["plan"])
        self._path_time = path_time
        for source, samples in state["seen"].items():
            self._observations[source] = deque((ns, PersonCapsules(*capsules)) for ns, capsules in samples)

    # -- inputs --------------------------------------------------------------------------------------------------------
    def _on_joints(self, message: Any) -> None:
        if message.name != self._message_joints:
            self._message_joints = list(message.name)
            self._joint_indices = [
                self._message_joints.index(name) for name in self.config.joints if name in self._message_joints
            ]
        if len(self._joint_indices) < len(self.config.joints):
            return
        q, velocity = (
            np.asarray(message.position)[self._joint_indices],
            np.asarray(message.velocity)[self._joint_indices],
        )
        if np.isfinite(q).all() and np.isfinite(velocity).all():
            self._q, self._velocity = q, velocity
            self._received_ns["joint_states"] = self.now_ns

    def _on_plan(self, message: Any) -> None:
        self._set_plan(message)
        if self._plan is not None:
            self._evaluate()

    def _set_plan(self, message: Any) -> None:
        self._plan, self._plan_message, self._path_time = None, message, 0.0
        if message.points:
            try:
                self._plan = Trajectory(
                    read_trajectory(message, self.config.joints, np.zeros(len(self.config.joints)), False)
                )
            except InputError as error:
                self.log.error(f"invalid plan: {error}", throttle=5.0)

    def _on_controller(self, message: Any) -> None:
        time = message.reference.time_from_start
        self._path_time = to_seconds(time)
        self._received_ns[f"{self.config.controller_node}/controller_state"] = self.now_ns

    def _on_servo_velocity(self, message: Any) -> None:
        speeds = dict(zip(message.joint_names, message.velocities, strict=False))
        velocity = np.array([speeds.get(name, 0.0) for name in self.config.joints])
        was_servo_active = self._is_servo_active()
        if np.isfinite(velocity).all():
            self._servo_velocity, self._servo_ns = velocity, self.now_ns
            if not was_servo_active:
                self._evaluate()

    def _is_servo_active(self) -> bool:
        """Return whether the servo node drives the arm."""
        return self.now_ns - self._servo_ns <= _INPUT_TIMEOUT_NS

    def _on_guiding(self, message: Any) -> None:
        self._guided_ns = self.now_ns if message.data else _NEVER

    def _on_handover(self, message: Any) -> None:
        self._handover_ns = self.now_ns if message.data else _NEVER

    def _on_body(self, name: str, message: Any) -> None:
        try:
            parts, ends, radii = person_capsules_from_msg(message)
        except InputError as error:
            self.log.error(f"ignored the body of {name}: {error}", throttle=5.0)
            return
        time_ns = to_nanoseconds(message.header.stamp)
        if self._is_from_future(f"the body of {name}", time_ns):
            return
        self._add_body(name, time_ns, (name,) * len(parts), parts, ends, radii)

    def _on_tracked(self, message: Any) -> None:
        time_ns = to_nanoseconds(message.header.stamp)
        if self._is_from_future("tracked people", time_ns):
            return
        added_radius = max(float(message.uncertainty) - self.config.separation.person_uncertainty, 0.0)
        people = []
        try:
            for body in message.people:
                parts, ends, radii = person_capsules_from_msg(body)
                velocity = np.array([vector_to_array(vector) for vector in body.velocities]).reshape(-1, 1, 3)
                end_velocities = np.repeat(velocity @ self._T_base_world.rotation_matrix().T, 2, axis=1)
                segments = transform_ends(ends, self._T_base_world)
                people.append(
                    PersonCapsules((body.name,) * len(parts), parts, segments, radii + added_radius, end_velocities)
                )
        except InputError as error:
            self.log.error(f"ignored tracked people: {error}", throttle=5.0)
            return
        self._add_observation(self.config.tracked_topic, time_ns, PersonCapsules.concatenate(people))

    def _is_from_future(self, source: str, time_ns: int) -> bool:
        """Whether a measurement is stamped in the future; it would be used as the newest one for too long."""
        is_future = is_in_future(time_ns, self.now_ns)
        if is_future:
            self.log.error(f"ignored {source}: stamped in the future", throttle=5.0)
        return is_future

    def _add_body(
        self, source: str, time_ns: int, people: Sequence[str], parts: tuple[str, ...], ends: Array, radii: Array
    ) -> None:
        """Store a body with the velocities of its capsules' ends since the previous one."""
        segments = transform_ends(ends, self._T_base_world)
        velocities = np.zeros_like(segments)
        if self._observations[source]:
            previous_ns, previous = self._observations[source][-1]
            if previous.parts == parts and time_ns > previous_ns:
                velocities = (segments - previous.ends) / ((time_ns - previous_ns) * 1e-9)
        self._add_observation(source, time_ns, PersonCapsules(tuple(people), parts, segments, radii, velocities))

    def _add_observation(self, source: str, time_ns: int, bodies: PersonCapsules) -> None:
        observations = self._observations[source]
        observations.append((time_ns, bodies))
        while len(observations) > 1 and observations[1][0] <= self.now_ns - round(self.config.latency * 1e9):
            observations.popleft()

    # -- outputs -------------------------------------------------------------------------------------------------------
    def _update(self) -> None:
        self._evaluate()

    def _evaluate(self) -> None:
        due_ns = self.now_ns - round(self.config.latency * 1e9)
        people, times = [], []
        for source, observations in self._observations.items():
            while len(observations) > 1 and observations[1][0] <= due_ns:
                observations.popleft()
            if observations and observations[0][0] <= due_ns:
                self._received_ns[source] = observations[0][0] + round(self.config.latency * 1e9)
                people.append(observations[0][1])
                times.append(observations[0][0])
        silent = self._timeout_text()
        previous = self._decision
        if self._monitor.mode is not CollaborativeMode.OFF and silent:
            self._decision = self._monitor.stop(self.now_ns, silent)
        elif self._q is not None and times:
            predict_plan = None if self._plan is None else self._predict_plan
            predict_servo = extrapolate_motion(self._q, self._servo_velocity) if self._is_servo_active() else None
            motion = PlannedMotion(self._q, self._velocity, predict_servo or predict_plan)
            age = (self.now_ns - min(times)) * 1e-9
            is_handover = 0 <= self.now_ns - self._handover_ns <= self.config.handover_limit * 1e9
            is_hand_guided = self.now_ns - self._guided_ns <= _INPUT_TIMEOUT_NS
            bodies = PersonCapsules.concatenate(people)
            self._decision = self._monitor.update(
                self.now_ns, motion, bodies, age, is_handover=is_handover, is_hand_guided=is_hand_guided
            )
        self._stop_count += self._decision.is_stopped and not previous.is_stopped
        self._publish_decision(self._decision, has_changed=self._decision.is_stopped != previous.is_stopped)

    def _predict_plan(self, times: Array) -> tuple[Array, Array]:
        plan = self._plan
        if plan is None:
            raise InputError("no plan")
        return plan.lookahead(self._path_time + times)

    def _timeout_text(self) -> str:
        sources = ["joint_states", *self._observations]
        if not self._is_servo_active():  # a servo may do without a controller of trajectories
            sources.insert(1, f"{self.config.controller_node}/controller_state")
        message_ages = {name: (self.now_ns - self._received_ns.get(name, self._start_ns)) * 1e-9 for name in sources}
        return "; ".join(
            f"{name} silent for {math.floor(seconds * 10.0) / 10.0:.1f} s"
            for name, seconds in message_ages.items()
            if seconds > self.config.source_timeout
        )

    def _publish_decision(self, decision: SpeedScalingDecision, *, has_changed: bool) -> None:
        if abs(decision.speed_scaling - self._published_scaling) > _MIN_SCALING_CHANGE or (
            decision.speed_scaling != self._published_scaling and has_changed
        ):
            self._published_scaling = decision.speed_scaling
            self._scaling_publisher.publish(msg.Float64(data=decision.speed_scaling))
        if self._is_servo_active():
            self._servo_scaling_publisher.publish(msg.Float64(data=decision.speed_scaling))
        level, text = (
            ("ok", "full speed")
            if decision.speed_scaling >= 1.0
            else ("warn", f"speed scaling {decision.speed_scaling:.2f}")
        )
        if decision.is_stopped:
            level, text = "warn", "protective stop"
        if "silent" in decision.reason:
            level = "error"
        self.report_health(level, f"{text}: {decision.reason}" if decision.reason else text, mode=self.config.mode)  # type: ignore[arg-type]
        if has_changed and decision.is_stopped:
            self.log.warn(f"protective stop: {decision.reason}", throttle=1.0)
        if not has_changed and self.now_ns - self._published_ns < 1e9 / STATE_RATE - 1:
            return
        self._published_ns = self.now_ns
        separation = self.config.separation
        self._state.publish(
            msg.CollaborativeSafetyState(
                header=make_header("world", self.now_ns),
                mode=self.config.mode,
                is_stopped=decision.is_stopped,
                stop_count=self._stop_count,
                speed_scaling=decision.speed_scaling,
                min_separation=decision.min_separation,
                protective_distance=decision.protective_distance,
                robot_link=decision.robot_link,
                person=decision.person,
                body_part=decision.body_part,
                reason=decision.reason,
                reaction_time=separation.reaction_time,
                intrusion_distance=separation.intrusion_distance,
                person_uncertainty=separation.person_uncertainty,
                robot_uncertainty=separation.robot_uncertainty,
                person_speed=separation.person_speed,
                deceleration=self._deceleration.copy(),
            )
        )
