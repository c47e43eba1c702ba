"""The navigator node: it receives goals, maps and sensor data, and publishes commands, paths and costmaps."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import GoalHandle, Node, TransformError, resource
from roboyard.bus.throttle import Throttle
from roboyard.config import Config, parameter
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.control.drive_config import DriveConfig, DriveLimits
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import path_to_array, path_to_msg, pose_to_se2
from roboyard.messages.convert.grids import occupancy_grid_from_msg
from roboyard.messages.time import duration_to_msg
from roboyard.navigation.controllers.controller import DEFAULT_CONTROL_PERIOD, SpeedLimit, strictest_limit
from roboyard.navigation.costmap import GridLayerConfig, SensorLayerConfig
from roboyard.navigation.errors import InvalidGoalError, NavigationError, PoseUnknownError, SensorTimeoutError
from roboyard.navigation.footprint import DEFAULT_RADIUS
from roboyard.navigation.navigator import (
    MobileBase,
    NavigationCostmaps,
    NavigationState,
    NavigatorConfig,
    NavigatorContext,
    plan_through_poses,
    resolve_motion_limits,
)
from roboyard.navigation.navigator.motion_limits import padded_footprint
from roboyard.navigation.nodes.navigation_actions import (
    GoalTransformer,
    NavigationAction,
    NavigationTaskServer,
    compute_path_error_code,
    costmap_to_msg,
)
from roboyard.navigation.nodes.observation_sources import ObservationSource
from roboyard.navigation.plugins import make_controller, make_planner


class NavigatorNodeConfig(Config):
    """Configuration of `NavigatorNode`."""

    navigation: NavigatorConfig = parameter(
        factory=NavigatorConfig, flatten="", doc="Planner, controller, costmaps, recovery and limits."
    )
    rate: float = parameter(
        1.0 / DEFAULT_CONTROL_PERIOD, unit="Hz", low=1.0, high=200.0, doc="Rate of the published commands."
    )
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
    missing_data_timeout: float = parameter(
        5.0, unit="s", low=0.0, high=3600.0, runtime=True, doc="Longest wait for sensor and pose."
    )
    costmap_rate: float = parameter(1.0, unit="Hz", low=0.0, high=50.0, doc="Rate of the published costmaps; 0: none.")
    padding: float = parameter(0.02, unit="m", low=0.0, high=10.0, doc="Clearance around the footprint.")


class NavigatorNode(Node[NavigatorNodeConfig]):
    """Executes navigation goals, and reports the cause of a failure.

    in: map, keepout_mask, speed_mask (nav_msgs/OccupancyGrid), what the costmaps' sensors publish
        (sensor_msgs/LaserScan, PointCloud2, Range), odom (nav_msgs/Odometry), goal_pose, move_base_simple/goal
        (geometry_msgs/PoseStamped), speed_limit (nav2_msgs/SpeedLimit), /tf map → odom → base and → sensors
    out: cmd_vel, plan (nav_msgs/Path), global_costmap/costmap, local_costmap/costmap (nav_msgs/OccupancyGrid),
        ~/status (roboyard_msgs/NavigationStatus)
    actions: navigate_to_pose, approach_pose (as near as it can), navigate_through_poses, follow_waypoints, move_base,
        follow_path, spin, backup, drive_on_heading, wait, compute_path_to_pose, compute_path_through_poses
    services: clear_costmaps (std_srvs/Empty), clear_around_costmaps (nav2_msgs/ClearCostmapAroundRobot),
        clear_except_costmaps (nav2_msgs/ClearCostmapExceptRegion)

    It stops the robot, and reports the reason, while a sensor has sent nothing for ``sensor_timeout`` or the robot's
    pose
    is older than ``transform_timeout``; after ``missing_data_timeout`` of that it aborts the goal.
    """

    footprint: FootprintPolygon | None = resource(tuple, optional=True)
    drive_limits: DriveLimits | None = resource(DriveLimits, optional=True)
    drive_geometry: DriveConfig | None = resource(DriveConfig, optional=True)

    state_fields = ("_twist", "_waiting_since", "_speed_limit")

    def setup(self) -> None:
        """Create planner, controller, costmaps, publishers, subscribers, actions, services and the timer."""
        navigation, period = self.config.navigation, 1.0 / self.config.rate
        footprint = padded_footprint(self.footprint, self.config.padding)
        unpadded_footprint = padded_footprint(self.footprint, 0.0)
        limits, assumed = resolve_motion_limits(self.drive_limits, navigation.velocity_limits)
        mobile_base = MobileBase(footprint, unpadded_footprint, limits, period)
        self._warn_of_assumptions(assumed)
        self._costmaps = NavigationCostmaps(navigation.costmap, footprint, unpadded_footprint.corners)
        controller = make_controller(
            navigation.controller,
            mobile_base,
            navigation.goal_tolerance,
            allow_reverse=navigation.velocity_limits.allow_reverse,
        )
        min_turning_radius = self.drive_geometry.min_turning_radius if self.drive_geometry else None
        planner = make_planner(navigation.planner, footprint, navigation.smoother, min_turning_radius)
        self._context = NavigatorContext(planner, controller, mobile_base, self._costmaps, navigation)
        self._frames = tuple(
            map(self.frame, (self.config.global_frame, self.config.odom_frame, self.config.base_frame))
        )
        self._twist = (0.0, 0.0, 0.0)
        self._waiting_since: float | None = None
        self._costmap_throttle = Throttle(self.config.costmap_rate or 1.0)
        self._published_path: Any = None
        self._command = self.publisher("cmd_vel", msg.Twist)
        self._plan = self.publisher("plan", msg.Path, latched=True)
        self._global_costmap = self.publisher("global_costmap/costmap", msg.OccupancyGrid, latched=True)
        self._local_costmap = self.publisher("local_costmap/costmap", msg.OccupancyGrid, latched=True)
        self._sources = {
            name: [
                ObservationSource(
                    self,
                    source,
                    self.resolve(source.topic),
                    self.config.sensor_timeout,
                    self._frames[1],
                    lambda: self.config.transform_timeout,
                )
                for source in layer.sources
            ]
            for name, layer in navigation.costmap.enabled_layers.items()
            if isinstance(layer, SensorLayerConfig)
        }
        if self.config.map_topic:
            self.subscribe(self.config.map_topic, msg.OccupancyGrid, self._on_map)
        grid_layers = [layer for layer in navigation.costmap.layers.values() if isinstance(layer, GridLayerConfig)]
        for topic in dict.fromkeys(("keepout_mask", *(layer.topic for layer in grid_layers if layer.topic))):
            self.subscribe(topic, msg.OccupancyGrid, partial(self._on_grid, topic))
        self.subscribe("speed_mask", msg.OccupancyGrid, self._on_speed_mask)
        self._speed_limit = (0.0, False)
        self.subscribe("speed_limit", msg.SpeedLimit, self._on_speed_limit)
        self.subscribe("odom", msg.Odometry, self._on_odometry)
        self._task_server = NavigationTaskServer(
            self, self._frames[0], self._create_task, self._restore_task, self._on_task_finished
        )
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

    def _warn_of_assumptions(self, assumed: tuple[str, ...]) -> None:
        """Log what neither the robot's file nor the configuration states."""
        if assumed:
            self.log.warn(f"the robot's file states no limits of {', '.join(assumed)} (assumed)")
        if not self.footprint:
            self.log.warn(f"the robot's footprint is unknown: a circle with a radius of {DEFAULT_RADIUS} m is assumed")

    # -- inputs --------------------------------------------------------------------------------------------------------
    def _on_map(self, message: Any) -> None:
        grid = self._read_grid(message, "map")
        if grid is not None:
            self._costmaps.set_map(grid)

    def _on_grid(self, topic: str, message: Any) -> None:
        """Give the grid of a topic, such as the keepout mask, to the layers over it."""
        grid = self._read_grid(message, topic.replace("_", " "))
        if grid is not None:
            self._costmaps.set_grid(topic, grid)

    def _on_speed_mask(self, message: Any) -> None:
        grid = self._read_grid(message, "speed mask")
        if grid is None:
            return
        try:
            self._costmaps.set_speed_mask(grid)
        except RoboyardError as error:
            self.log.error(f"rejected a speed mask: {error}")

    def _read_grid(self, message: Any, description: str) -> OccupancyGrid | None:
        frame = message.header.frame_id
        if frame not in (self._frames[0], self.config.global_frame):
            self.log.error(f"rejected a {description} in frame '{frame}': paths are planned in '{self._frames[0]}'")
            return None
        try:
            return occupancy_grid_from_msg(message, exact_resolution=True)
        except RoboyardError as error:
            self.log.error(f"rejected a {description}: {error}")
            return None

    def _on_odometry(self, message: Any) -> None:
        linear, angular = message.twist.twist.linear, message.twist.twist.angular
        if all(map(math.isfinite, (linear.x, linear.y, angular.z))):
            self._twist = (linear.x, linear.y, angular.z)

    def _on_speed_limit(self, message: Any) -> None:
        try:
            limit = SpeedLimit(float(message.speed_limit), bool(message.percentage))
        except RoboyardError as error:
            self.log.warn(f"rejected a speed limit: {error}")
            return
        self._speed_limit = (limit.value, limit.percentage)

    def _on_goal_pose(self, message: Any) -> None:
        self._client.send(action.NavigateToPose.Goal(pose=message))

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _create_task(self, navigation_action: NavigationAction, goal: Any) -> tuple[list[SE2], Any]:
        """Return the poses of a goal in the map, and its task.

        Raises:
            RoboyardError: The goal is rejected.
        """
        self._navigation_state()  # a goal is rejected while the pose of the robot is unknown
        transformer = self._goal_transformer()
        goals = navigation_action.goal_poses(goal, transformer)
        if not navigation_action.accepts_unreachable_goals:
            for pose in goals:
                self._context.validate_goal(pose)
        return goals, navigation_action.make_task(self._context, goals, goal, transformer)

    def _restore_task(self, navigation_action: NavigationAction, goals: list[SE2], goal: Any) -> Any:
        """Return the task of a goal that was accepted before a state was saved; transforms are not known yet."""
        transformer = GoalTransformer(self._pose_in_map, path_to_array, self._frames[0])
        return navigation_action.make_task(self._context, goals, goal, transformer)

    def _goal_transformer(self) -> GoalTransformer:
        return GoalTransformer(self._pose_in_map, self._path_in_map, self._frames[0])

    def _pose_in_map(self, stamped: Any) -> SE2:
        try:
            pose = pose_to_se2(stamped.pose)
        except RoboyardError as error:
            raise InvalidGoalError(
                f"the pose of the goal is invalid: {error}", valid="finite numbers, a unit quaternion"
            ) from None
        return self._T_map(stamped.header.frame_id) @ pose

    def _path_in_map(self, path: Any) -> NDArray[np.float64]:
        try:
            poses = path_to_array(path)
        except RoboyardError as error:
            raise InvalidGoalError(f"the path is invalid: {error}", valid="finite poses") from None
        T = self._T_map(path.header.frame_id)
        return np.column_stack([T @ poses[:, :2], poses[:, 2] + T.theta]) if len(poses) else poses

    def _T_map(self, frame: str) -> SE2:
        if frame in ("", self._frames[0], self.config.global_frame):
            return SE2.identity()
        try:
            return SE2.from_se3(self.transforms.lookup(self._frames[0], frame))
        except TransformError as error:
            raise InvalidGoalError(
                f"the goal in frame '{frame}' cannot be transformed: {error}", valid=f"'{self._frames[0]}'"
            ) from None

    # -- each step -----------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        try:
            state = self._navigation_state()
            self._check_sensors()
        except NavigationError as error:
            self._stop_and_wait(error)
            return
        self._waiting_since = None
        if self._task_server.is_busy:
            twist = self._task_server.compute_command(state, self._goal_transformer())
            if twist is not None:
                self._send(
                    self._apply_speed_limits(self._context.mobile_base.limits.nearest_executable(twist), state.pose)
                )
            self._publish_plan()
        elif self.health is None or self.health.level != "ok":
            self.report_health("ok", "waiting for a goal")
        if self.config.costmap_rate and self._costmap_throttle.should_pass(self.now_ns):
            self._global_costmap.publish(
                costmap_to_msg(self._costmaps.get_global_costmap(), self._frames[0], self.now_ns)
            )
            self._local_costmap.publish(
                costmap_to_msg(self._costmaps.local_costmap.snapshot(), self._frames[1], self.now_ns)
            )

    def _navigation_state(self) -> NavigationState:
        """Return the state of the robot with its updated costmaps.

        Raises:
            PoseUnknownError: The pose of the robot is unknown, or older than ``transform_timeout``.
        """
        global_frame, odom_frame, base_frame = self._frames
        try:
            self.transforms.lookup(
                global_frame, base_frame, max(self.now_ns - round(self.config.transform_timeout * 1e9), 0)
            )
            T_map_base = SE2.from_se3(self.transforms.lookup(global_frame, base_frame))
            T_odom_base = SE2.from_se3(self.transforms.lookup(odom_frame, base_frame))
        except TransformError as error:
            raise PoseUnknownError(f"the pose of the robot in '{global_frame}' is unknown: {error}") from None
        T_map_odom = T_map_base @ T_odom_base.inverse()
        observations: dict[str, list[Any]] = {}
        for name, sources in self._sources.items():
            new_items = [source.collect() for source in sources]
            if any(new_items):
                pairs = zip(sources, new_items, strict=True)
                observations[name] = [item for source, items in pairs for item in source.current(self.now_ns, items)]
        self._costmaps.add_observations(observations, T_map_odom)
        self._costmaps.update(T_odom_base, T_map_odom)
        local_costmap = self._costmaps.local_costmap_in_map(T_map_odom)
        return NavigationState(self.now, T_map_base, PlanarTwist(*self._twist), local_costmap, T_map_odom)

    def _check_sensors(self) -> None:
        for source in itertools.chain(*self._sources.values()):
            problem = source.diagnose(self.now_ns)
            if problem:
                raise SensorTimeoutError(problem)

    def _stop_and_wait(self, error: NavigationError) -> None:
        """Stop while sensor data or the pose is missing; abort the goal after ``missing_data_timeout``."""
        self.report_health("error" if self._task_server.is_busy else "warn", str(error), cause=error.cause)
        if not self._task_server.is_busy:
            return
        self._send(ZERO_TWIST)
        if self._waiting_since is None:
            self._waiting_since = self.now
            self.log.warn(f"stopped: {error}")
            self._task_server.publish_status("waiting", error)
        if self.now - self._waiting_since >= self.config.missing_data_timeout:
            self._waiting_since = None
            self._task_server.fail(error)

    # -- outputs -------------------------------------------------------------------------------------------------------
    def _send(self, twist: PlanarTwist) -> None:
        message = msg.Twist()
        message.linear.x, message.linear.y, message.angular.z = (float(value) for value in twist)
        self._command.publish(message)

    def _apply_speed_limits(self, twist: PlanarTwist, pose: SE2) -> PlanarTwist:
        """Limit a command to the received speed limit and that of the speed mask."""
        max_speed = self._context.mobile_base.limits.max_forward_speed
        mask_limit = SpeedLimit(self._costmaps.speed_limit_at(pose, max_speed))
        return strictest_limit((SpeedLimit(*self._speed_limit), mask_limit), max_speed).apply(twist, max_speed)

    def _on_task_finished(self) -> None:
        """Stop the robot when a task has ended."""
        self._send(ZERO_TWIST)
        self._publish_plan()

    def _publish_plan(self) -> None:
        path = self._task_server.path
        if path is self._published_path:
            return
        self._published_path = path
        poses = np.zeros((0, 3)) if path is None else path.poses
        self._plan.publish(path_to_msg(poses, self._frames[0], self.now_ns))

    # -- plans without driving -----------------------------------------------------------------------------------------
    def _on_compute(self, handle: GoalHandle) -> None:
        self._compute(handle, [handle.goal.goal], action.ComputePathToPose.Result, 0)

    def _on_compute_through(self, handle: GoalHandle) -> None:
        if not handle.goal.goals:
            handle.reject("the goal has no poses")
            return
        self._compute(handle, handle.goal.goals, action.ComputePathThroughPoses.Result, 100)

    def _compute(self, handle: GoalHandle, goals: Any, kind: Any, offset: int) -> None:
        handle.accept()
        try:
            start = self._pose_in_map(handle.goal.start) if handle.goal.use_start else self._navigation_state().pose
            poses = [self._pose_in_map(goal) for goal in goals]
            costs, start_search_radius = self._costmaps.get_global_costmap(), self.config.navigation.start_search_radius
            path = plan_through_poses(self._context.planner, costs, start, poses, start_search_radius)
        except NavigationError as error:
            handle.abort(kind(error_code=compute_path_error_code(error) + offset, error_msg=str(error)), str(error))
            return
        message = path_to_msg(path.poses, self._frames[0], self.now_ns)
        handle.succeed(kind(path=message, planning_time=duration_to_msg(0)))

    # -- clearing ------------------------------------------------------------------------------------------------------
    def _on_clear(self, request: Any) -> Any:
        self._clear_area(math.inf, inside=True)
        return srv.Empty.Response()

    def _on_clear_around(self, request: Any) -> Any:
        self._clear_area(float(request.reset_distance), inside=True)
        return srv.ClearCostmapAroundRobot.Response()

    def _on_clear_except(self, request: Any) -> Any:
        self._clear_area(float(request.reset_distance), inside=False)
        return srv.ClearCostmapExceptRegion.Response()

    def _clear_area(self, half_side: float, *, inside: bool) -> None:
        state = self._navigation_state()
        self._costmaps.clear_area(state.T_odom_base, state.T_map_odom, half_side, inside=inside)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {
            "costmaps": self._costmaps.save_state(),
            "sources": [source.save_state() for source in itertools.chain(*self._sources.values())],
            "controller": self._context.controller.save_state(),
            "throttle": self._costmap_throttle.save_state(),
            "task_server": self._task_server.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the state that `save_state` returned."""
        self._costmaps.load_state(saved["costmaps"])
        super().load_state(saved)
        for source, state in zip(itertools.chain(*self._sources.values()), saved["sources"], strict=True):
            source.load_state(state)
        self._costmap_throttle.load_state(saved["throttle"])
        self._task_server.load_state(saved["task_server"])
        self._context.controller.load_state(saved["controller"])
        self._published_path = self._task_server.path
