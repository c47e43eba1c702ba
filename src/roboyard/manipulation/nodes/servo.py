"""The servo node: moves an arm by twists or poses of its tool or velocities of its joints, as MoveIt Servo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.config.wording import did_you_mean
from roboyard.control.joint_claims import JointClaims
from roboyard.control.joint_limits import JointAccelerationLimits, JointGroupLimits
from roboyard.control.nodes.joint_group import add_stop_services
from roboyard.description import World
from roboyard.description.model import Model
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.hardware.interface import Hardware, JointCommand, check_command_mode, joint_indices
from roboyard.kinematics.ik.differential_ik import solve_box_qp
from roboyard.kinematics.ik.numeric_ik import compute_pose_error
from roboyard.manipulation.collision.collision_model import _fill_aabb_tree
from roboyard.manipulation.collision.motion_check import compute_distances, is_segment_free
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.nodes.planning_scene_monitor import PlanningSceneMonitor, SceneParameters
from roboyard.manipulation.nodes.scene_inputs import SceneInputs
from roboyard.manipulation.semantics.planning_groups import SemanticDescription
from roboyard.manipulation.servo import ArmServo, ArmServoConfig, JointVelocityDemand, ServoCode, ServoSetpoint
from roboyard.messages import msg, srv
from roboyard.messages.convert.poses import make_header, pose_to_se3, quaternion_to_array, vector_to_array
from roboyard.safety.collaborative.monitor import SpeedScalingWatchdog

_COMMAND_TYPE = srv.moveit_msgs.ServoCommandType.Request
_QUATERNION_TOLERANCE = 1e-3
"""Deviation from 1 up to which a norm is that of a unit quaternion."""


class ServoNodeConfig(Config):
    """Configuration of `ServoNode`."""

    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    rate: float = parameter(100.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    incoming_command_timeout: float = parameter(
        0.2, unit="s", low=0.01, high=60.0, runtime=True, doc="Age from which a command is no longer used."
    )
    speed_scaling: float = parameter(0.5, low=0.01, high=1.0, doc="Velocity scaling of the joints.")
    start_tolerance: float = parameter(
        0.1,
        unit="rad or m",
        low=0.0,
        high=1e3,
        runtime=True,
        doc="Distance from its set-points from which an arm at rest starts at its measured position.",
    )
    scene: SceneParameters = parameter(factory=SceneParameters, flatten="", doc="Sources of the planning scene.")
    is_person_limited: bool = parameter(False, doc="Move only at the speed that the safety node allows.")
    person_limit_timeout: float = parameter(
        0.15, unit="s", low=0.01, high=60.0, doc="Timeout of the safety node's limit, after which the arm stops."
    )
    servoing: ArmServoConfig = parameter(
        factory=ArmServoConfig, flatten="", doc="Slow-down near singularities and obstacles."
    )


class ServoNode(Node[ServoNodeConfig]):
    """Teleoperates an arm within all limits, slower near singularities, and without collisions.

    in: ~/delta_twist_cmds (geometry_msgs/TwistStamped: m/s, rad/s in the axes of its frame; no frame is that of plans),
        ~/delta_joint_cmds (control_msgs/JointJog: velocities), ~/pose_target_cmds (geometry_msgs/PoseStamped: where the
        tool moves to; in the frame of the tool: from where it is on arrival), joint_states, /tf, planning_scene,
        collision_object, attached_collision_object (moveit_msgs), octomap (the parameter octomap_topic)
        ~/allowed_speed_fraction (std_msgs/Float64), with ``is_person_limited``: the speed fraction that the safety node
        allows
    out: ~/status (moveit_msgs/ServoStatus, latched): why the arm is slower than commanded; positions to the hardware;
        ~/desired_joint_velocity (control_msgs/JointJog), with ``is_person_limited``: joint velocities of the command
    services: ~/pause_servo (std_srvs/SetBool): commands are ignored; ~/switch_command_type
        (moveit_msgs/ServoCommandType): only commands of this type are used; ~stop, ~pause as for all nodes that move
        joints

    Names are MoveIt Servo's.  The newest command of any type is used until ``~/switch_command_type`` chooses a type.
    The arm stops at a pose target or where it cannot come nearer, without a command for ``incoming_command_timeout``,
    and on an invalid one: not finite, no unit quaternion, in an unknown frame, for unknown joints, or while another
    source moves the joints (see `JointClaims`).  An arm at rest that was moved farther than ``start_tolerance``
    from its set-points starts from its measured positions.  A person-limited arm stops without messages of the safety
    node.  See `joint_velocities_for_twist` for what arms with five joints leave out.
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    joint_claims: JointClaims = resource(JointClaims, make=JointClaims)
    acceleration_limits: JointAccelerationLimits = resource(JointAccelerationLimits, make=JointAccelerationLimits)
    groups: SemanticDescription = resource(SemanticDescription)
    world: World | None = resource(World, optional=True)

    def setup(self) -> None:
        """Create inputs, outputs and services."""
        expect_kernels(_fill_aabb_tree, compute_distances, is_segment_free, compute_pose_error, solve_box_qp)
        self._monitor = monitor = PlanningSceneMonitor(
            self, self.groups, self.config.group, self.config.scene, self.world
        )
        self._joints = monitor.joints
        check_command_mode(self.hardware, self._joints, "position", self.full_name)
        self._joint_indices = joint_indices(self.hardware, self._joints)
        bounds = JointGroupLimits.from_model(self.description, self._joints, self.acceleration_limits)
        max_velocity = self.config.speed_scaling * np.where(np.isfinite(bounds.speed), bounds.speed, 1.0)
        self._servo = ArmServo(
            monitor.scene.chain, max_velocity, bounds.acceleration, self._measured_position(), self.config.servoing
        )
        self._person_limit = (
            SpeedScalingWatchdog(self.config.person_limit_timeout) if self.config.is_person_limited else None
        )
        if self._person_limit is not None:
            self._velocity_publisher = self.publisher("~/desired_joint_velocity", msg.JointJog)
            self.subscribe("~/allowed_speed_fraction", msg.Float64, self._on_allowed)
        self._twist_command: tuple[Array, str] | None = None
        self._joint_command: Array | None = None
        self._pose_command: tuple[Array, str | None] | None = None
        self._command_type: int | None = None
        self._command_expiry_ns = -1
        self._is_paused = False
        self._last_status = (-2, "")
        self._status_publisher = self.publisher("~/status", msg.moveit_msgs.ServoStatus, latched=True)
        self._publish_status(ServoCode.NO_WARNING, "")
        self.subscribe("~/delta_twist_cmds", msg.TwistStamped, self._on_twist)
        self.subscribe("~/delta_joint_cmds", msg.JointJog, self._on_joints)
        self.subscribe("~/pose_target_cmds", msg.PoseStamped, self._on_pose)
        self._inputs = SceneInputs(self, monitor, self.config.scene)
        self.service("~/pause_servo", srv.SetBool, self._on_pause)
        self.service("~/switch_command_type", srv.moveit_msgs.ServoCommandType, self._on_switch_command_type)
        add_stop_services(self, self.joint_claims, self._joints, self._clear_command)
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)

    def close(self) -> None:
        """Release the joints."""
        self.joint_claims.unregister(self.full_name)

    def _measured_position(self) -> Array:
        position: Array = self.hardware.read().position[self._joint_indices]
        return position

    # -- commands ------------------------------------------------------------------------------------------------------
    def _on_twist(self, message: Any) -> None:
        if not self._is_accepted(_COMMAND_TYPE.TWIST):
            return
        twist = np.concatenate([vector_to_array(message.twist.linear), vector_to_array(message.twist.angular)])
        frame = str(message.header.frame_id)
        try:
            if not np.isfinite(twist).all():
                raise InputError(f"the twist {twist.tolist()} is not finite", valid="m/s and rad/s")
            self._frame_rotation(frame)
            self._claim_joints()
        except RoboyardError as error:
            self._reject(error)
        else:
            self._twist_command, self._joint_command, self._pose_command = (twist, frame), None, None

    def _on_joints(self, message: Any) -> None:
        if not self._is_accepted(_COMMAND_TYPE.JOINT_JOG):
            return
        try:
            velocities = np.zeros(len(self._joints))
            if len(message.velocities) != len(message.joint_names) or len(message.displacements):
                raise InputError("a jog without a velocity for each joint, and only that", valid="velocities")
            for name, speed in zip(message.joint_names, message.velocities, strict=True):
                if name not in self._joints:
                    raise InputError(
                        f"no joint {name!r}{did_you_mean(str(name), self._joints)}", valid=", ".join(self._joints)
                    )
                if not np.isfinite(speed):
                    raise InputError(f"{speed} for {name}", valid="a finite number")
                velocities[self._joints.index(name)] = speed
            self._claim_joints()
        except RoboyardError as error:
            self._reject(error)
        else:
            self._twist_command, self._joint_command, self._pose_command = None, velocities, None

    def _on_pose(self, message: Any) -> None:
        if not self._is_accepted(_COMMAND_TYPE.POSE):
            return
        frame: str | None = str(message.header.frame_id)
        position, quaternion = vector_to_array(message.pose.position), quaternion_to_array(message.pose.orientation)
        try:
            if not (np.isfinite(position).all() and np.isfinite(quaternion).all()):
                raise InputError(
                    f"the pose {[*position.tolist(), *quaternion.tolist()]} is not finite",
                    valid="m and a unit quaternion",
                )
            norm = float(np.linalg.norm(quaternion))
            if abs(norm - 1.0) > _QUATERNION_TOLERANCE:
                raise InputError(f"the quaternion of the pose has the norm {norm:.6g}", valid="a unit quaternion")
            T = pose_to_se3(message.pose)
            self._claim_joints()
            chain = self._monitor.scene.chain
            if frame in (chain.tip, self.frame(chain.tip)):
                T, frame = SE3.from_matrix(chain.forward(self._servo.position)) @ T, None
            self._T_base_target(T.matrix(), frame)
        except RoboyardError as error:
            self._reject(error)
        else:
            self._twist_command, self._joint_command, self._pose_command = None, None, (T.matrix(), frame)

    def _on_switch_command_type(self, request: Any) -> Any:
        response = srv.moveit_msgs.ServoCommandType.Response
        command_type = int(request.command_type)
        if command_type not in (_COMMAND_TYPE.JOINT_JOG, _COMMAND_TYPE.TWIST, _COMMAND_TYPE.POSE):
            self.log.error(f"there is no command type {command_type}: valid are 0 (JOINT_JOG), 1 (TWIST), 2 (POSE)")
            return response(success=False)
        command = {
            _COMMAND_TYPE.JOINT_JOG: self._joint_command,
            _COMMAND_TYPE.TWIST: self._twist_command,
            _COMMAND_TYPE.POSE: self._pose_command,
        }[command_type]
        if command is None:
            self._clear_command()
        self._command_type = command_type
        return response(success=True)

    def _is_accepted(self, command_type: int) -> bool:
        """Whether commands of a type are used; logs a warning if another type was chosen."""
        if self._command_type in (None, command_type):
            return True
        self.log.warn(
            f"ignored a command of type {command_type}: switch_command_type chose {self._command_type}", throttle=1.0
        )
        return False

    @property
    def _has_command(self) -> bool:
        """Whether a command of any type is followed."""
        return not (self._twist_command is None and self._joint_command is None and self._pose_command is None)

    def _on_allowed(self, message: Any) -> None:
        if self._person_limit is not None:
            self._person_limit.set_scaling(float(message.data), self.now_ns)

    def _claim_joints(self) -> None:
        """Claim the joints for the command timeout. Raises InputError if another source moves them, or commands are
        paused.
        """
        if self._is_paused:
            raise InputError("commands are switched off", valid="pause_servo with false")
        has_claim = self.joint_claims.has_claim(self.full_name, self._joints)
        self.joint_claims.claim(self.full_name, self._joints)
        position = self._measured_position()
        if not has_claim or (
            self._is_at_rest() and np.abs(position - self._servo.position).max() > self.config.start_tolerance
        ):
            self._servo.reset_to(position)
        self._command_expiry_ns = self.now_ns + round(self.config.incoming_command_timeout * 1e9)

    def _is_at_rest(self) -> bool:
        """Whether there is no command and the commanded velocity is zero."""
        return not self._has_command and self._servo.is_stopped

    def _reject(self, error: RoboyardError) -> None:
        self.log.error(f"rejected a command: {error}", throttle=1.0)
        self._clear_command()
        self._publish_status(ServoCode.INVALID, str(error))

    def _clear_command(self) -> None:
        """Clear the command: the joints slow down."""
        self._twist_command = self._joint_command = self._pose_command = None
        self._command_expiry_ns = -1

    def _on_pause(self, request: Any) -> Any:
        self._is_paused = bool(request.data)
        if self._is_paused:
            self._clear_command()
        return srv.SetBool.Response(success=True, message="takes no commands" if self._is_paused else "takes commands")

    def _frame_rotation(self, frame: str) -> Array:
        """Return the (3, 3) rotation of a frame in the base of the chain. Raises TransformError."""
        scene = self._monitor.scene
        if frame in (scene.chain.tip, self.frame(scene.chain.tip)):
            return np.asarray(scene.chain.forward(self._servo.position)[:3, :3])
        T_world_base = self._monitor.at_robot_pose(scene).T_world_base
        return np.asarray((T_world_base.inverse() @ self._monitor.T_world_frame(frame)).rotation_matrix())

    def _T_base_target(self, T_frame_target: Array, frame: str | None) -> Array:
        """Return a pose target (4, 4) in the base of the chain, None being that frame. Raises TransformError."""
        if frame is None:
            return T_frame_target
        T_world_base = self._monitor.at_robot_pose(self._monitor.scene).T_world_base
        T_base_frame = T_world_base.inverse() @ self._monitor.T_world_frame(frame)
        return np.asarray((T_base_frame @ SE3.from_matrix(T_frame_target)).matrix())

    # -- each cycle ----------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        if not self.joint_claims.has_claim(self.full_name, self._joints):
            self._clear_command()
            return
        if self.now_ns > self._command_expiry_ns:
            self._clear_command()
        try:
            setpoint = self._next_setpoint(self._monitor.current_scene(), 1.0 / self.config.rate)
        except RoboyardError as error:
            self._reject(error)
            setpoint = self._servo.brake(1.0 / self.config.rate)
        self.hardware.write(JointCommand("position", self._joints, setpoint.position))
        if self._has_command:
            self._publish_status(setpoint.code, setpoint.message)
        elif self._servo.is_stopped:
            self.joint_claims.finish_motion(self.full_name)

    def _next_setpoint(self, scene: PlanningScene, dt: float) -> ServoSetpoint:
        if self._pose_command is not None and not self.joint_claims.is_paused(self._joints):
            demand = self._servo.demand_to_pose(
                self._T_base_target(*self._pose_command), np.array(scene.group.tool_axis), dt
            )
        elif self._twist_command is None or self.joint_claims.is_paused(self._joints):
            velocities = self._joint_command if self._joint_command is not None else np.zeros(len(self._joints))
            demand = self._servo.demand_from_joints(
                0.0 * velocities if self.joint_claims.is_paused(self._joints) else velocities, dt
            )
        else:
            twist, frame = self._twist_command
            R = self._frame_rotation(frame)
            base_twist = np.concatenate([R @ twist[:3], R @ twist[3:]])
            demand = self._servo.demand_from_twist(base_twist, np.array(scene.group.tool_axis), dt)
        setpoint = self._servo.step(scene, self._apply_person_limit(demand), dt)
        if self._pose_command is not None and setpoint.code == ServoCode.HALT_FOR_COLLISION:
            return replace(setpoint, message=f"stopped before the pose target: {setpoint.message}")
        return setpoint

    def _apply_person_limit(self, demand: JointVelocityDemand) -> JointVelocityDemand:
        """Publish the demand for the safety node and scale it to the speed that the safety node allows."""
        if self._person_limit is None:
            return demand
        self._velocity_publisher.publish(
            msg.JointJog(
                header=make_header("", self.now_ns), joint_names=list(self._joints), velocities=demand.velocities.copy()
            )
        )
        return demand.scaled(self._person_limit.scaling(self.now_ns))

    def _publish_status(self, code: ServoCode, text: str) -> None:
        if (int(code), text.partition(":")[0]) == self._last_status:
            return
        self._last_status = int(code), text.partition(":")[0]
        self._status_publisher.publish(msg.moveit_msgs.ServoStatus(code=int(code), message=text))

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {
            "keeper": self._monitor.save_state(),
            "feeds": self._inputs.save_state(),
            "servoing": self._servo.save_state(),
            "allowance": None if self._person_limit is None else self._person_limit.save_state(),
            "asked": (
                self._twist_command,
                self._joint_command,
                self._command_expiry_ns,
                self._is_paused,
                self._last_status,
            ),
            "pose": (self._pose_command, self._command_type),
            "owns": self.joint_claims.has_claim(self.full_name, self._joints),
            "paused": self.joint_claims.is_paused(self._joints),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        super().load_state(state)
        self._monitor.load_state(state["keeper"])
        self._inputs.load_state(state["feeds"])
        self._servo.load_state(state["servoing"])
        if self._person_limit is not None:
            self._person_limit.load_state(state["allowance"])
        self._twist_command, self._joint_command, self._command_expiry_ns, self._is_paused, self._last_status = state[
            "asked"
        ]
        self._pose_command, self._command_type = state["pose"]
        self.joint_claims.set_paused(self._joints, state["paused"])
        if state["owns"]:
            self.joint_claims.claim(self.full_name, self._joints)  # the next cycle checks whether they are at rest
