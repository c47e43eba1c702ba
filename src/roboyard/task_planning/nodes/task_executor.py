"""The node that executes tasks: goals from a list or at random, planned, executed as trees, and replanned; and its
observation of conditions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np

from roboyard.behavior.basic_types import NodeStatus
from roboyard.behavior.errors import InvalidTreeError, TreeNodeError
from roboyard.behavior.nodes.leaf_host import LeafHostNode, create_host_factory
from roboyard.behavior.tree import Tree
from roboyard.behavior.tree_drawing import tree_to_text
from roboyard.behavior.tree_node import ExecutionError, TreeNode
from roboyard.bus import Node, TransformError, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import ConfigError, RoboyardError, RunError
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.grids.distance_field import squared_distance_transform
from roboyard.grids.regions import label_components
from roboyard.manipulation.semantics.planning_groups import SemanticDescription
from roboyard.messages import message_type, msg
from roboyard.messages.convert.grids import occupancy_grid_from_msg
from roboyard.messages.time import time_to_msg
from roboyard.navigation.costmap.reachability import sample_reachable_poses
from roboyard.navigation.footprint import DEFAULT_RADIUS, Footprint
from roboyard.navigation.planners.fast_marching import travel_cost_function
from roboyard.task_planning import RetryConfig, TaskExecutor, load_tasks
from roboyard.task_planning.domain import Value
from roboyard.task_planning.search import max_precondition_cost, search_backward
from roboyard.task_planning.task_executor import UNKNOWN_PLACE, TaskEvent, validate_action_trees
from roboyard.task_planning.task_file import (
    ObservationConfig,
    PathLength,
    Place,
    TaskFile,
    straight_line_distance,
)


class StateObserver:
    """Observes the conditions of a task file: by the robot's place, by the arm's named pose, and by topics.

    Attributes:
        values: Last values from topics; plain data.
        joints: Positions of joints; plain data.
    """

    def __init__(
        self, node: Node, tasks: TaskFile, groups: SemanticDescription | None, map_frame: str, base_frame: str
    ) -> None:
        self.values: dict[str, Value] = {}
        self.joints: dict[str, float] = {}
        self._node, self._groups = node, groups
        self._frames = node.frame(map_frame), node.frame(base_frame)
        self._readers: dict[str, Callable[[Place | None, Mapping[str, Place], Value], Value | None]] = {}
        for name, observation in tasks.observations.items():
            self._connect(name, observation)

    def _connect(self, name: str, observation: ObservationConfig) -> None:
        if observation.topic:
            self._node.subscribe(
                observation.topic, message_type(observation.type), partial(self._on_message, name, observation.field)
            )
        elif observation.near_place is not None:
            self._readers[name] = partial(_nearest_place, observation.near_place)
        else:
            if self._groups is None:
                raise ConfigError(
                    "there is no arm",
                    location=f"observations.{name}.near_arm_pose",
                    valid="a robot with groups of joints",
                )
            if not self.joints:
                self._node.subscribe("joint_states", msg.JointState, self._on_joints)
            self._readers[name] = partial(self._nearest_arm_pose, observation.near_arm_pose or 0.0)

    def _on_message(self, name: str, field: str, message: Any) -> None:
        value = reduce(getattr, field.split("."), message)
        self.values[name] = value if isinstance(value, (str, bool, int, float)) else str(value)

    def _on_joints(self, message: Any) -> None:
        self.joints.update(zip(message.name, map(float, message.position), strict=False))

    def robot_pose(self) -> Place | None:
        """Return the pose of the robot in the map; None if it is not known."""
        try:
            pose = SE2.from_se3(self._node.transforms.lookup(*self._frames))
        except TransformError:
            return None
        return pose.x, pose.y, pose.theta

    def __call__(
        self, robot_pose: Place | None, places: Mapping[str, Place], believed: Mapping[str, Value]
    ) -> dict[str, Value]:
        """Return the observed conditions; if several places are near, the believed one."""
        read = {name: reader(robot_pose, places, believed.get(name)) for name, reader in self._readers.items()}
        return {**self.values, **{name: value for name, value in read.items() if value is not None}}

    def _nearest_arm_pose(self, max_error: float, *_: object) -> Value | None:
        group = None if self._groups is None else self._groups.group(None)
        if group is None or any(joint not in self.joints for joint in group.joints):
            return None
        joint_positions = [self.joints[joint] for joint in group.joints]
        errors = {
            name: max(abs(a - b) for a, b in zip(joint_positions, pose, strict=True))
            for name, pose in group.poses.items()
        }
        best = min(errors, key=lambda name: errors[name], default=None)
        return best if best is not None and errors[best] <= max_error else UNKNOWN_PLACE


def _nearest_place(
    max_distance: float, robot_pose: Place | None, places: Mapping[str, Place], believed: Value
) -> Value | None:
    if robot_pose is None:
        return None
    distances = {name: math.hypot(place[0] - robot_pose[0], place[1] - robot_pose[1]) for name, place in places.items()}
    if isinstance(believed, str) and distances.get(believed, math.inf) <= max_distance:
        return believed
    best = min(distances, key=lambda name: distances[name], default=None)
    return best if best is not None and distances[best] <= max_distance else UNKNOWN_PLACE


_STEP_EVENTS = ("started", "succeeded", "failed")
_POINT_CLEARANCE = 0.1
"""Clearance around the robot at random points, beyond its radius [m]."""


class TaskExecutorNodeConfig(Config):
    """Configuration of `TaskExecutorNode`."""

    file: str = parameter("", doc="File of the tasks.")
    goals: tuple[str, ...] = parameter((), doc="Names of its goals, in order; empty: all goals.")
    random_goals: int = parameter(
        0, low=0, high=10_000, doc="Number of goals that are drawn at random; 0: each goal once."
    )
    random_points: int = parameter(0, low=0, high=100, doc="Number of random reachable places `point 1`, ….")
    random_radius: float = parameter(
        6.0, unit="m", low=0.5, high=1e4, doc="Largest distance of these points from the start."
    )
    measure_paths: bool = parameter(True, doc="Whether costs use path lengths in the map; false: straight lines.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the ticks.")
    start_time: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="Time of the start.")
    retries: RetryConfig = parameter(factory=RetryConfig, flatten="", doc="Repetition of failed steps.")
    map_frame: str = parameter("map", doc="Frame of the map.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")


class TaskExecutorNode(LeafHostNode[TaskExecutorNodeConfig]):
    """Executes goals of a task file, one after the other, until each is reached or known to be infeasible.

    actions, services: as in the behaviors of the file's actions (client)
    in: ~/add (std_msgs/String): one more goal of the file, by its name
    in: map (nav_msgs/OccupancyGrid), /tf, joint_states (sensor_msgs/JointState) and the topics of the file's
        ``observations``
    out: tasks (std_msgs/String): events, JSON: {task, goal, kind, reason, steps, expected_feasible,
        expected_positions, n_tasks}; kind is ``planned``, ``started``, ``succeeded``, ``failed``, ``invalidated``,
        ``preempted``, ``reached`` or ``infeasible``
    out: skills/events (roboyard_msgs/SkillEvent): start and end of each step
    out: ~/status (std_msgs/String): RUNNING, SUCCESS or FAILURE, latched
    out: ~/tree (std_msgs/String): the present plan as a tree, latched
    out: ~/events (std_msgs/String): as `TreeExecutorNode`
    """

    groups: SemanticDescription | None = resource(SemanticDescription, optional=True)
    footprint: FootprintPolygon | None = resource(tuple, optional=True)

    def running_tree(self) -> Tree | None:
        """See `LeafHostNode.running_tree`."""
        return None if self._executor is None else self._executor.tree

    def setup(self) -> None:
        """Read the file, and build the tree of each action to check it."""
        expect_kernels(max_precondition_cost, search_backward)
        if self.config.random_points:
            expect_kernels(squared_distance_transform, label_components)
        self.create_leaf_host()
        if not self.config.file:
            raise ConfigError("no tasks", location=f"{self.full_name}: file", valid="a file of tasks in YAML")
        self._tasks = load_tasks(self.config.file)
        self._factory = create_host_factory(self)
        names = self.config.goals or tuple(self._tasks.goals)
        if not names:
            raise ConfigError("no goals", location=f"{self.full_name}: goals", valid="names of goals of the file")
        for tree in validate_action_trees(self._tasks, names, self._factory):
            tree.close()
        if self.config.random_goals:
            names = tuple(str(name) for name in self.random.choice(np.array(names), self.config.random_goals))
        self._names = names
        self._map: Any = None
        self._executor: TaskExecutor | None = None
        self._changes: list[tuple[int, str, str, str]] = []
        self._published_tree = ""
        self._n_steps = 0
        self._status = NodeStatus.IDLE
        self._observer = StateObserver(self, self._tasks, self.groups, self.config.map_frame, self.config.base_frame)
        self.subscribe("map", msg.OccupancyGrid, self._on_map)
        self.subscribe("~/add", msg.String, self._on_add)
        self._tasks_out = self.publisher("tasks", msg.String)
        self._status_out = self.publisher("~/status", msg.String, latched=True)
        self._steps_out = self.publisher("skills/events", msg.SkillEvent)
        self._tree_out = self.publisher("~/tree", msg.String, latched=True)
        self._events_out = self.publisher("~/events", msg.String)
        self.timer(rate=self.config.rate, callback=self._tick)

    def _on_map(self, message: Any) -> None:
        self._map = message

    @property
    def goal_names(self) -> tuple[str, ...]:
        """Return the names of the goals of the file."""
        return tuple(self._tasks.goals)

    def _on_add(self, message: Any) -> None:
        """Add one more goal of the file."""
        name = str(message.data)
        try:
            for tree in validate_action_trees(self._tasks, (name,), self._factory):
                tree.close()
        except RoboyardError as error:
            self.log.warn(f"the goal {name!r} is rejected: {error}")
            return
        self._names = (*self._names, name)
        if self._executor is not None:
            self._executor.add_goal(name)
        if self._status in (NodeStatus.SUCCESS, NodeStatus.FAILURE):
            self._status = NodeStatus.IDLE
        self.log.info(f"added the task {name}")

    # -- the beginning -------------------------------------------------------------------------------------------------
    def _start(self) -> None:
        """Draw random points and start, once map and pose are known."""
        robot_pose = self._observer.robot_pose()
        if self.config.random_points:
            if self._map is None or robot_pose is None:
                return
            clearance = self._radius() + _POINT_CLEARANCE
            grid = occupancy_grid_from_msg(self._map)
            poses = sample_reachable_poses(
                grid,
                SE2(*robot_pose),
                self.config.random_points,
                self.random,
                clearance=clearance,
                max_distance=self.config.random_radius,
            )
            if not poses:
                self.log.error(
                    f"no random points: the ground within {clearance:.2f} m of the robot is not free", throttle=10.0
                )
                return
            random_places = {f"point {n}": (pose.x, pose.y, pose.theta) for n, pose in enumerate(poses, 1)}
            self._tasks = self._tasks.with_places(random_places)
        self._executor = self._make_executor()

    def _make_executor(self) -> TaskExecutor:
        return TaskExecutor(
            self._tasks,
            self._names,
            self._factory,
            path_length=self._path_length,
            retries=self.config.retries,
            status_callback=self._on_status_change,
        )

    def _radius(self) -> float:
        return Footprint(np.array(self.footprint)).circumscribed_radius if self.footprint else DEFAULT_RADIUS

    def _path_length(self, a: Place, b: Place) -> float:
        if not self.config.measure_paths or self._map is None:
            return straight_line_distance(a, b)
        return self._map_path_length(occupancy_grid_from_msg(self._map))(a, b)

    def _map_path_length(self, grid: OccupancyGrid) -> PathLength:
        if getattr(self, "_cached_path_length", (None, None))[0] is not self._map:
            radius = Footprint(np.array(self.footprint)).inscribed_radius if self.footprint else DEFAULT_RADIUS
            self._cached_path_length = (self._map, travel_cost_function(grid, radius))
        return self._cached_path_length[1]

    # -- ticks ---------------------------------------------------------------------------------------------------------
    def _on_status_change(self, node: TreeNode, previous: NodeStatus, status: NodeStatus) -> None:
        self._changes.append((node.uid, node.path, previous.name, status.name))

    def _tick(self) -> None:
        if self.now < self.config.start_time - 1e-9 or self._status in (NodeStatus.SUCCESS, NodeStatus.FAILURE):
            return
        if self._executor is None:
            self._start()
        executor = self._executor
        if executor is None:
            return
        robot_pose = self._observer.robot_pose()
        try:
            status = executor.tick(
                self.now_ns, self._observer(robot_pose, self._tasks.places, executor.state.world), robot_pose
            )
        except (ExecutionError, TreeNodeError) as error:
            executor.halt()
            self.log.error(str(error))
            raise RunError(f"a plan's tree failed: {error}", location=self.full_name) from error
        self._publish_events(executor)
        if status is not self._status:
            self._status = status
            self._status_out.publish(msg.String(data=status.name))
        self.drop_finished_goals(executor.tree)

    def _publish_events(self, executor: TaskExecutor) -> None:
        for event in executor.events:
            goal = self._tasks.goals[event.goal]
            data = {
                "task": event.task,
                "goal": event.goal,
                "kind": event.kind,
                "reason": event.reason,
                "steps": event.steps,
                "expected_feasible": goal.expected_feasible,
                "expected_positions": goal.expected_positions,
                "n_tasks": len(executor.goals),
            }
            self._tasks_out.publish(msg.String(data=json.dumps(data)))
            if event.kind in _STEP_EVENTS:
                self._publish_step_event(event)
            if event.kind in ("started", "succeeded"):
                continue
            self.log.info(
                f"task {event.task + 1}, {event.goal}: {event.kind}" + (f", {event.reason}" if event.reason else "")
            )
        executor.events.clear()
        if self._changes:
            self._events_out.publish(msg.String(data=json.dumps(self._changes)))
            self._changes.clear()
        text = "" if executor.tree is None else tree_to_text(executor.tree)
        if text != self._published_tree:
            self._published_tree = text
            self._tree_out.publish(msg.String(data=text))

    def _publish_step_event(self, event: TaskEvent) -> None:
        """Publish a step as an event of skills, so that faults can be triggered by it."""
        is_success, is_start = event.kind == "succeeded", event.kind == "started"
        self._n_steps += is_start
        skill_event = msg.SkillEvent(
            skill=re.sub(r"\W", "_", event.action), id=self._n_steps, event="started" if is_start else "finished",
            success=is_success, message=event.reason, error_code="" if is_start or is_success else "failed",
        )  # fmt: skip
        skill_event.header.stamp = time_to_msg(self.now_ns)
        self._steps_out.publish(skill_event)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        executor = self._executor
        try:
            saved = None if executor is None else executor.save_state()
        except TreeNodeError as error:
            raise RunError(f"cannot be saved: {error}", location=f"node {self.full_name}", valid=error.valid) from None
        observations = dict(self._observer.values), dict(self._observer.joints)
        return super().save_state() | {
            "executor": saved, "places": dict(self._tasks.places), "observations": observations, "map": self._map,
            "published_tree": self._published_tree, "n_steps": self._n_steps, "status": self._status.name,
            "goal_names": list(self._names),
        }  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the result of `save_state`."""
        super().load_state(state)
        self._map, self._published_tree, self._status = (
            state["map"],
            state["published_tree"],
            NodeStatus[state["status"]],
        )
        self._n_steps, self._names = state["n_steps"], tuple(state["goal_names"])
        values, joints = state["observations"]
        self._observer.values.update(values)
        self._observer.joints.update(joints)
        self._tasks = self._tasks.with_places(state["places"])
        self._executor = None
        if state["executor"] is not None:
            self._executor = self._make_executor()
            try:
                self._executor.load_state(state["executor"])
            except (TreeNodeError, InvalidTreeError) as error:
                raise RunError(str(error), location=f"node {self.full_name}") from None
