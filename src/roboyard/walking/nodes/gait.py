"""The gait node: from a commanded twist to set-points of all leg joints."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.config import parameter
from roboyard.config.parameter import RegisteredName
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.messages import msg, srv
from roboyard.walking.foot_movement import (
    Interpolation,
    load_movement,
    plan_lie_down,
    plan_return_to_stance,
    play_movement,
)
from roboyard.walking.gait import (
    GAITS,
    Gait,
    ground_velocities_at,
    lift_profiles,
    make_gait,
    move_points_with_ground,
    swing_paths,
)
from roboyard.walking.gait_control import HeadingController, StallDetector, find_stalled_joint
from roboyard.walking.gait_generator import GaitGenerator, SteppingConfig, advance_feet, max_foot_speed
from roboyard.walking.nodes.legged_robot import GaitReport, LeggedRobotNodeBase, LeggedRobotNodeConfig

_WALKING_PHASE = "walking"


class GaitNodeConfig(LeggedRobotNodeConfig):
    """Configuration of `GaitNode`."""

    gait: Annotated[str, RegisteredName(GAITS)] = parameter(
        "tripod", doc="Order in which the feet swing, by name.", runtime=True
    )
    duty_factor: float = parameter(
        0.0,
        low=0.0,
        high=0.95,
        doc="Fraction of the cycle in which a foot is on the ground; 0: the gait's smallest.",
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
    command_timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="Age from which a command counts as standstill.", runtime=True
    )
    on_stall: str = parameter(
        "warn", choices=("warn", "stop"), runtime=True,
        doc="Reaction to a joint that stalls: a warning, or standstill until a command of zero.",
    )  # fmt: skip


class GaitNode(LeggedRobotNodeBase[GaitNodeConfig]):
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

    state_fields = (
        *LeggedRobotNodeBase.state_fields,
        "_commanded_twist",
        "_command_ns",
        "_target_pose",
        "_body_pose",
        "_achieved_twist",
        "_has_stalled",
    )

    def setup(self) -> None:
        """Claim the joints, and start to stand up if configured."""
        expect_kernels(
            find_stalled_joint,
            max_foot_speed,
            advance_feet,
            ground_velocities_at,
            move_points_with_ground,
            lift_profiles,
            swing_paths,
        )
        super().setup()
        self._gait_generator = GaitGenerator(self.legged_robot, *self._create_gait(self.config))
        self._heading_controller = HeadingController(self.config.heading_gain)
        self._stall_detector, self._has_stalled = StallDetector(len(self.legged_robot.legs)), False
        self._achieved_twist = np.zeros(3)
        self._commanded_twist, self._command_ns = (0.0, 0.0, 0.0), -1
        self._target_pose, self._body_pose = np.zeros(6), np.zeros(6)
        self._claim_joints()
        if self.config.initial_state == "stand":
            self._start_transition("rising", self._plan_stand_up())
        self._create_publishers("~state")
        self.subscribe("cmd_vel_out", msg.Twist, self._on_command)
        self.subscribe("body_pose", msg.Pose, self._on_pose)
        self._subscribe_sensors()
        self.service("~stand", srv.Trigger, self._on_stand)
        self.service("~lie_down", srv.Trigger, self._on_lie)
        self.service("~play", srv.Trigger, self._on_play)
        self._start_control_loop()

    def on_config_change(self, old: LeggedRobotNodeConfig, new: LeggedRobotNodeConfig) -> None:
        """Apply changed parameters of the gait; rejects gaits that the robot cannot walk."""
        if not isinstance(old, GaitNodeConfig) or not isinstance(new, GaitNodeConfig):
            return
        if (old.stepping, old.gait, old.duty_factor) != (new.stepping, new.gait, new.duty_factor):
            self._gait_generator.reconfigure(*self._create_gait(new))
        super().on_config_change(old, new)

    def _create_gait(self, config: GaitNodeConfig) -> tuple[Gait, SteppingConfig]:
        gait = make_gait(config.gait, self.legged_robot, config.duty_factor)
        GaitGenerator(self.legged_robot, gait, config.stepping).feasible_twist((1.0, 0.0, 0.0))
        return gait, config.stepping

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        parts: dict[str, Any] = {
            "gait_generator": self._gait_generator,
            "heading_controller": self._heading_controller,
            "stall_detector": self._stall_detector,
        }
        return super().save_state() | {name: part.save_state() for name, part in parts.items()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        super().load_state(state)
        self._gait_generator.reconfigure(*self._create_gait(self.config))
        self._gait_generator.load_state(state["gait_generator"])
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
            self.legged_robot.joints_at_body_pose(pose)
        except RoboyardError as error:
            self.log.warn(f"pose refused: {error}", throttle=1.0)
            return
        self._target_pose = np.array([*pose.translation, *pose.rpy])

    # -- services ------------------------------------------------------------------------------------------------------
    def _on_stand(self, request: Any) -> Any:
        if self._phase != "resting":
            return srv.Trigger.Response(success=False, message=f"it is {self._phase}")
        return self._start_transition("rising", self._plan_stand_up())

    def _on_lie(self, request: Any) -> Any:
        if self._is_busy():
            return srv.Trigger.Response(success=False, message=f"it is {self._describe_phase()}")
        transition = plan_lie_down(
            self.legged_robot,
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
            self.legged_robot.foot_positions(self._joint_setpoints),
        )
        interpolation: Interpolation = "spline" if self.config.interpolation == "spline" else "cosine"
        playback = play_movement(
            movement, self.legged_robot, interpolation=interpolation, period=1.0 / self.config.rate, start=current_feet
        )
        return self._start_transition("playing", playback.q[1:])

    def _is_busy(self) -> bool:
        return self._phase != _WALKING_PHASE or not self._gait_generator.is_standing

    def _describe_phase(self) -> str:
        return "lying" if self._phase == "resting" else self._phase

    def _start_transition(self, phase: str, transition: Array) -> Any:
        self._phase, self._transition, self._transition_index = phase, transition, 0
        duration = len(transition) / self.config.rate
        return srv.Trigger.Response(success=True, message=f"{phase}, {duration:.2f} s")

    # -- control step --------------------------------------------------------------------------------------------------
    def advance_setpoints(self, feet: Array, measured_joints: Array) -> None:
        """Compute the next set-points of the gait or of a transition, and watch for stalled joints."""
        self._check_stall(measured_joints)
        if self._phase == _WALKING_PHASE:
            self._joint_setpoints = self._next_gait_setpoints()
        elif self._phase != "resting":
            self._joint_setpoints = self._next_transition_setpoints()

    def stance_mask(self) -> NDArray[np.bool_]:
        """Return (l) the stance feet of the gait while the robot walks, and all feet otherwise."""
        return self._gait_generator.in_stance if self._phase == _WALKING_PHASE else self._all_feet

    def gait_report(self) -> GaitReport:
        """Return the phase, the gait, and the twist that the legs execute without the correction of the heading."""
        return GaitReport(self._phase, self.config.gait, self._achieved_twist)

    def is_on_feet(self) -> bool:
        """Return whether the robot does not lie."""
        return self._phase != "resting"

    def assumed_loads(self) -> Array:
        """Return (l) the loads of feet without contact sensors: equal for all feet unless the robot walks."""
        return super().assumed_loads() if self._phase == _WALKING_PHASE else self._all_feet.astype(np.float64)

    def loaded_feet(self) -> tuple[NDArray[np.bool_], Array]:
        """Return the stance feet of the gait, no feet while the robot lies, and feet in contact during a movement."""
        if self._phase == "playing":  # a movement says nothing about stance: the measured contacts do
            contacts = self._measured_contacts()
            in_stance = self._gait_generator.in_stance if contacts is None else contacts
            return in_stance, self.legged_robot.foot_positions(self._joint_setpoints)
        in_stance = self._no_feet if self._phase == "resting" else self._gait_generator.in_stance
        return in_stance, self._gait_generator.feet

    def _check_stall(self, measured_joints: Array) -> None:
        """Report a stalled joint, and the end of a stall."""
        stalled = self._stall_detector.update(self._joint_setpoints, measured_joints, 1.0 / self.config.rate)
        if stalled is not None:
            leg, setpoint, measured = (
                self.legged_robot.legs[stalled[0]],
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

    def on_transition_end(self, setpoints: Array) -> None:
        """Enter the phase that follows a transition."""
        previous_phase = self._phase
        self._phase, self._transition, self._transition_index = (
            "resting" if previous_phase == "lying down" else _WALKING_PHASE,
            setpoints[None],
            0,
        )
        if previous_phase == "playing":
            self._start_transition(
                "returning", plan_return_to_stance(self.legged_robot, setpoints, period=1.0 / self.config.rate)
            )
        elif previous_phase == "rising" and self.config.movement:
            try:
                self._play()
            except RoboyardError as error:
                self.log.error(f"the movement is not played: {error}")

    def _next_gait_setpoints(self) -> Array:
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
        feet = self._gait_generator.advance(dt, commanded, self._measured_contacts(), tilt)
        self._achieved_twist = self._heading_controller.update_reference(
            desired, commanded, self._gait_generator.achieved_twist, dt
        )
        pose_error = self._target_pose - self._body_pose
        if pose_error.any():
            max_pose_change = self.config.pose_speed / self.config.rate * np.array([1.0, 1.0, 1.0, 4.0, 4.0, 4.0])
            self._body_pose = self._body_pose + np.clip(pose_error, -max_pose_change, max_pose_change)
        try:
            if self._body_pose.any():
                return self.legged_robot.joints_at_body_pose(
                    SE3.from_xyz_rpy(self._body_pose[:3], self._body_pose[3:]), feet
                )
            return self.legged_robot.solve_ik(feet, self._joint_setpoints)
        except InputError:
            raise
        except RoboyardError as error:
            self.log.warn(f"foot target skipped, foot holds position: {error}", throttle=1.0)
            return self._joint_setpoints
