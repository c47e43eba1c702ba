"""What an agent perceives: messages of the robot's own sensors and nodes, as arrays within known bounds.

A sense says to which topics it listens, and what it makes of the newest messages there.  What is beyond its bounds is
cut to them, as by an instrument at the end of its range.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from roboyard.description import LidarSpec
from roboyard.description.sensors import ContactSpec
from roboyard.errors import ConfigError
from roboyard.gym.robot import ReadRobot
from roboyard.messages import msg
from roboyard.messages.convert.poses import vector_to_array

Array = NDArray[np.float32]
Topics = Mapping[str, type]
"""Types of messages by topic, relative to the robot's namespace."""
Reader = Callable[[Sequence[Any]], ArrayLike]

_TURN_MOST, _PUSH_MOST = 35.0, 157.0
"""What usual inertial units measure: 2000 deg/s and 16 g."""
_SPARE = 1.5
"""Joints are seen to be so many times faster than they can be told to be, before it is cut."""


def box(low: ArrayLike, high: ArrayLike, shape: tuple[int, ...]) -> Box:
    """A space of numbers between two bounds, in single precision."""
    return Box(
        np.broadcast_to(np.asarray(low, np.float32), shape).copy(),
        np.broadcast_to(np.asarray(high, np.float32), shape).copy(),
        dtype=np.float32,
    )


def held(values: ArrayLike, space: Box) -> Array:
    """Values as the space has them: single precision, cut to its bounds."""
    found: Array = np.clip(np.asarray(values, np.float32), space.low, space.high)
    return found


class Sense(ABC):
    """One entry of the observation."""

    @abstractmethod
    def topics(self, robot: ReadRobot) -> Topics:
        """Where it listens. Raises ConfigError where the robot has nothing of the kind."""

    @abstractmethod
    def space(self, robot: ReadRobot) -> Box:
        """What it can perceive."""

    @abstractmethod
    def reader(self, robot: ReadRobot) -> Reader:
        """Gives what the newest messages say, one of each topic; it is cut to the space."""


@dataclass(frozen=True)
class Scan(Sense):
    """A planar lidar: the nearest of each of ``beams`` equal sectors, counterclockwise: (beams,) [m].

    The greatest range stands for nothing seen, 0 for what is nearer than the least range.
    """

    topic: str = "scan"
    beams: int = 36

    def topics(self, robot: ReadRobot) -> Topics:
        """Its own."""
        self._spec(robot)
        return {self.topic: msg.LaserScan}

    def space(self, robot: ReadRobot) -> Box:
        """From 0 to the greatest range."""
        return box(0.0, self._spec(robot).range_max, (self.beams,))

    def reader(self, robot: ReadRobot) -> Reader:
        """The nearest in each sector."""
        starts = np.arange(self.beams) * self._spec(robot).samples // self.beams

        def read(heard: Sequence[Any]) -> ArrayLike:
            ranges = np.nan_to_num(heard[0].ranges, nan=np.inf, posinf=np.inf, neginf=0.0)
            return np.minimum.reduceat(ranges, starts)

        return read

    def _spec(self, robot: ReadRobot) -> LidarSpec:
        found = {one.topic: one.spec for one in robot.model.sensors if isinstance(one.spec, LidarSpec)}
        spec = found.get(self.topic)
        if spec is None or spec.vertical_samples != 1:
            planar = [topic for topic, one in found.items() if one.vertical_samples == 1]
            raise ConfigError(
                f"no planar lidar tells {self.topic!r}",
                location=f"robot {robot.name}",
                valid=", ".join(planar) or "none",
            )
        if not 1 <= self.beams <= spec.samples:
            raise ConfigError(
                f"{self.beams} beams", location=self.topic, valid=f"1 to {spec.samples}, those of the lidar"
            )
        return spec


@dataclass(frozen=True)
class Motion(Sense):
    """How the robot moves by its odometry: (3,) forward, to the left [m/s], turning counterclockwise [rad/s]."""

    topic: str = "odom"
    speed: float = 5.0
    turn_rate: float = 10.0

    def topics(self, robot: ReadRobot) -> Topics:
        """Odometry."""
        return {self.topic: msg.Odometry}

    def space(self, robot: ReadRobot) -> Box:
        """Up to the given speeds, either way."""
        most = np.array([self.speed, self.speed, self.turn_rate])
        return box(-most, most, (3,))

    def reader(self, robot: ReadRobot) -> Reader:
        """Its twist."""

        def read(heard: Sequence[Any]) -> ArrayLike:
            twist = heard[0].twist.twist
            return twist.linear.x, twist.linear.y, twist.angular.z

        return read


@dataclass(frozen=True)
class Joints(Sense):
    """Positions [rad or m] or velocities [rad/s or m/s] of joints, as ``joint_states`` tells them: (n,).

    Joints that turn without end are told between -π and π.
    """

    what: Literal["position", "velocity"] = "position"
    joints: tuple[str, ...] = ()
    """Which, unless those of a group: all that move, in file order, unless named."""
    group: str | None = None
    """"": the robot's first."""

    def topics(self, robot: ReadRobot) -> Topics:
        """Joint states."""
        return {"joint_states": msg.JointState}

    def space(self, robot: ReadRobot) -> Box:
        """The joints' limits; of velocities one and a half times those."""
        joints = self._joints(robot)
        bounds = robot.bounds(joints)
        if self.what == "velocity":
            most = _SPARE * np.where(np.isfinite(bounds.speed), bounds.speed, _TURN_MOST)
            return box(-most, most, (len(joints),))
        endless = ~(np.isfinite(bounds.lower) & np.isfinite(bounds.upper))
        low, high = np.where(endless, -math.pi, bounds.lower), np.where(endless, math.pi, bounds.upper)
        return box(low, high, (len(joints),))

    def reader(self, robot: ReadRobot) -> Reader:
        """By name."""
        joints, attribute = self._joints(robot), self.what
        bounds = robot.bounds(joints)
        endless = ~(np.isfinite(bounds.lower) & np.isfinite(bounds.upper)) & (self.what == "position")

        def read(heard: Sequence[Any]) -> ArrayLike:
            names = heard[0].name
            values = np.array(getattr(heard[0], attribute))[[names.index(joint) for joint in joints]]
            values[endless] = (values[endless] + math.pi) % (2.0 * math.pi) - math.pi
            return values

        return read

    def _joints(self, robot: ReadRobot) -> tuple[str, ...]:
        if self.group is not None:
            return robot.groups.chain(self.group or None).joints
        return self.joints or robot.moving


@dataclass(frozen=True)
class Inertia(Sense):
    """An inertial unit: (6,) angular velocity [rad/s] and linear acceleration with gravity's [m/s²], in its frame."""

    topic: str = "imu"

    def topics(self, robot: ReadRobot) -> Topics:
        """Its own."""
        return {self.topic: msg.Imu}

    def space(self, robot: ReadRobot) -> Box:
        """What usual units measure: 2000 deg/s, 16 g."""
        most = np.repeat([_TURN_MOST, _PUSH_MOST], 3)
        return box(-most, most, (6,))

    def reader(self, robot: ReadRobot) -> Reader:
        """Both vectors."""

        def read(heard: Sequence[Any]) -> ArrayLike:
            unit = heard[0]
            return np.concatenate([vector_to_array(unit.angular_velocity), vector_to_array(unit.linear_acceleration)])

        return read


@dataclass(frozen=True)
class Upright(Sense):
    """Which way is up, by an inertial unit that knows its orientation: (3,) a unit vector in its frame."""

    topic: str = "imu"

    def topics(self, robot: ReadRobot) -> Topics:
        """The inertial unit's."""
        return {self.topic: msg.Imu}

    def space(self, robot: ReadRobot) -> Box:
        """A unit vector's."""
        return box(-1.0, 1.0, (3,))

    def reader(self, robot: ReadRobot) -> Reader:
        """The last row of the rotation matrix."""

        def read(heard: Sequence[Any]) -> ArrayLike:
            q = heard[0].orientation
            x, y = 2.0 * (q.x * q.z - q.w * q.y), 2.0 * (q.y * q.z + q.w * q.x)
            return x, y, 1.0 - 2.0 * (q.x * q.x + q.y * q.y)

        return read


@dataclass(frozen=True)
class Touch(Sense):
    """Contact sensors: (n,) 1 where one touches something, else 0."""

    sensors: tuple[str, ...] = ()
    """Their topics; those of the feet, ``feet/<leg>``, unless named."""

    def topics(self, robot: ReadRobot) -> Topics:
        """One each."""
        there = {one.topic for one in robot.model.sensors if isinstance(one.spec, ContactSpec)}
        wanted = self.sensors or tuple(f"feet/{leg.name}" for leg in robot.legs.legs)
        for topic in wanted:
            if topic not in there:
                raise ConfigError(
                    f"no contact sensor tells {topic!r}", location=f"robot {robot.name}", valid=", ".join(sorted(there))
                )
        return dict.fromkeys(wanted, msg.ContactsState)

    def space(self, robot: ReadRobot) -> Box:
        """From 0 to 1."""
        return box(0.0, 1.0, (len(self.topics(robot)),))

    def reader(self, robot: ReadRobot) -> Reader:
        """Whether there are contacts."""
        return lambda heard: [float(bool(one.states)) for one in heard]
