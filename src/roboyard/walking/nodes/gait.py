"""The gait node: a wanted twist in, joints of all legs out."""

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
from roboyard.walking.gait_kernels import held_by, tips_at
from roboyard.walking.gaits import GAITS, Gait, make_gait
from roboyard.walking.heading import HeadingHold
from roboyard.walking.leg_kernels import all_finite, nearest_solutions, place_feet
from roboyard.walking.loads import LOADING, told_joints
from roboyard.walking.movement import Between, play
from roboyard.walking.movement_file import load_movement
from roboyard.walking.nodes.legged_messages import foot_force, gait_state, legged_odometry, pose_of, tilt_and_heading
from roboyard.walking.odometry import LeggedOdometry, body_motion, levelled
from roboyard.walking.stall import StallWatch, longest_stalled
from roboyard.walking.standing import lying_down, returning, rising
from roboyard.walking.stepping import Stepper, Steps
from roboyard.walking.stepping_kernels import fastest, step_on
from roboyard.walking.walker import Walker

_WALKING = "walking"


class LeggedConfig(Config):
    """What nodes that move robots with legs have in common."""

    ground: float = parameter(-0.016, unit="m", doc="Height of the ground in the body's frame while the robot lies.")
    rate: float = parameter(50.0, unit="Hz", low=10.0, high=500.0, doc="Rate of the control loop.")
    state_rate: float = parameter(25.0, unit="Hz", low=1.0, high=500.0, doc="Rate of the published state.")
    feet: str = parameter("feet", doc="Namespace of the topics of the feet's contacts; empty: no contacts are used.")
    odom_frame: str = parameter("odom", doc="Frame in which the odometry starts.")
    base_frame: str = parameter("base_link", doc="Frame of the body.")


class GaitNodeConfig(LeggedConfig):
    """Configuration of `GaitNode`."""

    gait: str = parameter("tripod", choices=tuple(GAITS), doc="Order in which the feet rise.", runtime=True)
    duty: float = parameter(
        0.0,
        low=0.0,
        high=0.95,
        doc="Share of the time that a foot is on the ground; 0: the gait's smallest.",
        runtime=True,
    )
    steps: Steps = parameter(factory=Steps, flatten="", doc="Steps of the feet.")
    heading: float = parameter(
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
    between: str = parameter(
        "cosine", choices=("cosine", "spline"), doc="Path of the feet between the steps of a movement.", runtime=True
    )
    start: str = parameter("stand", choices=("stand", "rest"), doc="First action.")
    carry: bool = parameter(
        True, runtime=True,
        doc="Add the deflection under load to the set-points of servos that have no integral term.",
    )  # fmt: skip
    timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="Age from which a command counts as standstill.", runtime=True
    )
    stall: str = parameter(
        "warn", choices=("warn", "stop"), runtime=True,
        doc="Reaction to a joint that stalls: a warning, or standstill until a command of zero.",
    )  # fmt: skip
    publish_tf: bool = parameter(True, doc="Publish the transform of the odometry.")


class GaitNode(Node[GaitNodeConfig]):
    """Makes a robot with legs stand up, walk as it is told, take poses, play movements and lie down.

    in: cmd_vel_out (geometry_msgs/Twist: forward, to the left, turning), body_pose (geometry_msgs/Pose, beside the
    stance), imu (sensor_msgs/Imu), feet/<leg> (gazebo_msgs/ContactsState)
    out: positions to the hardware, odom (nav_msgs/Odometry), /tf odom_frame → base_frame, ~state
    (roboyard_msgs/GaitState)
    services: ~stand, ~lie, ~play (std_srvs/Trigger)

    Twists that legs cannot do are slowed down in their direction.  A silent sender means standing; then all feet go
    back to their places.  Feet that feel ground early stay there, those that run into something rise higher, and those
    that find none search for it below: so rough ground is walked on without being seen.  Gait, duty, stride and lift
    may change while it walks.  Poses and movements that legs cannot do are refused, with leg, joint, value and limit.
    """

    hardware: Hardware = resource(Hardware)
    legs: Walker = resource(Walker)
    description: Model = resource(Model)
    joint_claims: JointClaims = resource(JointClaims, make=JointClaims)

    state_fields = (
        "_phase", "_way", "_at", "_wanted", "_heard_ns", "_pose", "_posed", "_turn", "_feels", "_forces", "_touching",
        "_ticks", "_near", "_loaded", "_done", "_stalled",
    )  # fmt: skip

    def setup(self) -> None:
        """Take the joints, and stand up if asked to."""
        expect_kernels(
            held_by,
            tips_at,
            all_finite,
            nearest_solutions,
            place_feet,
            told_joints,
            body_motion,
            levelled,
            longest_stalled,
            fastest,
            step_on,
        )
        joints = self.legs.joints
        check_command_mode(self.hardware, joints, "position", self.full_name)
        self._names, self._all = [leg.name for leg in self.legs.legs], np.ones(len(self.legs.legs), bool)
        self._where = joint_indices(self.hardware, joints)
        gait, steps = self._gait_and_steps(self.config)
        self._stepper = Stepper(self.legs, gait, steps)
        self._odometry, self._hold = LeggedOdometry(), HeadingHold(self.config.heading)
        self._stall, self._stalled = StallWatch(len(self.legs.legs)), False
        self._done = np.zeros(3)
        self._wanted, self._heard_ns, self._ticks = (0.0, 0.0, 0.0), -1, 0
        self._pose, self._posed = np.zeros(6), np.zeros(6)
        self._turn: tuple[float, float, float] | None = None
        count = len(self.legs.legs)
        self._feels, self._forces, self._touching = False, np.zeros(count), np.zeros(count, bool)
        self._phase, self._at = "resting", 0
        self._loaded = np.zeros(count)
        self._softness = softness(self.description, joints).reshape(-1, 3) * self.config.carry
        self._weight = GRAVITY * self.description.mass
        self._none = np.zeros(count, bool)
        self._near = self._actual()
        self._way: NDArray[np.float64] = self._near[None]
        self.joint_claims.claim_if_free(self.full_name, joints)
        if self.config.start == "stand":
            self._set_out(
                "rising", rising(self.legs, self._near, ground=self.config.ground, period=1.0 / self.config.rate)
            )
        self._frames = (self.frame(self.config.odom_frame), self.frame(self.config.base_frame))
        self._state = self.publisher("~state", msg.GaitState)
        self._odom = self.publisher("odom", msg.Odometry)
        self.subscribe("cmd_vel_out", msg.Twist, self._on_command)
        self.subscribe("body_pose", msg.Pose, self._on_pose)
        self.subscribe("imu", msg.Imu, self._on_imu)
        for i, leg in enumerate(self.legs.legs if self.config.feet else ()):
            self.subscribe(f"{self.config.feet}/{leg.name}", msg.ContactsState, partial(self._on_touch, i))
        self.service("~stand", srv.Trigger, self._on_stand)
        self.service("~lie", srv.Trigger, self._on_lie)
        self.service("~play", srv.Trigger, self._on_play)
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)

    def close(self) -> None:
        """Leave the joints to others."""
        self.joint_claims.unregister(self.full_name)

    def on_config_change(self, old: GaitNodeConfig, new: GaitNodeConfig) -> None:
        """Go on with other steps; refuses gaits that the robot does not have."""
        if (old.steps, old.gait, old.duty) != (new.steps, new.gait, new.duty):
            self._stepper.change(*self._gait_and_steps(new))

    def _gait_and_steps(self, config: GaitNodeConfig) -> tuple[Gait, Steps]:
        gait = make_gait(config.gait, self.legs, config.duty)
        Stepper(self.legs, gait, config.steps).executable((1.0, 0.0, 0.0))
        return gait, config.steps

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        parts: dict[str, Any] = {
            "stepper": self._stepper, "odometry": self._odometry, "hold": self._hold, "stall": self._stall,
        }  # fmt: skip
        return super().save_state() | {name: part.save_state() for name, part in parts.items()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._stepper.change(*self._gait_and_steps(self.config))
        self._stepper.load_state(state["stepper"])
        self._odometry.load_state(state["odometry"])
        self._hold.load_state(state["hold"])
        self._stall.load_state(state["stall"])

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _on_command(self, message: Any) -> None:
        wanted = (message.linear.x, message.linear.y, message.angular.z)
        if not all(map(math.isfinite, wanted)):
            self.log.error(f"refused a twist of {wanted}: not finite", throttle=5.0)
            return
        self._wanted, self._heard_ns = wanted, self.now_ns

    def _on_pose(self, message: Any) -> None:
        try:
            p, q = message.position, message.orientation
            pose = SE3((q.w, q.x, q.y, q.z), (p.x, p.y, p.z))
            self.legs.posed(pose)
        except RoboyardError as error:
            self.log.warn(f"pose refused: {error}", throttle=1.0)
            return
        self._pose = np.array([*pose.translation, *pose.rpy])

    def _on_imu(self, message: Any) -> None:
        self._turn = tilt_and_heading(message.orientation)

    def _on_touch(self, leg: int, message: Any) -> None:
        self._feels, self._touching[leg], self._forces[leg] = True, bool(message.states), foot_force(message)

    # -- services ------------------------------------------------------------------------------------------------------
    def _on_stand(self, request: Any) -> Any:
        if self._phase != "resting":
            return srv.Trigger.Response(success=False, message=f"it is {self._phase}")
        way = rising(self.legs, self._near, ground=self.config.ground, period=1.0 / self.config.rate)
        return self._set_out("rising", way)

    def _on_lie(self, request: Any) -> Any:
        if self._busy():
            return srv.Trigger.Response(success=False, message=f"it is {self._doing()}")
        way = lying_down(self.legs, self._near, ground=self.config.ground, period=1.0 / self.config.rate)
        return self._set_out("lying down", way)

    def _on_play(self, request: Any) -> Any:
        if self._busy():
            return srv.Trigger.Response(success=False, message=f"it is {self._doing()}")
        try:
            return self._play()
        except RoboyardError as error:
            return srv.Trigger.Response(success=False, message=str(error))

    def _play(self) -> Any:
        if not self.config.movement:
            raise InputError("no movement", location=self.full_name, valid="parameter movement: a file")
        movement, now = load_movement(Path(self.config.movement)), self.legs.feet(self._near)
        between: Between = "spline" if self.config.between == "spline" else "cosine"
        played = play(movement, self.legs, between=between, period=1.0 / self.config.rate, start=now)
        return self._set_out("playing", played.q[1:])

    def _busy(self) -> bool:
        return self._phase != _WALKING or not self._stepper.standing

    def _doing(self) -> str:
        return "lying" if self._phase == "resting" else self._phase

    def _set_out(self, phase: str, way: NDArray[np.float64]) -> Any:
        self._phase, self._way, self._at = phase, way, 0
        seconds = len(way) / self.config.rate
        return srv.Trigger.Response(success=True, message=f"{phase}, {seconds:.2f} s")

    # -- going on ------------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        actual = self._actual()
        feet = self.legs.feet(actual)
        if self.joint_claims.has_claim(self.full_name, self.legs.joints) and not self.joint_claims.is_paused(
            self.legs.joints
        ):
            self._watch_joints(actual)
            self._near = self._walk() if self._phase == _WALKING else self._follow()
            self.hardware.write(JointCommand("position", self.legs.joints, self._told().ravel()))
        walking = self._phase == _WALKING
        down = self._stepper.down if walking else self._all
        if self._phase != "resting":
            carried = self._forces if self._feels else np.floor(self._loaded) if walking else self._all
            self._odometry.update(1.0 / self.config.rate, feet, carried, self._turn, down)
            pose = pose_of(self._odometry)
            self._odom.publish(legged_odometry(pose, self._odometry.speed, self.now_ns, *self._frames))
            if self.config.publish_tf:
                self.send_transform(pose, *self._frames)
        self._ticks += 1
        if self._ticks % max(1, round(self.config.rate / self.config.state_rate)) == 0:
            touching = self._touching if self._feels else self._touching[:0]
            doing, how = (self._phase, self.config.gait, self._names), (feet, self._turn, self._done)
            self._state.publish(gait_state(self.now_ns, *doing, down, touching, *how))

    def _watch_joints(self, actual: NDArray[np.float64]) -> None:
        """Say so when a joint does not go where it is told, and when all do again."""
        found = self._stall.look(self._near, actual, 1.0 / self.config.rate)
        if found is not None:
            leg, told, stays = self.legs.legs[found[0]], self._near[found], actual[found]
            text = f"leg {leg.name} stalls: {leg.joints[found[1]]} is told {told:.2f} rad and stays at {stays:.2f} rad"
            self.log.warn(text, throttle=5.0)
            if not self._stalled:
                self.report_health("warn", text)
            self._stalled = True
        elif self._stalled and not (self.config.stall == "stop" and any(self._wanted)):
            self.log.info("all joints go where they are told again")
            self.report_health("ok", "all joints go where they are told")
            self._stalled = False

    def _follow(self) -> NDArray[np.float64]:
        """The next set-points of a way that is followed to its end, or the last ones."""
        if self._phase == "resting":
            return self._near
        now: NDArray[np.float64] = self._way[self._at]
        self._at += 1
        if self._at >= len(self._way):
            self._through(now)
        return now

    def _through(self, now: NDArray[np.float64]) -> None:
        """A way is at its end: what comes after it."""
        before = self._phase
        self._phase, self._way, self._at = "resting" if before == "lying down" else _WALKING, now[None], 0
        if before == "playing":
            self._set_out("returning", returning(self.legs, now, period=1.0 / self.config.rate))
        elif before == "rising" and self.config.movement:
            try:
                self._play()
            except RoboyardError as error:
                self.log.error(f"the movement is not played: {error}")

    def _walk(self) -> NDArray[np.float64]:
        """The set-points of the next moment on the gait."""
        if self._heard_ns >= 0 and self.now_ns - self._heard_ns > self.config.timeout * 1e9:
            self._wanted, self._heard_ns = (0.0, 0.0, 0.0), -1
        still = self._stalled and self.config.stall == "stop"
        dt, wanted, turn = 1.0 / self.config.rate, np.zeros(3) if still else np.array(self._wanted), self._turn
        told = self._hold.steer(wanted, turn[2] if turn else None)
        tilt = (0.0, 0.0) if turn is None else (turn[0] - self._posed[3], turn[1] - self._posed[4])
        feet = self._stepper.advance(dt, told, self._touching if self._feels else None, tilt)
        self._done = self._hold.carried(wanted, told, self._stepper.carried, dt)
        change = self._pose - self._posed
        if change.any():
            most = self.config.pose_speed / self.config.rate * np.array([1.0, 1.0, 1.0, 4.0, 4.0, 4.0])
            self._posed = self._posed + np.clip(change, -most, most)
        try:
            if self._posed.any():
                return self.legs.posed(SE3.from_xyz_rpy(self._posed[:3], self._posed[3:]), feet)
            return self.legs.reach(feet, self._near)
        except InputError:
            raise
        except RoboyardError as error:
            self.log.warn(f"a foot stays where it is: {error}", throttle=1.0)
            return self._near

    def _told(self) -> NDArray[np.float64]:
        """(l, 3) what servos as soft as these are told so that joints come to where they shall be [rad]."""
        down, feet = self._none if self._phase == "resting" else self._stepper.down, self._stepper.feet
        if self._phase == "playing":  # its feet rise and come down as they like: what carries is felt
            down, feet = self._touching if self._feels else down, self.legs.feet(self._near)
        most = 1.0 / (self.config.rate * LOADING)
        return told_joints(self.legs.rows, self._near, feet, self._weight, down, most, self._loaded, self._softness)

    def _actual(self) -> NDArray[np.float64]:
        """(l, 3) joints as they are [rad]."""
        found: NDArray[np.float64] = self.hardware.read().position[self._where].reshape(-1, 3)
        return found


def softness(model: Model, joints: Sequence[str]) -> NDArray[np.float64]:
    """(n) how far the servos of joints give way under a load [rad/(N m)]; 0 where an integral makes up for it."""
    said = {interface.joint: dict(interface.parameters) for interface in model.interfaces}
    gains = [said.get(joint, {}) for joint in joints]
    stiff = [float(gain["pos_kp"]) if float(gain.get("pos_ki", 1.0)) == 0.0 else math.inf for gain in gains]
    return 1.0 / np.array(stiff)
