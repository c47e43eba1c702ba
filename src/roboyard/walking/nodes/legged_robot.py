"""Base of the nodes that control a legged robot: sensors of the legs, leg odometry, set-points of the joints, standing
up; and the messages that these nodes publish."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from roboyard.bus import Node, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.control.joint_claims import JointClaims
from roboyard.description.model import Model
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import GRAVITY
from roboyard.hardware.interface import Hardware, JointCommand, check_command_mode, joint_indices
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg
from roboyard.walking.foot_movement import plan_stand_up
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


def leg_odometry_pose(odometry: LegOdometry) -> SE3:
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


@dataclass(frozen=True, eq=False)
class GaitReport:
    """What a node publishes about the present motion of a legged robot.

    Attributes:
        phase: What the robot does, such as "walking".
        gait: Name of the gait; "free" for planned steps.
        twist: (3,) executed twist: forward, left [m/s], yaw rate [rad/s].
    """

    phase: str
    gait: str
    twist: Array


def gait_state_to_msg(
    report: GaitReport,
    time_ns: int,
    legs: Sequence[str],
    in_stance: NDArray[np.bool_],
    contacts: NDArray[np.bool_],
    feet: Array,
    orientation: tuple[float, float, float] | None,
) -> Any:
    """Return the roboyard_msgs/GaitState of a robot.

    Args:
        report: The motion.
        time_ns: Stamp of the message.
        legs: Names of the legs.
        in_stance: (l) feet that are meant to be on the ground.
        contacts: (l) feet that report contact; empty without contact sensors.
        feet: (l, 3) measured foot positions in the body frame [m].
        orientation: Roll, pitch and yaw of the body [rad]; None: unknown, taken as level.
    """
    vx, vy, yaw_rate = report.twist.tolist()
    roll, pitch = (0.0, 0.0) if orientation is None else orientation[:2]
    return msg.GaitState(
        header=msg.Header(stamp=time_to_msg(time_ns)),
        phase=report.phase,
        gait=report.gait,
        legs=list(legs),
        in_stance=in_stance.copy(),
        in_contact=contacts.copy(),
        margin=float(support_margin(feet, in_stance, 0.0, 0.0)),
        tilt=float(tip_over_angle(feet, in_stance, roll, pitch)),
        twist=msg.Twist(linear=msg.Vector3(x=vx, y=vy), angular=msg.Vector3(z=yaw_rate)),
    )


def servo_compliance(model: Model, joints: Sequence[str]) -> NDArray[np.float64]:
    """Return (n) compliance of the servos of joints [rad/(N m)]; 0 where an integral term compensates it."""
    parameters_by_joint = {interface.joint: dict(interface.parameters) for interface in model.interfaces}
    gains = [parameters_by_joint.get(joint, {}) for joint in joints]
    stiffness = [float(gain["pos_kp"]) if float(gain.get("pos_ki", 1.0)) == 0.0 else math.inf for gain in gains]
    return 1.0 / np.array(stiffness)


class LeggedRobotNodeConfig(Config):
    """Parameters that all nodes of legged robots have in common."""

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
    compensate_load: bool = parameter(
        True, runtime=True,
        doc="Add the deflection under load to the set-points of servos that have no integral term.",
    )  # fmt: skip
    gravity: float = parameter(
        GRAVITY, unit="m/s²", low=0.0, high=100.0, doc="Gravitational acceleration, for the loads of the feet."
    )
    publish_tf: bool = parameter(True, doc="Publish the transform of the odometry.")


LeggedRobotNodeConfigT = TypeVar(
    "LeggedRobotNodeConfigT", bound=LeggedRobotNodeConfig, default=LeggedRobotNodeConfig, covariant=True
)


class LeggedRobotNodeBase(Node[LeggedRobotNodeConfigT], ABC):
    """Base of nodes that control all joints of a legged robot.

    in: imu (sensor_msgs/Imu), feet/<leg> (gazebo_msgs/ContactsState)
    out: positions to the hardware, odom (nav_msgs/Odometry), /tf odom_frame → base_frame, a roboyard_msgs/GaitState

    In each control step the node measures the joints, asks the subclass for new set-points (`advance_setpoints`), adds
    the deflection of the servos under their loads, writes the set-points to the hardware, and updates the leg odometry.
    It writes nothing while another node has claimed or paused the joints.

    Subclasses implement `advance_setpoints`, `stance_mask`, `gait_report` and `on_transition_end`.  In their `setup`
    they call, in this order: `super().setup()`, `_claim_joints`, `_create_publishers`, `_subscribe_sensors`,
    `_start_control_loop`.
    """

    hardware: Hardware = resource(Hardware)
    legged_robot: LeggedRobot = resource(LeggedRobot)
    description: Model = resource(Model)
    joint_claims: JointClaims = resource(JointClaims, make=JointClaims)

    state_fields: tuple[str, ...] = (
        "_phase",
        "_transition",
        "_transition_index",
        "_roll_pitch_yaw",
        "_has_contact_sensors",
        "_contact_forces",
        "_contacts",
        "_ticks",
        "_joint_setpoints",
        "_load_fractions",
    )

    def setup(self) -> None:
        """Create the state that all nodes of legged robots share; the joints are not claimed yet."""
        expect_kernels(
            all_finite,
            nearest_ik_solutions,
            foot_forward_kinematics,
            body_motion,
            remove_tilt,
            compensate_joint_compliance,
            support_margin,
            tip_over_angle,
        )
        joints, n_legs = self.legged_robot.joints, len(self.legged_robot.legs)
        check_command_mode(self.hardware, joints, "position", self.full_name)
        self._leg_names = [leg.name for leg in self.legged_robot.legs]
        self._all_feet, self._no_feet = np.ones(n_legs, bool), np.zeros(n_legs, bool)
        self._joint_indices = joint_indices(self.hardware, joints)
        self._odometry = LegOdometry()
        self._roll_pitch_yaw: tuple[float, float, float] | None = None
        self._has_contact_sensors = False
        self._contact_forces, self._contacts = np.zeros(n_legs), np.zeros(n_legs, bool)
        self._weight, self._load_fractions = self.config.gravity * self.description.mass, np.zeros(n_legs)
        self._servo_compliance = self._compliance_to_compensate(self.config)
        self._phase, self._transition_index, self._ticks = "resting", 0, 0
        self._joint_setpoints = self._measured_joints()
        self._transition: Array = self._joint_setpoints[None]

    def _compliance_to_compensate(self, config: LeggedRobotNodeConfig) -> Array:
        """Return the (l, 3) compliance of the servos that set-points take into account [rad/(N m)]."""
        return servo_compliance(self.description, self.legged_robot.joints).reshape(-1, 3) * config.compensate_load

    def _claim_joints(self) -> None:
        """Claim the joints of the legs, unless another node has done so."""
        self.joint_claims.claim_if_free(self.full_name, self.legged_robot.joints)

    def _create_publishers(self, state_topic: str) -> None:
        """Create the publishers of the state and of the odometry."""
        self._frames = (self.frame(self.config.odom_frame), self.frame(self.config.base_frame))
        self._state_publisher = self.publisher(state_topic, msg.GaitState)
        self._odometry_publisher = self.publisher("odom", msg.Odometry)

    def _subscribe_sensors(self) -> None:
        """Subscribe to the inertial unit and to the contact sensors of the feet."""
        self.subscribe("imu", msg.Imu, self._on_imu)
        for i, leg in enumerate(self.legged_robot.legs if self.config.foot_contact_prefix else ()):
            self.subscribe(
                f"{self.config.foot_contact_prefix}/{leg.name}", msg.ContactsState, partial(self._on_foot_contact, i)
            )

    def _start_control_loop(self) -> None:
        """Start the timer of the control steps."""
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)

    def close(self) -> None:
        """Release the joints."""
        self.joint_claims.unregister(self.full_name)

    def on_config_change(self, old: LeggedRobotNodeConfig, new: LeggedRobotNodeConfig) -> None:
        """Apply a change of the load compensation."""
        self._servo_compliance = self._compliance_to_compensate(new)

    # -- what subclasses implement -------------------------------------------------------------------------------------
    @abstractmethod
    def advance_setpoints(self, feet: Array, measured_joints: Array) -> None:
        """Compute the set-points of the next control step into ``_joint_setpoints``.

        Args:
            feet: (l, 3) measured foot positions in the body frame [m].
            measured_joints: (l, 3) measured joint positions [rad].
        """

    @abstractmethod
    def stance_mask(self) -> NDArray[np.bool_]:
        """Return (l) which feet are meant to be on the ground."""

    @abstractmethod
    def gait_report(self) -> GaitReport:
        """Return the present motion for the published state."""

    @abstractmethod
    def on_transition_end(self, setpoints: Array) -> None:
        """Enter the phase that follows a transition with its last set-points (l, 3)."""

    def is_on_feet(self) -> bool:
        """Return whether the feet carry the body, so that the odometry can use them."""
        return True

    def loaded_feet(self) -> tuple[NDArray[np.bool_], Array]:
        """Return (l) which feet carry load, or are about to, and (l, 3) their desired positions [m]."""
        return self.stance_mask(), self.legged_robot.foot_positions(self._joint_setpoints)

    def assumed_loads(self) -> Array:
        """Return (l) the loads of feet without contact sensors, in any unit."""
        return np.floor(self._load_fractions)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"odometry": self._odometry.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        super().load_state(state)
        self._odometry.load_state(state["odometry"])
        self._servo_compliance = self._compliance_to_compensate(self.config)

    # -- subscriptions -------------------------------------------------------------------------------------------------
    def _on_imu(self, message: Any) -> None:
        self._roll_pitch_yaw = roll_pitch_yaw(message.orientation)

    def _on_foot_contact(self, leg: int, message: Any) -> None:
        self._has_contact_sensors = True
        self._contacts[leg], self._contact_forces[leg] = bool(message.states), contact_force(message)

    def _measured_contacts(self) -> NDArray[np.bool_] | None:
        """Return (l) feet that report contact; None without contact sensors."""
        return self._contacts if self._has_contact_sensors else None

    # -- control step --------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        measured_joints = self._measured_joints()
        feet = self.legged_robot.foot_positions(measured_joints)
        joints = self.legged_robot.joints
        if self.joint_claims.has_claim(self.full_name, joints) and not self.joint_claims.is_paused(joints):
            self.advance_setpoints(feet, measured_joints)
            self.hardware.write(JointCommand("position", joints, self._compensated_setpoints().ravel()))
        in_stance = self.stance_mask()
        if self.is_on_feet():
            self._publish_odometry(feet, in_stance)
        self._ticks += 1
        if self._ticks % max(1, round(self.config.rate / self.config.state_rate)) == 0:
            contacts = self._contacts if self._has_contact_sensors else self._contacts[:0]
            self._state_publisher.publish(
                gait_state_to_msg(
                    self.gait_report(), self.now_ns, self._leg_names, in_stance, contacts, feet, self._roll_pitch_yaw
                )
            )

    def _publish_odometry(self, feet: Array, in_stance: NDArray[np.bool_]) -> None:
        """Update the odometry, and publish it."""
        loads = self._contact_forces if self._has_contact_sensors else self.assumed_loads()
        self._odometry.update(1.0 / self.config.rate, feet, loads, self._roll_pitch_yaw, in_stance)
        pose = leg_odometry_pose(self._odometry)
        self._odometry_publisher.publish(leg_odometry_to_msg(pose, self._odometry.twist, self.now_ns, *self._frames))
        if self.config.publish_tf:
            self.send_transform(pose, *self._frames)

    def _plan_stand_up(self) -> Array:
        """Return set-points (t, l, 3) from the present ones to the stance. Raises InputError, RoboyardError."""
        return plan_stand_up(
            self.legged_robot,
            self._joint_setpoints,
            resting_foot_height=self.config.resting_foot_height,
            period=1.0 / self.config.rate,
        )

    def _next_transition_setpoints(self) -> Array:
        """Return the next set-points (l, 3) of a transition; the last ones end it."""
        setpoints: Array = self._transition[self._transition_index]
        self._transition_index += 1
        if self._transition_index >= len(self._transition):
            self.on_transition_end(setpoints)
        return setpoints

    def _compensated_setpoints(self) -> Array:
        """Return (l, 3) set-points that compensate the compliance of the servos under load [rad]."""
        in_stance, feet = self.loaded_feet()
        return compensate_joint_compliance(
            self.legged_robot.arrays,
            self._joint_setpoints,
            feet,
            self._weight,
            in_stance,
            1.0 / (self.config.rate * LOAD_RAMP_TIME),
            self._load_fractions,
            self._servo_compliance,
        )

    def _measured_joints(self) -> Array:
        """Return (l, 3) measured joint positions [rad]."""
        return np.asarray(self.hardware.read().position[self._joint_indices].reshape(-1, 3), np.float64)
