"""The gait node: from a commanded twist to set-points of all leg joints; messages of legged robots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Node, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.control.joint_claims import JointClaims
from roboyard.description.model import Model
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.constants import GRAVITY
from roboyard.hardware.interface import Hardware, JointCommand, check_command_mode, joint_indices
from roboyard.messages import msg, srv
from roboyard.messages.time import time_to_msg
from roboyard.walking.foot_movement import (
    Interpolation,
    load_movement,
    plan_lie_down,
    plan_return_to_stance,
    plan_stand_up,
    play_movement,
)
from roboyard.walking.gait import GAITS, Gait, make_gait
from roboyard.walking.gait_control import HeadingController, StallDetector, find_stalled_joint
from roboyard.walking.gait_generator import GaitGenerator, SteppingConfig, advance_feet, max_foot_speed
from roboyard.walking.leg import all_finite, foot_forward_kinematics, nearest_ik_solutions
from roboyard.walking.leg_odometry import LegOdometry, body_motion, remove_tilt
from roboyard.walking.legged_robot import LeggedRobot
from roboyard.walking.statics import LOAD_RAMP_TIME, compensate_joint_compliance, support_margin, tip_over_angle

_COVARIANCE = np.diag([1e-3, 1e-3, 1e-3, 1e-4, 1e-4, 1e-3]).reshape(36)
_COVARIANCE.setflags(write=False)


def roll_pitch_yaw(q: Any) -> tuple[float, float, float]:
    """Return roll, pitch and yaw [rad] of a geometry_msgs/Quaternion."""
    w, x, y, z = q.w, q.x, q.y, q.z
    return (
        math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y)),
        math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x)))),
        math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)),
    )


def contact_force(contacts: Any) -> float:
    """Return the contact force on a foot [N] from its gazebo_msgs/ContactsState: the sum over contacts, regardless of
    direction."""
    forces = [state.total_wrench.force for state in contacts.states]
    return sum(math.hypot(force.x, force.y, force.z) for force in forces)


def odometry_pose(odometry: LegOdometry) -> SE3:
    """Return T_odom_base."""
    return SE3.from_xyz_rpy((odometry.x, odometry.y, odometry.z), (*odometry.tilt, odometry.yaw))


def leg_odometry_to_msg(
    T_odom_base: SE3, body_twist: NDArray[np.float64], time_ns: int, odom_frame: str, base_frame: str
) -> Any:
    """Return the nav_msgs/Odometry of a pose and a twist (3,); its covariances are constants, not measured."""
    w, x, y, z = T_odom_base.quaternion
    vx, vy, yaw_rate = body_twist.tolist()
    position = msg.Point(x=T_odom_base.x, y=T_odom_base.y, z=T_odom_base.z)
    pose = msg.Pose(position=position, orientation=msg.Quaternion(w=w, x=x, y=y, z=z))
    twist = msg.Twist(linear=msg.Vector3(x=vx, y=vy), angular=msg.Vector3(z=yaw_rate))
    return msg.Odometry(
        header=msg.Header(stamp=time_to_msg(time_ns), frame_id=odom_frame),
        child_frame_id=base_frame,
        pose=msg.PoseWithCovariance(pose=pose, covariance=_COVARIANCE),
        twist=msg.TwistWithCovariance(twist=twist, covariance=_COVARIANCE),
    )


def gait_state_to_msg(
    time_ns: int,
    phase: str,
    gait: str,
    legs: Sequence[str],
    in_stance: NDArray[np.bool_],
    contacts: NDArray[np.bool_],
    feet: NDArray[np.float64],
    orientation: tuple[float, float, float] | None,
    twist: NDArray[np.float64],
) -> Any:
    """Return the roboyard_msgs/GaitState of feet (l, 3) in the body frame and the body's orientation [rad]; None:
    unknown."""
    vx, vy, yaw_rate = twist.tolist()
    roll, pitch = (0.0, 0.0) if orientation is None else orientation[:2]
    return msg.GaitState(
        header=msg.Header(stamp=time_to_msg(time_ns)),
        phase=phase,
        gait=gait,
        legs=list(legs),
        in_stance=in_stance.copy(),
        in_contact=contacts.copy(),
        margin=float(support_margin(feet, in_stance, 0.0, 0.0)),
        tilt=float(tip_over_angle(feet, in_stance, roll, pitch)),
        twist=msg.Twist(linear=msg.Vector3(x=vx, y=vy), angular=msg.Vector3(z=yaw_rate)),
    )


_WALKING_PHASE = "walking"


class LeggedRobotNodeConfig(Config):
    """Parameters that nodes of legged robots have in common."""

    resting_foot_height: float = parameter(
        -0.016, unit="m", doc="Height of the ground in the body's frame while the robot lies."
    )
    rate: float = parameter(50.0, unit="Hz", low=10.0, high=500.0, doc="Rate of the control loop.")
    state_rate: float = parameter(25.0, unit="Hz", low=1.0, high=500.0, doc="Rate of the published state.")
    foot_contact_prefix: str = parameter(
        "feet", doc="Namespace of the topics of the feet's contacts; empty: no contacts are used."
    )
    odom_frame: str = parameter("odom", doc="Frame in which the odometry starts.")
    base_frame: str = parameter("base_link", doc="Frame of the body.")


class GaitNodeConfig(LeggedRobotNodeConfig):
    """Configuration of `GaitNode`."""

    gait: str = parameter("tripod", choices=tuple(GAITS), doc="Order in which the feet rise.", runtime=True)
    duty_factor: float = parameter(
        0.0,
        low=0.0,
        high=0.95,
        doc="Share of the time that a foot is on the ground; 0: the gait's smallest.",
        runtime=True,
    )
    stepping: SteppingConfig = parameter(factory=SteppingConfig, flatten="", doc="Steps of the feet.")
    heading_gain: float = parameter(
        1.0, unit="1/s", low=0.0, high=100.0, doc="Gain of the control of the heading; 0: no control."
    )
    pose_speed: float = parameter(
        0.05, unit="m/s", low=1e-3, high=10.0, runtime=True,
        doc="Speed of the body between poses; the speed of turns in rad/s is four times as large.",
    )  # fmt: skip
    movement: str = parameter(
        "", runtime=True,
        doc="File of a movement, played after standing up and by ~play; relative to the folder of the start.",
    )  # fmt: skip
    interpolation: str = parameter(
        "cosine", choices=("cosine", "spline"), doc="Path of the feet between the steps of a movement.", runtime=True
    )
    initial_state: str = parameter("stand", choices=("stand", "rest"), doc="First action.")
    compensate_load: bool = parameter(
        True, runtime=True,
        doc="Add the deflection under load to the set-points of servos that have no integral term.",
    )  # fmt: skip
    command_timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="Age from which a command counts as standstill.", runtime=True
    )
    on_stall: str = parameter(
        "warn", choices=("warn", "stop"), runtime=True,
        doc="Reaction to a joint that stalls: a warning, or standstill until a command of zero.",
    )  # fmt: skip
    publish_tf: bool = parameter(True, doc="Publish the transform of the odometry.")


class GaitNode(Node[GaitNodeConfig]):
    """Makes a legged robot stand up, walk as commanded, take poses, play movements and lie down.

    in: cmd_vel_out (geometry_msgs/Twist: forward, left, yaw rate), body_pose (geometry_msgs/Pose, relative to the
    stance), imu (sensor_msgs/Imu), feet/<leg> (gazebo_msgs/ContactsState)
    out: positions to the hardware, odom (nav_msgs/Odometry), /tf odom_frame → base_frame, ~state
    (roboyard_msgs/GaitState)
    services: ~stand, ~lie_down, ~play (std_srvs/Trigger)

    Twists that the legs cannot execute are scaled down in their direction.  Without recent commands the robot stops,
    and all feet return to the stance.  Feet with early contact stay there, feet that hit an obstacle rise higher, and
    feet without contact search for lower ground: the robot walks over rough ground without perception.  Gait, duty
    factor, stride and lift may change while it walks.  Poses and movements that the legs cannot execute are rejected
    with leg, joint, value and limit.
    """

    hardware: Hardware = resource(Hardware)
    legs: LeggedRobot = resource(LeggedRobot)
    description: Model = resource(Model)
    joint_claims: JointClaims = resource(JointClaims, make=JointClaims)

    state_fields = (
        "_phase",
        "_transition",
        "_transition_index",
        "_commanded_twist",
        "_command_ns",
        "_target_pose",
        "_body_pose",
        "_roll_pitch_yaw",
        "_has_contact_sensors",
        "_contact_forces",
        "_contacts",
        "_ticks",
        "_joint_setpoints",
        "_load_fractions",
        "_achieved_twist",
        "_has_stalled",
    )

    def setup(self) -> None:
        """Claim the joints, and start to stand up if configured."""
        expect_kernels(
            support_margin,
            tip_over_angle,
            all_finite,
            nearest_ik_solutions,
            foot_forward_kinematics,
            compensate_joint_compliance,
            body_motion,
            remove_tilt,
            find_stalled_joint,
            max_foot_speed,
            advance_feet,
        )
        joints = self.legs.joints
        check_command_mode(self.hardware, joints, "position", self.full_name)
        self._leg_names, self._all_feet = [leg.name for leg in self.legs.legs], np.ones(len(self.legs.legs), bool)
        self._joint_indices = joint_indices(self.hardware, joints)
        gait, stepping = self._create_gait(self.config)
        self._gait_generator = GaitGenerator(self.legs, gait, stepping)
        self._odometry, self._heading_controller = LegOdometry(), HeadingController(self.config.heading_gain)
        self._stall_detector, self._has_stalled = StallDetector(len(self.legs.legs)), False
        self._achieved_twist = np.zeros(3)
        self._commanded_twist, self._command_ns, self._ticks = (0.0, 0.0, 0.0), -1, 0
        self._target_pose, self._body_pose = np.zeros(6), np.zeros(6)
        self._roll_pitch_yaw: tuple[float, float, float] | None = None
        n_legs = len(self.legs.legs)
        self._has_contact_sensors, self._contact_forces, self._contacts = (
            False,
            np.zeros(n_legs),
            np.zeros(n_legs, bool),
        )
        self._phase, self._transition_index = "resting", 0
        self._load_fractions = np.zeros(n_legs)
        self._servo_compliance = servo_compliance(self.description, joints).reshape(-1, 3) * self.config.compensate_load
        self._weight = GRAVITY * self.description.mass
        self._no_feet = np.zeros(n_legs, bool)
        self._joint_setpoints = self._measured_joints()
        self._transition: NDArray[np.float64] = self._joint_setpoints[None]
        self.joint_claims.claim_if_free(self.full_name, joints)
        if self.config.initial_state == "stand":
            self._start_transition(
                "rising",
                plan_stand_up(
                    self.legs,
                    self._joint_setpoints,
                    resting_foot_height=self.config.resting_foot_height,
                    period=1.0 / self.config.rate,
                ),
            )
        self._frames = (self.frame(self.config.odom_frame), self.frame(self.config.base_frame))
        self._state_publisher = self.publisher("~state", msg.GaitState)
        self._odometry_publisher = self.publisher("odom", msg.Odometry)
        self.subscribe("cmd_vel_out", msg.Twist, self._on_command)
        self.subscribe("body_pose", msg.Pose, self._on_pose)
        self.subscribe("imu", msg.Imu, self._on_imu)
        for i, leg in enumerate(self.legs.legs if self.config.foot_contact_prefix else ()):
            self.subscribe(
                f"{self.config.foot_contact_prefix}/{leg.name}", msg.ContactsState, partial(self._on_foot_contact, i)
            )
        self.service("~stand", srv.Trigger, self._on_stand)
        self.service("~lie_down", srv.Trigger, self._on_lie)
        self.service("~play", srv.Trigger, self._on_play)
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)

    def close(self) -> None:
        """Release the joints."""
        self.joint_claims.unregister(self.full_name)

    def on_config_change(self, old: GaitNodeConfig, new: GaitNodeConfig) -> None:
        """Apply changed parameters of the gait; rejects gaits that the robot cannot walk."""
        if (old.stepping, old.gait, old.duty_factor) != (new.stepping, new.gait, new.duty_factor):
            self._gait_generator.reconfigure(*self._create_gait(new))

    def _create_gait(self, config: GaitNodeConfig) -> tuple[Gait, SteppingConfig]:
        gait = make_gait(config.gait, self.legs, config.duty_factor)
        GaitGenerator(self.legs, gait, config.stepping).feasible_twist((1.0, 0.0, 0.0))
        return gait, config.stepping

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        parts: dict[str, Any] = {
            "gait_generator": self._gait_generator,
            "odometry": self._odometry,
            "heading_controller": self._heading_controller,
            "stall_detector": self._stall_detector,
        }
        return super().save_state() | {name: part.save_state() for name, part in parts.items()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        super().load_state(state)
        self._gait_generator.reconfigure(*self._create_gait(self.config))
        self._gait_generator.load_state(state["gait_generator"])
        self._odometry.load_state(state["odometry"])
        self._heading_controller.load_state(state["heading_controller"])
        self._stall_detector.load_state(state["stall_detector"])

    # -- subscriptions -------------------------------------------------------------------------------------------------
    def _on_command(self, message: Any) -> None:
        twist = (message.linear.x, message.linear.y, message.angular.z)
        if not all(map(math.isfinite, twist)):
            self.log.error(f"refused a twist of {twist}: not finite", throttle=5.0)
            return
        self._commanded_twist, self._command_ns = twist, self.now_ns

    def _on_pose(self, message: Any) -> None:
        try:
            p, q = message.position, message.orientation
            pose = SE3((q.w, q.x, q.y, q.z), (p.x, p.y, p.z))
            self.legs.joints_at_body_pose(pose)
        except RoboyardError as error:
            self.log.warn(f"pose refused: {error}", throttle=1.0)
            return
        self._target_pose = np.array([*pose.translation, *pose.rpy])

    def _on_imu(self, message: Any) -> None:
        self._roll_pitch_yaw = roll_pitch_yaw(message.orientation)

    def _on_foot_contact(self, leg: int, message: Any) -> None:
        self._has_contact_sensors, self._contacts[leg], self._contact_forces[leg] = (
            True,
            bool(message.states),
            contact_force(message),
        )

    # -- services ------------------------------------------------------------------------------------------------------
    def _on_stand(self, request: Any) -> Any:
        if self._phase != "resting":
            return srv.Trigger.Response(success=False, message=f"it is {self._phase}")
        transition = plan_stand_up(
            self.legs,
            self._joint_setpoints,
            resting_foot_height=self.config.resting_foot_height,
            period=1.0 / self.config.rate,
        )
        return self._start_transition("rising", transition)

    def _on_lie(self, request: Any) -> Any:
        if self._is_busy():
            return srv.Trigger.Response(success=False, message=f"it is {self._describe_phase()}")
        transition = plan_lie_down(
            self.legs,
            self._joint_setpoints,
            resting_foot_height=self.config.resting_foot_height,
            period=1.0 / self.config.rate,
        )
        return self._start_transition("lying down", transition)

    def _on_play(self, request: Any) -> Any:
        if self._is_busy():
            return srv.Trigger.Response(success=False, message=f"it is {self._describe_phase()}")
        try:
            return self._play()
        except RoboyardError as error:
            return srv.Trigger.Response(success=False, message=str(error))

    def _play(self) -> Any:
        if not self.config.movement:
            raise InputError("no movement", location=self.full_name, valid="parameter movement: a file")
        movement, current_feet = (
            load_movement(Path(self.config.movement)),
            self.legs.foot_positions(self._joint_setpoints),
        )
        interpolation: Interpolation = "spline" if self.config.interpolation == "spline" else "cosine"
        playback = play_movement(
            movement, self.legs, interpolation=interpolation, period=1.0 / self.config.rate, start=current_feet
        )
        return self._start_transition("playing", playback.q[1:])

    def _is_busy(self) -> bool:
        return self._phase != _WALKING_PHASE or not self._gait_generator.is_standing

    def _describe_phase(self) -> str:
        return "lying" if self._phase == "resting" else self._phase

    def _start_transition(self, phase: str, transition: NDArray[np.float64]) -> Any:
        self._phase, self._transition, self._transition_index = phase, transition, 0
        duration = len(transition) / self.config.rate
        return srv.Trigger.Response(success=True, message=f"{phase}, {duration:.2f} s")

    # -- control step
    # ------------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        measured_joints = self._measured_joints()
        feet = self.legs.foot_positions(measured_joints)
        if self.joint_claims.has_claim(self.full_name, self.legs.joints) and not self.joint_claims.is_paused(
            self.legs.joints
        ):
            self._check_stall(measured_joints)
            self._joint_setpoints = (
                self._next_gait_setpoints() if self._phase == _WALKING_PHASE else self._next_transition_setpoints()
            )
            self.hardware.write(JointCommand("position", self.legs.joints, self._compensated_setpoints().ravel()))
        walking = self._phase == _WALKING_PHASE
        in_stance = self._gait_generator.in_stance if walking else self._all_feet
        if self._phase != "resting":
            loads = (
                self._contact_forces
                if self._has_contact_sensors
                else np.floor(self._load_fractions)
                if walking
                else self._all_feet
            )
            self._odometry.update(1.0 / self.config.rate, feet, loads, self._roll_pitch_yaw, in_stance)
            pose = odometry_pose(self._odometry)
            self._odometry_publisher.publish(
                leg_odometry_to_msg(pose, self._odometry.twist, self.now_ns, *self._frames)
            )
            if self.config.publish_tf:
                self.send_transform(pose, *self._frames)
        self._ticks += 1
        if self._ticks % max(1, round(self.config.rate / self.config.state_rate)) == 0:
            contacts = self._contacts if self._has_contact_sensors else self._contacts[:0]
            gait_description, motion = (
                (self._phase, self.config.gait, self._leg_names),
                (feet, self._roll_pitch_yaw, self._achieved_twist),
            )
            self._state_publisher.publish(
                gait_state_to_msg(self.now_ns, *gait_description, in_stance, contacts, *motion)
            )

    def _check_stall(self, measured_joints: NDArray[np.float64]) -> None:
        """Report a stalled joint, and the end of a stall."""
        stalled = self._stall_detector.update(self._joint_setpoints, measured_joints, 1.0 / self.config.rate)
        if stalled is not None:
            leg, setpoint, measured = (
                self.legs.legs[stalled[0]],
                self._joint_setpoints[stalled],
                measured_joints[stalled],
            )
            text = (
                f"leg {leg.name} stalls: {leg.joints[stalled[1]]} is commanded to {setpoint:.2f} rad "
                f"and stays at {measured:.2f} rad"
            )
            self.log.warn(text, throttle=5.0)
            if not self._has_stalled:
                self.report_health("warn", text)
            self._has_stalled = True
        elif self._has_stalled and not (self.config.on_stall == "stop" and any(self._commanded_twist)):
            self.log.info("all joints track their set-points again")
            self.report_health("ok", "all joints track their set-points")
            self._has_stalled = False

    def _next_transition_setpoints(self) -> NDArray[np.float64]:
        """Return the next set-points of a transition, or the last ones."""
        if self._phase == "resting":
            return self._joint_setpoints
        setpoints: NDArray[np.float64] = self._transition[self._transition_index]
        self._transition_index += 1
        if self._transition_index >= len(self._transition):
            self._on_transition_end(setpoints)
        return setpoints

    def _on_transition_end(self, setpoints: NDArray[np.float64]) -> None:
        """Enter the phase that follows a transition."""
        previous_phase = self._phase
        self._phase, self._transition, self._transition_index = (
            "resting" if previous_phase == "lying down" else _WALKING_PHASE,
            setpoints[None],
            0,
        )
        if previous_phase == "playing":
            self._start_transition(
                "returning", plan_return_to_stance(self.legs, setpoints, period=1.0 / self.config.rate)
            )
        elif previous_phase == "rising" and self.config.movement:
            try:
                self._play()
            except RoboyardError as error:
                self.log.error(f"the movement is not played: {error}")

    def _next_gait_setpoints(self) -> NDArray[np.float64]:
        """Return the set-points of the next control step of the gait."""
        if self._command_ns >= 0 and self.now_ns - self._command_ns > self.config.command_timeout * 1e9:
            self._commanded_twist, self._command_ns = (0.0, 0.0, 0.0), -1
        is_stopped = self._has_stalled and self.config.on_stall == "stop"
        dt, desired, orientation = (
            1.0 / self.config.rate,
            np.zeros(3) if is_stopped else np.array(self._commanded_twist),
            self._roll_pitch_yaw,
        )
        commanded = self._heading_controller.correct(desired, orientation[2] if orientation else None)
        tilt = (
            (0.0, 0.0)
            if orientation is None
            else (orientation[0] - self._body_pose[3], orientation[1] - self._body_pose[4])
        )
        feet = self._gait_generator.advance(dt, commanded, self._contacts if self._has_contact_sensors else None, tilt)
        self._achieved_twist = self._heading_controller.update_reference(
            desired, commanded, self._gait_generator.achieved_twist, dt
        )
        pose_error = self._target_pose - self._body_pose
        if pose_error.any():
            max_pose_change = self.config.pose_speed / self.config.rate * np.array([1.0, 1.0, 1.0, 4.0, 4.0, 4.0])
            self._body_pose = self._body_pose + np.clip(pose_error, -max_pose_change, max_pose_change)
        try:
            if self._body_pose.any():
                return self.legs.joints_at_body_pose(SE3.from_xyz_rpy(self._body_pose[:3], self._body_pose[3:]), feet)
            return self.legs.solve_ik(feet, self._joint_setpoints)
        except InputError:
            raise
        except RoboyardError as error:
            self.log.warn(f"foot target skipped, foot holds position: {error}", throttle=1.0)
            return self._joint_setpoints

    def _compensated_setpoints(self) -> NDArray[np.float64]:
        """Return (l, 3) set-points that compensate the compliance of the servos under load [rad]."""
        in_stance, feet = (
            self._no_feet if self._phase == "resting" else self._gait_generator.in_stance,
            self._gait_generator.feet,
        )
        if self._phase == "playing":  # its feet rise and come down as they like: what carries is felt
            in_stance, feet = (
                self._contacts if self._has_contact_sensors else in_stance,
                self.legs.foot_positions(self._joint_setpoints),
            )
        max_change = 1.0 / (self.config.rate * LOAD_RAMP_TIME)
        return compensate_joint_compliance(
            self.legs.arrays,
            self._joint_setpoints,
            feet,
            self._weight,
            in_stance,
            max_change,
            self._load_fractions,
            self._servo_compliance,
        )

    def _measured_joints(self) -> NDArray[np.float64]:
        """Return (l, 3) measured joint positions [rad]."""
        joints: NDArray[np.float64] = self.hardware.read().position[self._joint_indices].reshape(-1, 3)
        return joints


def servo_compliance(model: Model, joints: Sequence[str]) -> NDArray[np.float64]:
    """Return (n) compliance of the servos of joints [rad/(N m)]; 0 where an integral term compensates it."""
    parameters_by_joint = {interface.joint: dict(interface.parameters) for interface in model.interfaces}
    gains = [parameters_by_joint.get(joint, {}) for joint in joints]
    stiffness = [float(gain["pos_kp"]) if float(gain.get("pos_ki", 1.0)) == 0.0 else math.inf for gain in gains]
    return 1.0 / np.array(stiffness)
