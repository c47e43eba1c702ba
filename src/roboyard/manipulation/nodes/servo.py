"""The servo node: an arm driven by hand, by twists of its tool or speeds of its joints, as MoveIt Servo does it."""

from __future__ import annotations

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
from roboyard.geometry.arrays import Array
from roboyard.hardware.interface import Hardware, JointCommand, check_command_mode, joint_indices
from roboyard.manipulation.collision.boxes_tree import _fill
from roboyard.manipulation.collision.clearance import distances, free_piece
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.nodes.scene_feeds import SceneFeeds
from roboyard.manipulation.nodes.scene_keeper import SceneKeeper, place_of
from roboyard.manipulation.people import PeopleSettings
from roboyard.manipulation.scene import PlanningScene
from roboyard.manipulation.servoing import ServoCode, Servoed, Servoing, ServoingSettings, Wanted
from roboyard.messages import msg, srv
from roboyard.messages.convert.poses import make_header, vector_to_array
from roboyard.safety.collaborative.monitor import SpeedScalingWatchdog


class ServoNodeConfig(Config):
    """Configuration of `ServoNode`."""

    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    rate: float = parameter(100.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    timeout: float = parameter(
        0.2, unit="s", low=0.01, high=60.0, runtime=True, doc="Age from which a command is no longer used."
    )
    speed: float = parameter(0.5, low=0.01, high=1.0, doc="Share of the joints' speeds.")
    start_tolerance: float = parameter(
        0.1,
        unit="rad or m",
        low=0.0,
        high=1e3,
        runtime=True,
        doc="Distance from its set-points from which an arm at rest starts at its measured position.",
    )
    world_frame: str = parameter(
        "", doc="Frame of plans, found by /tf; empty: the robot's root link, which stands still."
    )
    know_world: bool = parameter(False, doc="Know beforehand what is fixed in the world, as from a map.")
    place: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of the root in the world.")
    octomap_topic: str = parameter("", doc="Topic of maps of space that sensors make; empty: none.")
    people_topics: tuple[str, ...] = parameter((), doc="Topics of people's positions, one nav_msgs/Odometry each.")
    people: PeopleSettings = parameter(factory=PeopleSettings, doc="Clearance of people.")
    gripper_topic: str = parameter("", doc="Topic of the state of a gripper that the scene follows; empty: none.")
    margin: float = parameter(
        0.005, unit="m", low=0.0005, high=0.5, doc="Smallest distance between the arm and everything else."
    )
    guarded: bool = parameter(False, doc="Move only while a person guard allows it.")
    guard_timeout: float = parameter(
        0.15, unit="s", low=0.01, high=60.0, doc="Silence of the guard after which the arm stops."
    )
    servoing: ServoingSettings = parameter(
        factory=ServoingSettings, flatten="", doc="Slow-down near singularities and obstacles."
    )


class ServoNode(Node[ServoNodeConfig]):
    """Drives an arm by hand: within every limit, slower near singular positions, and it touches nothing.

    in: ~/delta_twist_cmds (geometry_msgs/TwistStamped: m/s, rad/s in the axes of its frame; no frame is that of plans),
        ~/delta_joint_cmds (control_msgs/JointJog: velocities), joint_states, /tf, planning_scene, collision_object,
        attached_collision_object (moveit_msgs), octomap (the parameter octomap_topic)
        ~/allowed (std_msgs/Float64), if it is ``guarded``: the share of it that the person guard allows
    out: ~/status (moveit_msgs/ServoStatus, latched): why the arm is slower than asked; positions to the hardware;
        ~/wanted (control_msgs/JointJog), if it is ``guarded``: speeds of the joints that a command comes to
    services: ~/pause_servo (std_srvs/SetBool): no commands are taken; ~stop, ~pause as all who move joints have them

    Names are MoveIt Servo's.  The newest command counts, whichever its kind.  The arm stops when none comes for
    ``timeout``, and on one that makes no sense: not finite, in an unknown frame, for unknown joints, or while
    another source moves the joints (see `JointOwners`).  An arm at rest that something moved farther than
    ``start_tolerance`` from its set-points starts from its measured positions.  A guarded arm stops while
    the guard is silent.  See `tip_speeds` for what arms of five joints leave out.
    """

    hardware: Hardware = resource(Hardware)
    description: Model = resource(Model)
    joint_claims: JointClaims = resource(JointClaims, make=JointClaims)
    acceleration_limits: JointAccelerationLimits = resource(JointAccelerationLimits, make=JointAccelerationLimits)
    groups: Groups = resource(Groups)
    world: World | None = resource(World, optional=True)

    def setup(self) -> None:
        """Connect."""
        expect_kernels(_fill, distances, free_piece)
        self._keeper = keeper = SceneKeeper(
            self,
            self.groups,
            self.config.group,
            world_frame=self.config.world_frame,
            place=place_of(self.config.place),
            known=self.world if self.config.know_world else None,
            margin=self.config.margin,
            joint_timeout=1.0,
        )
        self._joints = keeper.joints
        check_command_mode(self.hardware, self._joints, "position", self.full_name)
        self._where = joint_indices(self.hardware, self._joints)
        bounds = JointGroupLimits.from_model(self.description, self._joints, self.acceleration_limits)
        most = self.config.speed * np.where(np.isfinite(bounds.speed), bounds.speed, 1.0)
        self._servoing = Servoing(keeper.scene.chain, most, bounds.acceleration, self._actual(), self.config.servoing)
        self._allowance = SpeedScalingWatchdog(self.config.guard_timeout) if self.config.guarded else None
        if self._allowance is not None:
            self._wanted = self.publisher("~/wanted", msg.JointJog)
            self.subscribe("~/allowed", msg.Float64, self._on_allowed)
        self._twist: tuple[Array, str] | None = None
        self._speeds: Array | None = None
        self._until_ns = -1
        self._off = False
        self._said = (-2, "")
        self._status = self.publisher("~/status", msg.moveit_msgs.ServoStatus, latched=True)
        self._say(ServoCode.NO_WARNING, "")
        self.subscribe("~/delta_twist_cmds", msg.TwistStamped, self._on_twist)
        self.subscribe("~/delta_joint_cmds", msg.JointJog, self._on_joints)
        self._feeds = SceneFeeds(
            self,
            keeper,
            octomap_topic=self.config.octomap_topic,
            people_topics=self.config.people_topics,
            people=self.config.people,
            gripper_topic=self.config.gripper_topic,
            changed=lambda: None,
        )
        self.service("~/pause_servo", srv.SetBool, self._on_pause)
        add_stop_services(self, self.joint_claims, self._joints, self._forget)
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)

    def close(self) -> None:
        """Leave the joints to others."""
        self.joint_claims.unregister(self.full_name)

    def _actual(self) -> Array:
        actual: Array = self.hardware.read().position[self._where]
        return actual

    # -- commands ------------------------------------------------------------------------------------------------------
    def _on_twist(self, message: Any) -> None:
        twist = np.concatenate([vector_to_array(message.twist.linear), vector_to_array(message.twist.angular)])
        frame = str(message.header.frame_id)
        try:
            if not np.isfinite(twist).all():
                raise InputError(f"the twist {twist.tolist()} is not finite", valid="m/s and rad/s")
            self._turn(frame)
            self._take()
        except RoboyardError as error:
            self._refuse(error)
        else:
            self._twist, self._speeds = (twist, frame), None

    def _on_joints(self, message: Any) -> None:
        try:
            speeds = np.zeros(len(self._joints))
            if len(message.velocities) != len(message.joint_names) or len(message.displacements):
                raise InputError("a jog without a velocity for each joint, and only that", valid="velocities")
            for name, speed in zip(message.joint_names, message.velocities, strict=True):
                if name not in self._joints:
                    raise InputError(
                        f"no joint {name!r}{did_you_mean(str(name), self._joints)}", valid=", ".join(self._joints)
                    )
                if not np.isfinite(speed):
                    raise InputError(f"{speed} for {name}", valid="a finite number")
                speeds[self._joints.index(name)] = speed
            self._take()
        except RoboyardError as error:
            self._refuse(error)
        else:
            self._twist, self._speeds = None, speeds

    def _on_allowed(self, message: Any) -> None:
        if self._allowance is not None:
            self._allowance.set_scaling(float(message.data), self.now_ns)

    def _take(self) -> None:
        """Have the joints, for a while. Raises InputError: another source moves them, or commands are off."""
        if self._off:
            raise InputError("commands are switched off", valid="pause_servo with false")
        mine = self.joint_claims.has_claim(self.full_name, self._joints)
        self.joint_claims.claim(self.full_name, self._joints)
        actual = self._actual()
        if not mine or (
            self._is_at_rest() and np.abs(actual - self._servoing.position).max() > self.config.start_tolerance
        ):
            self._servoing.be_at(actual)
        self._until_ns = self.now_ns + round(self.config.timeout * 1e9)

    def _is_at_rest(self) -> bool:
        """Whether nothing is asked for and the joints are told to stand."""
        return self._twist is None and self._speeds is None and self._servoing.standing

    def _refuse(self, error: RoboyardError) -> None:
        self.log.error(f"refused a command: {error}", throttle=1.0)
        self._forget()
        self._say(ServoCode.INVALID, str(error))

    def _forget(self) -> None:
        """From now on nothing is asked for: the joints slow down."""
        self._twist = self._speeds = None
        self._until_ns = -1

    def _on_pause(self, request: Any) -> Any:
        self._off = bool(request.data)
        if self._off:
            self._forget()
        return srv.SetBool.Response(success=True, message="takes no commands" if self._off else "takes commands")

    def _turn(self, frame: str) -> Array:
        """(3, 3) rotation of a frame in the base of the chain. Raises TransformError."""
        scene = self._keeper.scene
        if frame in (scene.chain.tip, self.frame(scene.chain.tip)):
            return np.asarray(scene.chain.forward(self._servoing.position)[:3, :3])
        T_world_base = self._keeper.standing(scene).T_world_base
        return np.asarray((T_world_base.inverse() @ self._keeper.T_world_frame(frame)).rotation_matrix())

    # -- each cycle ----------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        if not self.joint_claims.has_claim(self.full_name, self._joints):
            self._forget()
            return
        if self.now_ns > self._until_ns:
            self._forget()
        try:
            found = self._next(self._keeper.now(), 1.0 / self.config.rate)
        except RoboyardError as error:
            self._refuse(error)
            found = self._servoing.brake(1.0 / self.config.rate)
        self.hardware.write(JointCommand("position", self._joints, found.position))
        asked = self._twist is not None or self._speeds is not None
        if asked:
            self._say(found.code, found.text)
        elif self._servoing.standing:
            self.joint_claims.finish_motion(self.full_name)

    def _next(self, scene: PlanningScene, dt: float) -> Servoed:
        if self._twist is None or self.joint_claims.is_paused(self._joints):
            speeds = self._speeds if self._speeds is not None else np.zeros(len(self._joints))
            want = self._servoing.wants_joints(
                0.0 * speeds if self.joint_claims.is_paused(self._joints) else speeds, dt
            )
        else:
            twist, frame = self._twist
            R = self._turn(frame)
            turned = np.concatenate([R @ twist[:3], R @ twist[3:]])
            want = self._servoing.wants_twist(turned, np.array(scene.group.axis), dt)
        return self._servoing.step(scene, self._guarded(want), dt)

    def _guarded(self, want: Wanted) -> Wanted:
        """The wanted motion, published for the guard and slowed to the speed that it allows."""
        if self._allowance is None:
            return want
        self._wanted.publish(
            msg.JointJog(
                header=make_header("", self.now_ns), joint_names=list(self._joints), velocities=want.speeds.copy()
            )
        )
        return want.slowed(self._allowance.scaling(self.now_ns))

    def _say(self, code: ServoCode, text: str) -> None:
        if (int(code), text.partition(":")[0]) == self._said:
            return
        self._said = int(code), text.partition(":")[0]
        self._status.publish(msg.moveit_msgs.ServoStatus(code=int(code), message=text))

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {
            "keeper": self._keeper.save_state(),
            "feeds": self._feeds.save_state(),
            "servoing": self._servoing.save_state(),
            "allowance": None if self._allowance is None else self._allowance.save_state(),
            "asked": (self._twist, self._speeds, self._until_ns, self._off, self._said),
            "owns": self.joint_claims.has_claim(self.full_name, self._joints),
            "paused": self.joint_claims.is_paused(self._joints),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._keeper.load_state(state["keeper"])
        self._feeds.load_state(state["feeds"])
        self._servoing.load_state(state["servoing"])
        if self._allowance is not None:
            self._allowance.load_state(state["allowance"])
        self._twist, self._speeds, self._until_ns, self._off, self._said = state["asked"]
        self.joint_claims.set_paused(self._joints, state["paused"])
        if state["owns"]:
            self.joint_claims.claim(self.full_name, self._joints)  # the next cycle tells whether they rest
