"""The node that pursues goals: tasks from a list or at random, planned, carried out by trees, planned anew."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from roboyard.behavior.errors import ExecutionError, TreeError, TreeNodeError
from roboyard.behavior.factory import Factory
from roboyard.behavior.goals import Pursuit, RetryConfig, load_tasks
from roboyard.behavior.goals.file import Place, Way, straight
from roboyard.behavior.goals.pursuit import Event, rehearsed
from roboyard.behavior.goals.search import dearest_need, search
from roboyard.behavior.node import TreeNode
from roboyard.behavior.nodes.desk import DeskNode
from roboyard.behavior.nodes.leaves import bind
from roboyard.behavior.nodes.senses import Senses
from roboyard.behavior.show import as_text
from roboyard.behavior.status import Status
from roboyard.behavior.tree import Tree
from roboyard.bus import resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import ConfigError, RoboyardError, RunError
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.grids.distance_field import squared_distance_transform
from roboyard.grids.regions import label_components
from roboyard.manipulation.groups import Groups
from roboyard.messages import msg
from roboyard.messages.convert.grids import occupancy_grid_from_msg
from roboyard.messages.time import time_to_msg
from roboyard.navigation.costmap.reachability import sample_reachable_poses
from roboyard.navigation.footprint import DEFAULT_RADIUS, Footprint
from roboyard.navigation.planners.fast_marching import travel_cost_function

_STEPS = ("does", "did", "fails")
_ROOM = 0.1
"""Beyond the robot's corners, at points that are drawn [m]."""


class GoalMissionNodeConfig(Config):
    """Configuration of `GoalMissionNode`."""

    file: str = parameter("", doc="File of the tasks.")
    goals: tuple[str, ...] = parameter((), doc="Names of its goals, in turn; empty: all of them.")
    draw: int = parameter(0, low=0, high=10_000, doc="Number of goals drawn at random, instead of each once.")
    points: int = parameter(0, low=0, high=100, doc="Number of random places 'point 1' … that a path leads to.")
    within: float = parameter(6.0, unit="m", low=0.5, high=1e4, doc="Largest distance of these points from the start.")
    measure: bool = parameter(True, doc="Measure paths over the map; false: straight lines.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the ticks.")
    start: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="Time of the start.")
    retries: RetryConfig = parameter(factory=RetryConfig, flatten="", doc="How often steps are tried.")
    map_frame: str = parameter("map", doc="Frame of the map.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")


class GoalMissionNode(DeskNode[GoalMissionNodeConfig]):
    """Pursues goals of a file of tasks, one after the other, until each is reached or known to be impossible.

    actions, services: as what the file's actions do (client)
    in: ~/add (std_msgs/String): one more goal of the file, by its name
    in: map (nav_msgs/OccupancyGrid), /tf, joint_states (sensor_msgs/JointState) and what the file's ``senses`` name
    out: tasks (std_msgs/String): what happened, JSON: {task, goal, what, why, steps, possible, ends, of}; what is
        ``plans``, ``does``, ``did``, ``fails``, ``changes``, ``leaves``, ``reached`` or ``impossible``
    out: skills/events (roboyard_msgs/SkillEvent): begin and end of each step
    out: ~/status (std_msgs/String): RUNNING, SUCCESS or FAILURE, latched
    out: ~/tree (std_msgs/String): the plan under way as a tree, latched
    out: ~/events (std_msgs/String): as `TreeMissionNode`
    """

    groups: Groups | None = resource(Groups, optional=True)
    footprint: FootprintPolygon | None = resource(tuple, optional=True)

    def running_tree(self) -> Tree | None:
        """See `DeskNode.running_tree`."""
        return None if self._pursuit is None else self._pursuit.tree

    def setup(self) -> None:
        """Read the file, and try every action's tree."""
        expect_kernels(dearest_need, search)
        if self.config.points:
            expect_kernels(squared_distance_transform, label_components)
        self.open_desk()
        if not self.config.file:
            raise ConfigError("no tasks", location=f"{self.full_name}: file", valid="a file of tasks in YAML")
        self._tasks = load_tasks(self.config.file)
        self._factory = Factory(plugins=True)
        bind(self._factory, self)
        names = self.config.goals or tuple(self._tasks.goals)
        if not names:
            raise ConfigError("no goals", location=f"{self.full_name}: goals", valid="names of goals of the file")
        for tree in rehearsed(self._tasks, names, self._factory):
            tree.close()
        if self.config.draw:
            names = tuple(str(name) for name in self.random.choice(np.array(names), self.config.draw))
        self._names = names
        self._map: Any = None
        self._pursuit: Pursuit | None = None
        self._changes: list[tuple[int, str, str, str]] = []
        self._told = ""
        self._numbers = 0
        self._status = Status.IDLE
        self._senses = Senses(self, self._tasks, self.groups, self.config.map_frame, self.config.base_frame)
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
    def offered(self) -> tuple[str, ...]:
        """Names of the file's goals."""
        return tuple(self._tasks.goals)

    def _on_add(self, message: Any) -> None:
        """Somebody wants one more goal of the file pursued."""
        name = str(message.data)
        try:
            for tree in rehearsed(self._tasks, (name,), self._factory):
                tree.close()
        except RoboyardError as error:
            self.log.warn(f"{name!r} is not pursued: {error}")
            return
        self._names = (*self._names, name)
        if self._pursuit is not None:
            self._pursuit.add(name)
        if self._status in (Status.SUCCESS, Status.FAILURE):
            self._status = Status.IDLE
        self.log.info(f"one more task: {name}")

    # -- the beginning -------------------------------------------------------------------------------------------------
    def _begin(self) -> None:
        """Draw points and begin, once map and place are known."""
        here = self._senses.here()
        if self.config.points:
            if self._map is None or here is None:
                return
            room = self._radius() + _ROOM
            grid = occupancy_grid_from_msg(self._map)
            found = sample_reachable_poses(
                grid, SE2(*here), self.config.points, self.random, clearance=room, max_distance=self.config.within
            )
            if not found:
                self.log.error(f"no points: about the robot there are no {room:.2f} m of free ground", throttle=10.0)
                return
            drawn = {f"point {n}": (pose.x, pose.y, pose.theta) for n, pose in enumerate(found, 1)}
            self._tasks = self._tasks.with_places(drawn)
        self._pursuit = self._made()

    def _made(self) -> Pursuit:
        return Pursuit(
            self._tasks, self._names, self._factory, way=self._way, retries=self.config.retries, watcher=self._note
        )  # fmt: skip

    def _radius(self) -> float:
        return Footprint(np.array(self.footprint)).circumscribed_radius if self.footprint else DEFAULT_RADIUS

    def _way(self, a: Place, b: Place) -> float:
        if not self.config.measure or self._map is None:
            return straight(a, b)
        return self._ways(occupancy_grid_from_msg(self._map))(a, b)

    def _ways(self, grid: OccupancyGrid) -> Way:
        if getattr(self, "_ways_of", (None, None))[0] is not self._map:
            radius = Footprint(np.array(self.footprint)).inscribed_radius if self.footprint else DEFAULT_RADIUS
            self._ways_of = (self._map, travel_cost_function(grid, radius))
        return self._ways_of[1]

    # -- ticks ---------------------------------------------------------------------------------------------------------
    def _note(self, node: TreeNode, before: Status, after: Status) -> None:
        self._changes.append((node.uid, node.path, before.name, after.name))

    def _tick(self) -> None:
        if self.now < self.config.start - 1e-9 or self._status in (Status.SUCCESS, Status.FAILURE):
            return
        if self._pursuit is None:
            self._begin()
        pursuit = self._pursuit
        if pursuit is None:
            return
        here = self._senses.here()
        try:
            status = pursuit.tick(self.now_ns, self._senses(here, self._tasks.places, pursuit.world), here)
        except (ExecutionError, TreeNodeError) as error:
            pursuit.halt()
            self.log.error(str(error))
            raise RunError(f"a plan's tree failed: {error}", location=self.full_name) from error
        self._tell(pursuit)
        if status is not self._status:
            self._status = status
            self._status_out.publish(msg.String(data=status.name))
        self.forget_goals(pursuit.tree)

    def _tell(self, pursuit: Pursuit) -> None:
        for event in pursuit.events:
            goal = self._tasks.goals[event.goal]
            said = {
                "task": event.task, "goal": event.goal, "what": event.what, "why": event.why, "steps": event.steps,
                "possible": goal.possible, "ends": goal.ends, "of": len(pursuit.goals),
            }  # fmt: skip
            self._tasks_out.publish(msg.String(data=json.dumps(said)))
            if event.what in _STEPS:
                self._tell_step(event)
            if event.what in ("does", "did"):
                continue
            self.log.info(
                f"task {event.task + 1}, {event.goal}: {event.what}" + (f", {event.why}" if event.why else "")
            )
        pursuit.events.clear()
        if self._changes:
            self._events_out.publish(msg.String(data=json.dumps(self._changes)))
            self._changes.clear()
        text = "" if pursuit.tree is None else as_text(pursuit.tree)
        if text != self._told:
            self._told = text
            self._tree_out.publish(msg.String(data=text))

    def _tell_step(self, event: Event) -> None:
        """A step in the words of skills, so that faults can wait for it."""
        done, begins = event.what == "did", event.what == "does"
        self._numbers += begins
        said = msg.SkillEvent(
            skill=re.sub(r"\W", "_", event.action), id=self._numbers, event="started" if begins else "finished",
            success=done, message=event.why, error_code="" if begins or done else "failed",
        )  # fmt: skip
        said.header.stamp = time_to_msg(self.now_ns)
        self._steps_out.publish(said)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        pursuit = self._pursuit
        try:
            saved = None if pursuit is None else pursuit.save_state()
        except TreeNodeError as error:
            raise RunError(f"cannot be saved: {error}", location=f"node {self.full_name}", valid=error.valid) from None
        senses = dict(self._senses.values), dict(self._senses.joints)
        return super().save_state() | {
            "pursuit": saved, "places": dict(self._tasks.places), "senses": senses, "map": self._map,
            "told": self._told, "numbers": self._numbers, "status": self._status.name,
            "names": list(self._names),
        }  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._map, self._told, self._status = state["map"], state["told"], Status[state["status"]]
        self._numbers, self._names = state["numbers"], tuple(state["names"])
        values, joints = state["senses"]
        self._senses.values.update(values)
        self._senses.joints.update(joints)
        self._tasks = self._tasks.with_places(state["places"])
        self._pursuit = None
        if state["pursuit"] is not None:
            self._pursuit = self._made()
            try:
                self._pursuit.load_state(state["pursuit"])
            except (TreeNodeError, TreeError) as error:
                raise RunError(str(error), location=f"node {self.full_name}") from None
