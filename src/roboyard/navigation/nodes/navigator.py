"""The navigator node: goals, the map, scans and transforms in; commands, paths and costmaps out."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import GoalHandle, Node, TransformError, resource
from roboyard.config import Config, parameter
from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.control.drive_config import DriveLimits
from roboyard.control.throttle import Throttle
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import (
    grid_origin,
    grid_to_array,
    path_to_array,
    path_to_msg,
    pose_to_se2,
)
from roboyard.messages.time import duration_to_msg
from roboyard.navigation.driving import (
    Body,
    Driver,
    NavigatorSettings,
    Situation,
    Surroundings,
    make_controller,
    make_planner,
    plan_through,
)
from roboyard.navigation.errors import GoalInvalid, NavigationError, PoseUnknown, SensorSilent
from roboyard.navigation.nodes.errand_desk import Desk
from roboyard.navigation.nodes.errands import Errand, Places
from roboyard.navigation.nodes.navigator_messages import costmap_message, planning_number
from roboyard.navigation.nodes.robot_body import limits_of, padded_footprint
from roboyard.navigation.nodes.sources import Source
from roboyard.navigation.speed_limit import SpeedLimit, tightest


class NavigatorNodeConfig(Config):
    """Configuration of `NavigatorNode`."""

    navigation: NavigatorSettings = parameter(
        factory=NavigatorSettings, flatten="", doc="Planner, controller, costmaps, recovery and paces."
    )
    rate: float = parameter(20.0, unit="Hz", low=1.0, high=200.0, doc="Rate of the published commands.")
    global_frame: str = parameter("map", doc="Frame of goals and plans; without localization the odometry's frame.")
    odom_frame: str = parameter("odom", doc="Frame of the odometry.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    map_topic: str = parameter("map", doc="Topic of the map; empty: plan without a map.")
    sensor_timeout: float = parameter(
        0.5, unit="s", low=0.02, high=60.0, doc="Silence of a sensor after which the robot stops."
    )
    transform_timeout: float = parameter(
        0.5, unit="s", low=0.02, high=60.0, runtime=True, doc="Age of the pose from which the robot stops."
    )
    hold_time: float = parameter(
        5.0, unit="s", low=0.0, high=3600.0, runtime=True, doc="Longest wait for sensor and pose."
    )
    costmap_rate: float = parameter(1.0, unit="Hz", low=0.0, high=50.0, doc="Rate of the published costmaps; 0: none.")
    padding: float = parameter(0.02, unit="m", low=0.0, high=10.0, doc="Clearance around the footprint.")


class NavigatorNode(Node[NavigatorNodeConfig]):
    """Brings the robot where goals say, and says why when it cannot.

    in: map, keepout_mask, speed_mask (nav_msgs/OccupancyGrid), what the costmaps' sensors publish
        (sensor_msgs/LaserScan, PointCloud2, Range), odom (nav_msgs/Odometry), goal_pose, move_base_simple/goal
        (geometry_msgs/PoseStamped), speed_limit (nav2_msgs/SpeedLimit), /tf map → odom → base and → sensors
    out: cmd_vel, plan (nav_msgs/Path), global_costmap/costmap, local_costmap/costmap (nav_msgs/OccupancyGrid),
        ~/status (roboyard_msgs/NavigationStatus)
    actions: navigate_to_pose, approach_pose (as near as it can), navigate_through_poses, follow_waypoints, move_base,
        follow_path, spin, backup, drive_on_heading, wait, compute_path_to_pose, compute_path_through_poses
    services: clear_costmaps (std_srvs/Empty), clear_around_costmaps (nav2_msgs/ClearCostmapAroundRobot),
        clear_except_costmaps (nav2_msgs/ClearCostmapExceptRegion)

    It stands still, and says so, while a sensor is silent for ``sensor_timeout`` or the robot's pose is older than
    ``transform_timeout``; after ``hold_time`` of that it gives the goal up.
    """

    footprint: FootprintPolygon | None = resource(tuple, optional=True)
    drive_limits: DriveLimits | None = resource(DriveLimits, optional=True)

    state_fields = ("_twist", "_held_since", "_limit")

    def setup(self) -> None:
        """Connect."""
        chosen, period = self.config.navigation, 1.0 / self.config.rate
        footprint = padded_footprint(self.footprint, self.config.padding)
        own = padded_footprint(self.footprint, 0.0)
        body = Body(footprint, own, limits_of(chosen.pace, self.drive_limits), period)
        self._surroundings = Surroundings(chosen.costmap, footprint, own.corners)
        controller = make_controller(chosen.controller, body, chosen.tolerance, reverse=chosen.pace.reverse)
        planner = make_planner(chosen.planner, footprint, chosen.smoothing)
        self._driver = Driver(planner, controller, body, self._surroundings, chosen)
        self._frames = tuple(
            map(self.frame, (self.config.global_frame, self.config.odom_frame, self.config.base_frame))
        )
        self._twist = (0.0, 0.0, 0.0)
        self._held_since: float | None = None
        self._costmap_throttle = Throttle(self.config.costmap_rate or 1.0)
        self._shown: Any = None
        self._command = self.publisher("cmd_vel", msg.Twist)
        self._plan = self.publisher("plan", msg.Path, latched=True)
        self._global_costmap = self.publisher("global_costmap/costmap", msg.OccupancyGrid, latched=True)
        self._local_costmap = self.publisher("local_costmap/costmap", msg.OccupancyGrid, latched=True)
        self._sources = {
            name: [
                Source(
                    self,
                    told,
                    self.resolve(told.topic),
                    self.config.sensor_timeout,
                    self._frames[1],
                    lambda: self.config.transform_timeout,
                )
                for told in layer.sources
            ]
            for name, layer in chosen.costmap.enabled_layers.items()
        }
        if self.config.map_topic:
            self.subscribe(self.config.map_topic, msg.OccupancyGrid, self._on_map)
        self.subscribe("keepout_mask", msg.OccupancyGrid, self._on_keepout)
        self.subscribe("speed_mask", msg.OccupancyGrid, self._on_speed_mask)
        self._limit = (0.0, False)
        self.subscribe("speed_limit", msg.SpeedLimit, self._on_speed_limit)
        self.subscribe("odom", msg.Odometry, self._on_odometry)
        self._desk = Desk(self, self._frames[0], self._begin, self._remake, self._stand)
        self._client = self.action_client("navigate_to_pose", action.NavigateToPose, on_goal_restored=lambda goal: None)
        for topic in ("goal_pose", "move_base_simple/goal"):
            self.subscribe(topic, msg.PoseStamped, self._on_goal_pose)
        self.action_server("compute_path_to_pose", action.ComputePathToPose, self._on_compute, preempt=False)
        self.action_server(
            "compute_path_through_poses", action.ComputePathThroughPoses, self._on_compute_through, preempt=False
        )
        self.service("clear_costmaps", srv.Empty, self._on_clear)
        self.service("clear_around_costmaps", srv.ClearCostmapAroundRobot, self._on_clear_around)
        self.service("clear_except_costmaps", srv.ClearCostmapExceptRegion, self._on_clear_except)
        self.timer(rate=self.config.rate, callback=self._tick)

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _on_map(self, message: Any) -> None:
        grid = self._grid(message, "map")
        if grid is not None:
            self._surroundings.take_map(grid)

    def _on_keepout(self, message: Any) -> None:
        grid = self._grid(message, "keepout mask")
        if grid is not None:
            self._surroundings.take_keepout(grid)

    def _on_speed_mask(self, message: Any) -> None:
        grid = self._grid(message, "speed mask")
        if grid is None:
            return
        try:
            self._surroundings.take_speed_mask(grid)
        except RoboyardError as error:
            self.log.error(f"left out a speed mask: {error}")

    def _grid(self, message: Any, what: str) -> OccupancyGrid | None:
        if message.header.frame_id not in (self._frames[0], self.config.global_frame):
            self.log.error(f"left out a {what} of frame '{message.header.frame_id}': plans are in '{self._frames[0]}'")
            return None
        try:
            cells = np.array(grid_to_array(message))
            place = GridGeometry(float(message.info.resolution), (cells.shape[0], cells.shape[1]), grid_origin(message))
            return OccupancyGrid(cells, place)
        except RoboyardError as error:
            self.log.error(f"left out a {what}: {error}")
            return None

    def _on_odometry(self, message: Any) -> None:
        linear, angular = message.twist.twist.linear, message.twist.twist.angular
        if all(map(math.isfinite, (linear.x, linear.y, angular.z))):
            self._twist = (linear.x, linear.y, angular.z)

    def _on_speed_limit(self, message: Any) -> None:
        try:
            limit = SpeedLimit(float(message.speed_limit), bool(message.percentage))
        except RoboyardError as error:
            self.log.warn(f"left out a speed limit: {error}")
            return
        self._limit = (limit.value, limit.percentage)

    def _on_goal_pose(self, message: Any) -> None:
        self._client.send(action.NavigateToPose.Goal(pose=message))

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _begin(self, errand: Errand, goal: Any) -> tuple[list[SE2], Any]:
        """The poses of a goal in the map, and its task.

        Raises:
            RoboyardError: it cannot be taken on.
        """
        self._situation()  # a robot that does not know where it is takes no goals
        places = self._places()
        goals = errand.goals(goal, places)
        if not errand.anywhere:
            for pose in goals:
                self._driver.check_goal(pose)
        return goals, errand.make(self._driver, goals, goal, places)

    def _remake(self, errand: Errand, goals: list[SE2], goal: Any) -> Any:
        """The task of a goal that was taken on before a state was saved; transforms are not known yet."""
        places = Places(self._pose_in_map, path_to_array, self._frames[0])
        return errand.make(self._driver, goals, goal, places)

    def _places(self) -> Places:
        return Places(self._pose_in_map, self._path_in_map, self._frames[0])

    def _pose_in_map(self, stamped: Any) -> SE2:
        try:
            pose = pose_to_se2(stamped.pose)
        except RoboyardError as error:
            raise GoalInvalid(f"the goal is no pose: {error}", valid="finite numbers, a unit quaternion") from None
        return self._T_map(stamped.header.frame_id) @ pose

    def _path_in_map(self, path: Any) -> NDArray[np.float64]:
        try:
            poses = path_to_array(path)
        except RoboyardError as error:
            raise GoalInvalid(f"the path is none: {error}", valid="finite poses") from None
        T = self._T_map(path.header.frame_id)
        return np.column_stack([T @ poses[:, :2], poses[:, 2] + T.theta]) if len(poses) else poses

    def _T_map(self, frame: str) -> SE2:
        if frame in ("", self._frames[0], self.config.global_frame):
            return SE2.identity()
        try:
            return SE2.from_se3(self.transforms.lookup(self._frames[0], frame))
        except TransformError as error:
            raise GoalInvalid(f"the goal is in frame '{frame}': {error}", valid=f"'{self._frames[0]}'") from None

    # -- each step -----------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        try:
            now = self._situation()
            self._check_sensors()
        except NavigationError as error:
            self._hold(error)
            return
        self._held_since = None
        if self._desk.busy:
            twist = self._desk.step(now, self._places())
            if twist is not None:
                self._send(self._slowed(self._driver.body.limits.executable(twist), now.pose))
            self._show_plan()
        elif self.health is None or self.health.level != "ok":
            self.report_health("ok", "waits for a goal")
        if self.config.costmap_rate and self._costmap_throttle.passes(self.now_ns):
            self._global_costmap.publish(
                costmap_message(self._surroundings.world_costs(), self._frames[0], self.now_ns)
            )
            self._local_costmap.publish(
                costmap_message(self._surroundings.near.costmap(), self._frames[1], self.now_ns)
            )

    def _situation(self) -> Situation:
        """Where the robot is and what it sees.

        Raises:
            PoseUnknown: where it is cannot be said, or was said too long ago.
        """
        world, odom, base = self._frames
        try:
            self.transforms.lookup(world, base, max(self.now_ns - round(self.config.transform_timeout * 1e9), 0))
            T_map_base = SE2.from_se3(self.transforms.lookup(world, base))
            T_odom_base = SE2.from_se3(self.transforms.lookup(odom, base))
        except TransformError as error:
            raise PoseUnknown(f"where the robot is in '{world}' is not known: {error}") from None
        T_map_odom = T_map_base @ T_odom_base.inverse()
        seen: dict[str, list[Any]] = {}
        for name, sources in self._sources.items():
            news = [source.look() for source in sources]
            if any(news):
                pairs = zip(sources, news, strict=True)
                seen[name] = [item for source, own in pairs for item in source.counting(self.now_ns, own)]
        self._surroundings.see(seen, T_map_odom)
        self._surroundings.move(T_odom_base, T_map_odom)
        costs = self._surroundings.near_costs(T_map_odom)
        return Situation(self.now, T_map_base, PlanarTwist(*self._twist), costs, T_map_odom)

    def _check_sensors(self) -> None:
        for source in itertools.chain(*self._sources.values()):
            trouble = source.trouble(self.now_ns)
            if trouble:
                raise SensorSilent(trouble)

    def _hold(self, error: NavigationError) -> None:
        """Stand still while something is missing; give the goal up if it stays missing."""
        self.report_health("error" if self._desk.busy else "warn", str(error), cause=error.cause)
        if not self._desk.busy:
            return
        self._send(STANDSTILL)
        if self._held_since is None:
            self._held_since = self.now
            self.log.warn(f"stands still: {error}")
            self._desk.say("waiting", error)
        if self.now - self._held_since >= self.config.hold_time:
            self._held_since = None
            self._desk.fail(error)

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _send(self, twist: PlanarTwist) -> None:
        message = msg.Twist()
        message.linear.x, message.linear.y, message.angular.z = (float(value) for value in twist)
        self._command.publish(message)

    def _slowed(self, twist: PlanarTwist, pose: SE2) -> PlanarTwist:
        """A command as fast as both the limit told from outside and the zone that the robot is in allow."""
        fastest = self._driver.body.limits.forward
        zone = SpeedLimit(self._surroundings.speed(pose, fastest))
        return tightest((SpeedLimit(*self._limit), zone), fastest).slowed(twist, fastest)

    def _stand(self) -> None:
        """Called when an errand has ended."""
        self._send(STANDSTILL)
        self._show_plan()

    def _show_plan(self) -> None:
        path = self._desk.path
        if path is self._shown:
            return
        self._shown = path
        poses = np.zeros((0, 3)) if path is None else path.poses
        self._plan.publish(path_to_msg(poses, self._frames[0], self.now_ns))

    # -- plans without driving -----------------------------------------------------------------------------------------
    def _on_compute(self, handle: GoalHandle) -> None:
        self._compute(handle, [handle.goal.goal], action.ComputePathToPose.Result, 0)

    def _on_compute_through(self, handle: GoalHandle) -> None:
        if not handle.goal.goals:
            handle.reject("no poses to go through")
            return
        self._compute(handle, handle.goal.goals, action.ComputePathThroughPoses.Result, 100)

    def _compute(self, handle: GoalHandle, goals: Any, kind: Any, offset: int) -> None:
        handle.accept()
        try:
            start = self._pose_in_map(handle.goal.start) if handle.goal.use_start else self._situation().pose
            poses = [self._pose_in_map(goal) for goal in goals]
            costs, escape = self._surroundings.world_costs(), self.config.navigation.escape
            path = plan_through(self._driver.planner, costs, start, poses, escape)
        except NavigationError as error:
            handle.abort(kind(error_code=planning_number(error) + offset, error_msg=str(error)), str(error))
            return
        message = path_to_msg(path.poses, self._frames[0], self.now_ns)
        handle.succeed(kind(path=message, planning_time=duration_to_msg(0)))

    # -- forgetting ----------------------------------------------------------------------------------------------------
    def _on_clear(self, request: Any) -> Any:
        self._forget(math.inf, inside=True)
        return srv.Empty.Response()

    def _on_clear_around(self, request: Any) -> Any:
        self._forget(float(request.reset_distance), inside=True)
        return srv.ClearCostmapAroundRobot.Response()

    def _on_clear_except(self, request: Any) -> Any:
        self._forget(float(request.reset_distance), inside=False)
        return srv.ClearCostmapExceptRegion.Response()

    def _forget(self, half: float, *, inside: bool) -> None:
        now = self._situation()
        self._surroundings.forget(now.T_odom_base, now.T_map_odom, half, inside=inside)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {
            "surroundings": self._surroundings.save_state(),
            "sources": [source.save_state() for source in itertools.chain(*self._sources.values())],
            "controller": self._driver.controller.save_state(),
            "throttle": self._costmap_throttle.save_state(),
            "desk": self._desk.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._surroundings.load_state(saved["surroundings"])
        super().load_state(saved)
        for source, state in zip(itertools.chain(*self._sources.values()), saved["sources"], strict=True):
            source.load_state(state)
        self._costmap_throttle.load_state(saved["throttle"])
        self._desk.load_state(saved["desk"])
        self._driver.controller.load_state(saved["controller"])
        self._shown = self._desk.path
