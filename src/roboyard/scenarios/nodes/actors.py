"""People and helpers that move in a scenario: pedestrians, people with a schedule, and helpers that move objects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import GoalFuture, Node, resource
from roboyard.config import Config, parameter
from roboyard.description.model import Box
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, SE3
from roboyard.hardware.interface import VelocityBase
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg
from roboyard.messages.convert.poses import pose_to_se2_unchecked
from roboyard.physics.world import link_pose
from roboyard.scenarios.world.objects import AnnularSector, sample_poses
from roboyard.simulation import Simulation
from roboyard.simulation.moving_devices import PLUGIN_FILENAME, read_moving_device

_PEDESTRIAN_PERIOD = 0.05
_PEDESTRIAN_ACCELERATION = 1.5
"""Acceleration of a pedestrian [m/s²]."""
_WAYPOINT_TOLERANCE = 0.02
"""Distance at which a way-point is reached [m]."""


class PedestrianNodeConfig(Config):
    """Configuration of `PedestrianNode`."""

    route: tuple[float, ...] = parameter((), doc="Two or more points x, y in the world [m]; empty: the person stands.")
    speed: float = parameter(0.8, unit="m/s", low=0.05, high=3.0, runtime=True, doc="Mean speed.")
    dwell_time: float = parameter(1.5, unit="s", low=0.0, high=1e3, runtime=True, doc="Longest pause at each point.")
    speed_variation: float = parameter(
        0.3, low=0.0, high=0.9, runtime=True, doc="Largest relative difference of the speed between legs."
    )
    clearance: float = parameter(
        0.9,
        unit="m",
        low=0.0,
        high=10.0,
        runtime=True,
        doc="Least distance between the centers of the person and a robot.",
    )
    wait_timeout: float = parameter(
        3.0, unit="s", low=0.1, high=1e4, runtime=True, doc="Time after which the person turns back."
    )
    avoided_topics: tuple[str, ...] | None = parameter(
        None,
        doc="Topics of the true poses of those into whom the person does not walk; default: every robot of the run"
        " that is no pedestrian.",
    )


class PedestrianNode(Node[PedestrianNodeConfig]):
    """Walks along a route to its end and back, and avoids robots.

    in: its own ground truth, and that of the robots that it avoids   out: velocities of its base

    Speed and pause of each leg are drawn by the run's seed.  The pedestrian stops before it would come nearer than
    ``clearance`` to a robot that it avoids, and turns back if the path stays blocked for ``wait_timeout``.  It does not
    walk into a robot at rest, but it neither evades sideways nor avoids one that drives into it.
    """

    base: VelocityBase = resource(VelocityBase)
    truth_topic: str = resource(str)
    robots: dict[str, Any] | None = resource(dict, optional=True)

    state_fields = (
        "_pose",
        "_other_positions",
        "_waypoint_index",
        "_route_direction",
        "_leg_speed",
        "_departure_time",
        "_blocked_time",
        "_speed",
    )

    def setup(self) -> None:
        """Subscribe, and begin with a pause."""
        if (
            len(self.config.route) in (1, 2)
            or len(self.config.route) % 2
            or not all(map(math.isfinite, self.config.route))
        ):
            parameter_location = f"{self.full_name}, parameter 'route'"
            raise ConfigError(
                f"{len(self.config.route)} numbers",
                location=parameter_location,
                valid="x, y of two or more places, or none: it stands",
            )
        self._pose: tuple[float, float, float] | None = None
        self._other_positions: dict[str, tuple[float, float]] = {}
        self._waypoint_index, self._route_direction = 1, 1
        self._blocked_time = self._speed = 0.0
        self._start_leg()
        self.subscribe(self.truth_topic, msg.Odometry, self._on_truth)
        self._subscribed_topics: set[str] = set()
        for topic in self.config.avoided_topics or ():
            self._subscribe_to_robot(topic)
        self._subscribe_to_robots()
        self.timer(period=_PEDESTRIAN_PERIOD, callback=self._tick)

    def close(self) -> None:
        """Stop."""
        self.base.release()

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state; robots that came after this node are known before their messages are."""
        self._subscribe_to_robots()
        super().load_state(saved)

    def _subscribe_to_robots(self) -> None:
        """Subscribe to the true poses of the run's robots, where no topics are given; forget those that are gone."""
        if self.config.avoided_topics is not None or self.robots is None:
            return
        topics = [
            robot.topics.truth
            for robot in self.robots.values()
            if not any(isinstance(node, PedestrianNode) for node in robot.nodes.values())
            and robot.topics.truth != self.truth_topic
        ]
        for topic in topics:
            self._subscribe_to_robot(topic)
        for topic in self._other_positions.keys() - set(topics):
            del self._other_positions[topic]

    def _subscribe_to_robot(self, topic: str) -> None:
        if topic not in self._subscribed_topics:
            self._subscribed_topics.add(topic)
            self.subscribe(topic, msg.Odometry, partial(self._on_other_robot, topic))

    def _on_truth(self, message: Any) -> None:
        pose = pose_to_se2_unchecked(message.pose.pose)
        self._pose = (pose.x, pose.y, pose.theta)

    def _on_other_robot(self, topic: str, message: Any) -> None:
        pose = pose_to_se2_unchecked(message.pose.pose)
        self._other_positions[topic] = (pose.x, pose.y)

    def _start_leg(self) -> None:
        self._departure_time = self.now + float(self.random.uniform(0.0, self.config.dwell_time))
        self._leg_speed = self.config.speed * float(
            self.random.uniform(1.0 - self.config.speed_variation, 1.0 + self.config.speed_variation)
        )

    def _select_next_waypoint(self) -> None:
        """Select the next way-point; at an end of the route the one before."""
        last = len(self.config.route) // 2 - 1
        if not 0 <= self._waypoint_index + self._route_direction <= last:
            self._route_direction = -self._route_direction
        self._waypoint_index += self._route_direction
        self._start_leg()

    def _tick(self) -> None:
        self._subscribe_to_robots()
        if self._pose is None or not self.config.route:
            return
        x, y, heading = self._pose
        dx, dy = self.config.route[2 * self._waypoint_index] - x, self.config.route[2 * self._waypoint_index + 1] - y
        distance = math.hypot(dx, dy)
        if distance < _WAYPOINT_TOLERANCE:
            self._select_next_waypoint()
            self._speed = 0.0
            self.base.set_velocity((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
            return
        target_speed = 0.0
        if self.now >= self._departure_time:
            if self._is_path_clear(x, y, dx / distance, dy / distance):
                target_speed, self._blocked_time = (
                    min(self._leg_speed, math.sqrt(_PEDESTRIAN_ACCELERATION * distance)),
                    0.0,
                )
            else:
                self._blocked_time += _PEDESTRIAN_PERIOD
                if self._blocked_time > self.config.wait_timeout:
                    self._blocked_time, self._route_direction = 0.0, -self._route_direction
                    self._select_next_waypoint()
        max_speed_change = _PEDESTRIAN_ACCELERATION * _PEDESTRIAN_PERIOD
        self._speed = min(max(target_speed, self._speed - max_speed_change), self._speed + max_speed_change)
        relative_heading = math.atan2(dy, dx) - heading
        self.base.set_velocity(
            (self._speed * math.cos(relative_heading), self._speed * math.sin(relative_heading), 0.0), (0.0, 0.0, 0.0)
        )

    def _is_path_clear(self, x: float, y: float, ux: float, uy: float) -> bool:
        """Return whether the pedestrian, including its stopping distance, stays clear of all robots in a direction."""
        required_distance = self.config.clearance + self._speed * self._speed / (2.0 * _PEDESTRIAN_ACCELERATION)
        for ox, oy in self._other_positions.values():
            ax, ay = ox - x, oy - y
            if math.hypot(ax, ay) < required_distance and ax * ux + ay * uy > 0.0:
                return False
        return True


_RETRY_DELAY = 1.0
"""Pause after a rejected task [s]."""


@dataclass(frozen=True)
class PersonTask:
    """One task of a person: walk to a point, play an animation, or wait."""

    walk: tuple[float, float] | tuple[float, float, float] | None = parameter(
        None, low=-1e4, high=1e4, doc="[x, y] or [x, y, yaw] to walk to, in m and rad"
    )
    animate: str | None = parameter(None, doc="name or file of an animation")
    wait: float | None = parameter(None, unit="s", low=0.0, high=1e6, doc="how long to wait")
    walk_animation: str = parameter("walk", doc="animation for walking")
    round_distance: float = parameter(
        0.0, unit="m", low=0.0, high=5.0, doc="distance that a cycle of the animation covers; 0: that of the animation"
    )
    speed: float = parameter(1.0, low=0.05, high=20.0, doc="factor on the speed of the animation")
    hand_target: tuple[float, float, float] | None = parameter(
        None, unit="m", doc="[x, y, z] that the hand reaches for"
    )
    hand_side: str = parameter("", doc="left or right; default: that of the animation")

    def __post_init__(self) -> None:
        if sum(choice is not None for choice in (self.walk, self.animate, self.wait)) != 1:
            raise ConfigError("exactly one of 'walk', 'animate' and 'wait' is required", valid="one of them")


class PersonScheduleNode(Node):
    """Makes a person execute tasks in order, once or repeatedly; a rejected task is logged and skipped.

    uses: <person>/movement (roboyard_msgs/ActorMovement), <person>/animation (roboyard_msgs/ActorAnimation)
    """

    person: str = resource(str)
    tasks: tuple[PersonTask, ...] = resource(tuple)
    repeat: bool = resource(bool)

    state_fields = ("_next_task", "_wait_until_ns")

    def setup(self) -> None:
        """Begin with the first task."""
        self._movement_client = self.action_client(
            f"/{self.person}/movement", action.ActorMovement, on_goal_restored=self._on_goal_restored
        )
        self._animation_client = self.action_client(
            f"/{self.person}/animation", action.ActorAnimation, on_goal_restored=self._on_goal_restored
        )
        self._next_task, self._wait_until_ns = 0, 0
        self._goal: GoalFuture | None = None
        self.timer(rate=20.0, callback=self._update)

    def _on_goal_restored(self, goal: GoalFuture) -> None:
        self._goal = goal

    def _update(self) -> None:
        goal = self._goal
        if goal is not None:
            if not goal.done():
                return
            self._goal = None
            if goal.error is not None:
                self.log.warn(f"{self.person}: {goal.error}")
                self._wait_until_ns = self.now_ns + round(_RETRY_DELAY * 1e9)
        if self.now_ns < self._wait_until_ns or not self.tasks:
            return
        if self._next_task >= len(self.tasks):
            if not self.repeat:
                return
            self._next_task = 0
        task = self.tasks[self._next_task]
        self._next_task += 1
        if task.wait is not None:
            self._wait_until_ns = self.now_ns + round(task.wait * 1e9)
        else:
            self._goal = self._send_goal(task)

    def _send_goal(self, task: PersonTask) -> GoalFuture:
        if task.walk is not None:
            x, y, *yaw = task.walk
            target = pose_to_msg(SE2(x, y, yaw[0] if yaw else 0.0))
            if not yaw:
                target.orientation = msg.Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)
            goal: Any = action.ActorMovement.Goal(
                animation_name=task.walk_animation, animation_distance=task.round_distance, target=target
            )
            return self._movement_client.send(goal)
        hand_target = msg.Point(*(task.hand_target or (0.0, 0.0, 0.0)))
        goal = action.ActorAnimation.Goal(
            animation_name=task.animate or "", animation_speed=task.speed, has_target=task.hand_target is not None,
            target=hand_target, hand=task.hand_side,
        )  # fmt: skip
        return self._animation_client.send(goal)


_RELOCATION_PERIOD = 0.5
_MAX_SPEED_AT_REST = 0.005
"""Speed below which an object is at rest [m/s]."""


class ObjectRelocationNodeConfig(Config):
    """Configuration of `ObjectRelocationNode`."""

    objects: tuple[str, ...] = parameter((), doc="Names of the objects, or prefixes of names.")
    source_sector: tuple[float, ...] = parameter(
        (), doc="Source: x, y, inner and outer radius [m], first and last angle [rad]."
    )
    target_sector: tuple[float, ...] = parameter(
        (), doc="Target: x, y, inner and outer radius [m], first and last angle [rad]."
    )
    settle_time: float = parameter(
        4.0, unit="s", low=0.0, high=1e6, runtime=True, doc="Time for which an object must rest in the source."
    )
    min_spacing: float = parameter(
        0.06,
        unit="m",
        low=0.0,
        high=10.0,
        runtime=True,
        doc="Least distance between the centers of objects in the target.",
    )
    robot: str = parameter("", doc="Robot whose gripper must be away; empty: none.")
    hand_link: str = parameter("gripper_palm", doc="Link of its gripper.")
    max_yaw: float = parameter(
        math.pi, unit="rad", low=0.0, high=math.pi, doc="Largest rotation in the target, to either side."
    )
    height_offset: float = parameter(0.0, unit="m", low=-10.0, high=10.0, doc="Height of the target above the source.")
    hand_clearance: float = parameter(
        0.2, unit="m", low=0.0, high=10.0, runtime=True, doc="Least horizontal distance of the gripper from both poses."
    )
    person_clearance: float = parameter(
        0.3,
        unit="m",
        low=0.0,
        high=10.0,
        runtime=True,
        doc="Least horizontal distance of people's joints from both poses.",
    )


class ObjectRelocationNode(Node[ObjectRelocationNodeConfig]):
    """Moves objects from one annular sector to another, without a body that could be touched.

    An object that has rested in ``source_sector`` for ``settle_time`` is put upright at a free pose in
    ``target_sector``, drawn by the run's seed, as soon as the robot's gripper is farther than ``hand_clearance`` from
    both poses and no person is within ``person_clearance`` of them.
    """

    simulation: Simulation = resource(Simulation)

    state_fields = ("_resting_since",)

    def setup(self) -> None:
        """Observe the objects."""
        self._source, self._target = (self._sector(name) for name in ("source_sector", "target_sector"))
        self._object_names = movable_objects(
            self.simulation, self.config.objects, f"{self.full_name}, parameter 'objects'"
        )
        self._resting_since: dict[str, float] = {}
        self.timer(period=_RELOCATION_PERIOD, callback=self._tick)

    def _sector(self, name: str) -> AnnularSector:
        values = getattr(self.config, name)
        if len(values) != 6 or not all(map(math.isfinite, values)) or values[2] > values[3] or values[4] > values[5]:
            parameter_location, valid = f"{self.full_name}, parameter {name!r}", "x, y, inner, outer radius, from, to"
            raise ConfigError(f"{list(values)}", location=parameter_location, valid=valid)
        return AnnularSector((values[0], values[1]), (values[2], values[3]), (values[4], values[5]))

    def _tick(self) -> None:
        truths = {
            name: self.simulation.ground_truth(name) for name in self._object_names if name in self.simulation.models
        }
        positions = {name: (float(state.T_world_base.x), float(state.T_world_base.y)) for name, state in truths.items()}
        for name, truth in truths.items():
            is_at_rest = float(np.abs(truth.linear_velocity).max()) < _MAX_SPEED_AT_REST
            if not (is_at_rest and _is_in_sector(self._source, *positions[name])):
                self._resting_since.pop(name, None)
            elif self.now - self._resting_since.setdefault(
                name, self.now
            ) >= self.config.settle_time and self._relocate(name, positions):
                self._resting_since.pop(name)

    def _relocate(self, name: str, positions: dict[str, tuple[float, float]]) -> bool:
        hand_position = self._hand_position()
        if (
            hand_position is not None and math.dist(hand_position, positions[name]) < self.config.hand_clearance
        ) or self._is_near_person(positions[name]):
            return False
        others = [position for other, position in positions.items() if other != name]
        try:
            (pose,) = sample_poses(self.random, self._target, 1, self.config.min_spacing, others, self.config.max_yaw)
        except InputError:  # no room now
            return False
        if (
            hand_position is not None and math.dist(hand_position, (pose.x, pose.y)) < self.config.hand_clearance
        ) or self._is_near_person((pose.x, pose.y)):
            return False
        first, _ = self.simulation.world.free_joint(name)
        height = float(self.simulation.world.data.qpos[first + 2]) + self.config.height_offset
        self.simulation.world.set_pose(name, SE2(pose.x, pose.y, pose.theta).to_se3(max(height, 0.0) + 1e-4))
        positions[name] = (pose.x, pose.y)
        self.log.info(f"{name} was laid out anew at {pose.x:.3f}, {pose.y:.3f}")
        return True

    def _is_near_person(self, position: tuple[float, float]) -> bool:
        """Return whether a person, above all a hand, is near a point."""
        soft_bodies = self.simulation.world.compliant_bodies
        rows = [row for links in soft_bodies.rows.values() for row in links.values()]
        return any(
            math.dist(position, (x, y)) < self.config.person_clearance
            for x, y, _ in soft_bodies.positions[rows].tolist()
        )

    def _hand_position(self) -> tuple[float, float] | None:
        if not self.config.robot or self.config.robot not in self.simulation.models:
            return None
        x, y, _ = link_pose(
            self.simulation.world.data, self.simulation.world.addresses(self.config.robot).links[self.config.hand_link]
        ).translation
        return float(x), float(y)


def movable_objects(simulation: Simulation, prefixes: tuple[str, ...], parameter_location: str) -> tuple[str, ...]:
    """Return the names of the objects that are not static and begin with one of ``beginnings``.

    Raises:
        ConfigError: There is no such object; ``location`` is the node that needs one.
    """
    models = simulation.models
    names = tuple(name for name in models if name.startswith(prefixes) and not models[name].model.static)
    if not prefixes or not names:
        raise ConfigError(
            f"no movable object has a name that begins with {list(prefixes)}",
            location=parameter_location,
            valid=", ".join(models),
        )
    return names


def _is_in_sector(sector: AnnularSector, x: float, y: float) -> bool:
    dx, dy = x - sector.center[0], y - sector.center[1]
    angle = (math.atan2(dy, dx) - sector.angle_range[0]) % math.tau
    return (
        sector.radius[0] <= math.hypot(dx, dy) <= sector.radius[1]
        and angle <= sector.angle_range[1] - sector.angle_range[0]
    )


_FEEDER_RATE = 10.0
_BELT_HEIGHT_TOLERANCE = 0.01
"""Largest difference in height between an object on a belt and the belt's surface [m]."""


@dataclass(frozen=True)
class BeltSurface:
    """Surface of a straight conveyor belt.

    Attributes:
        T_world_lane: Pose of its middle; x is the direction of transport.
        length: Length along x [m].
        width: Width along y [m].
    """

    T_world_belt: SE3
    length: float
    width: float

    def distance_along(self, point: np.ndarray) -> float | None:
        """Return the distance of a point (3,) from the beginning of the belt [m]; None if it is not on the belt."""
        x, y, z = (self.T_world_belt.inverse() @ point).tolist()
        is_on_belt = abs(x) <= 0.5 * self.length and abs(y) <= 0.5 * self.width and abs(z) <= _BELT_HEIGHT_TOLERANCE
        return x + 0.5 * self.length if is_on_belt else None


def belt_surfaces(simulation: Simulation) -> dict[str, BeltSurface]:
    """Return the surfaces of all straight belts by the names of their models: boxes that transport along an edge."""
    surfaces = {}
    for name, handle in simulation.models.items():
        plugins = [plugin for plugin in handle.model.plugins if plugin.filename == PLUGIN_FILENAME]
        device = read_moving_device(handle.model) if plugins else None
        if device is None or device.kind != "conveyor":
            continue
        link = next(candidate for candidate in handle.model.links if candidate.name == device.element)
        box = next((candidate for candidate in link.collisions if isinstance(candidate.geometry, Box)), None)
        if box is None or not isinstance(box.geometry, Box) or abs(abs(device.direction[0]) - 1.0) > 1e-6:
            continue
        length, width, height = box.geometry.size
        top = SE3.from_xyz_rpy((0.0, 0.0, 0.5 * height), (0.0, 0.0, 0.0 if device.direction[0] > 0.0 else math.pi))
        T_world = simulation.ground_truth(name).T_world_base
        surfaces[name] = BeltSurface(T_world @ link.T_model_link @ box.T_link_geom @ top, length, width)
    return surfaces


class BeltFeederNodeConfig(Config):
    """Configuration of `BeltFeederNode`."""

    belt: str = parameter("", doc="Name of the belt in the world.")
    objects: tuple[str, ...] = parameter((), doc="Names of the objects, or prefixes of names.")
    spacing: tuple[float, ...] = parameter(
        (0.1, 0.2), unit="m", doc="Smallest and largest distance between the centers of objects."
    )
    lateral_offset: float = parameter(
        0.0, unit="m", low=0.0, high=1.0, doc="Largest distance from the belt's middle, to either side."
    )
    yaw_noise: float = parameter(math.pi, unit="rad", low=0.0, high=math.pi, doc="Largest rotation, to either side.")
    yaw: float = parameter(0.0, unit="rad", low=-math.pi, high=math.pi, doc="Mean heading of the objects.")
    start_margin: float = parameter(
        0.05,
        unit="m",
        low=0.0,
        high=100.0,
        runtime=True,
        doc="Distance from the belt's beginning at which objects are put.",
    )
    end_margin: float = parameter(
        0.05,
        unit="m",
        low=0.0,
        high=100.0,
        runtime=True,
        doc="Distance from the belt's end at which objects are removed.",
    )
    robot: str = parameter("", doc="Robot whose objects are not moved; empty: none.")
    robot_radius: float = parameter(
        0.5,
        unit="m",
        low=0.0,
        high=100.0,
        runtime=True,
        doc="Distance from the robot's base within which objects are not moved.",
    )


class BeltFeederNode(Node[BeltFeederNodeConfig]):
    """Feeds a belt with objects, without a body that could be touched.

    The object that has waited longest is put upright on the beginning of ``belt`` as soon as the object before it has
    moved by a gap that is drawn by the run's seed.  Objects wait if they are on no belt and farther than
    ``robot_radius`` from the robot.  An object that reaches the last ``end_margin`` of a belt is returned to its
    initial pose.
    """

    simulation: Simulation = resource(Simulation)

    state_fields = ("_last_placed", "_next_spacing", "_waiting_objects")

    def setup(self) -> None:
        """Observe the objects and belts."""
        self._belts = belt_surfaces(self.simulation)
        if self.config.belt not in self._belts:
            parameter_location, available_belts = (
                f"{self.full_name}, parameter 'belt'",
                ", ".join(self._belts) or "none (add a conveyor to devices)",
            )
            raise ConfigError(
                f"{self.config.belt!r} is no belt of this run", location=parameter_location, valid=available_belts
            )
        self._object_names = movable_objects(
            self.simulation, self.config.objects, f"{self.full_name}, parameter 'objects'"
        )
        if len(self.config.spacing) != 2 or not 0.0 < self.config.spacing[0] <= self.config.spacing[1] < math.inf:
            parameter_location = f"{self.full_name}, parameter 'spacing'"
            raise ConfigError(
                f"{list(self.config.spacing)}", location=parameter_location, valid="least and greatest, above 0"
            )
        self._initial_poses = {name: self.simulation.ground_truth(name).T_world_base for name in self._object_names}
        self._last_placed, self._next_spacing = "", 0.0
        self._waiting_objects = list(self._object_names)
        self.timer(rate=_FEEDER_RATE, callback=self._tick)

    def _tick(self) -> None:
        for name in self._object_names:
            if self._is_at_belt_end(name):
                self.simulation.world.set_pose(name, self._initial_poses[name])
        positions = {
            name: np.array(self.simulation.ground_truth(name).T_world_base.translation) for name in self._object_names
        }
        waiting = [name for name in self._object_names if self._is_waiting(positions[name])]
        self._waiting_objects = [name for name in self._waiting_objects if name in waiting]
        self._waiting_objects += [name for name in waiting if name not in self._waiting_objects]
        distance = (
            self._belts[self.config.belt].distance_along(positions[self._last_placed]) if self._last_placed else None
        )
        if self._waiting_objects and (distance is None or distance >= self.config.start_margin + self._next_spacing):
            self._place_on_belt(self._waiting_objects.pop(0))

    def _is_at_belt_end(self, name: str) -> bool:
        point = np.array(self.simulation.ground_truth(name).T_world_base.translation)
        return any(
            distance is not None and distance >= belt.length - self.config.end_margin
            for belt in self._belts.values() for distance in [belt.distance_along(point)]
        )  # fmt: skip

    def _is_waiting(self, point: np.ndarray) -> bool:
        if any(belt.distance_along(point) is not None for belt in self._belts.values()):
            return False
        if not self.config.robot:
            return True
        base = self.simulation.ground_truth(self.config.robot).T_world_base.translation
        return math.dist(point[:2], base[:2]) >= self.config.robot_radius

    def _place_on_belt(self, name: str) -> None:
        belt = self._belts[self.config.belt]
        lateral_offset, yaw_noise = (
            self.random.uniform(-self.config.lateral_offset, self.config.lateral_offset),
            self.random.uniform(-self.config.yaw_noise, self.config.yaw_noise),
        )
        self._next_spacing = float(self.random.uniform(self.config.spacing[0], self.config.spacing[1]))
        T_belt_object = SE3.from_xyz_rpy(
            (self.config.start_margin - 0.5 * belt.length, lateral_offset, 1e-4),
            (0.0, 0.0, self.config.yaw + yaw_noise),
        )
        self.simulation.world.set_pose(name, belt.T_world_belt @ T_belt_object)
        self._last_placed = name
        self.log.info(f"{name} was laid on {self.config.belt}")
