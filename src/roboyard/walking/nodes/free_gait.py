"""The free gait node: plans steps over an elevation map to a goal and walks them; messages of step plans."""

from __future__ import annotations

import math
from contextlib import suppress
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Future, TransformError
from roboyard.bus.offload import OffloadedTask
from roboyard.compute import expect_kernels
from roboyard.config import parameter
from roboyard.errors import ConfigError, InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap
from roboyard.messages import msg
from roboyard.messages.convert.grid_maps import heights_from_msg
from roboyard.messages.time import time_to_msg
from roboyard.walking.free_gait import replanning
from roboyard.walking.free_gait.body_paths import dijkstra_distances
from roboyard.walking.free_gait.foothold_map import FootholdMap, flood_reachable, interpolate_body_height, limit_slope
from roboyard.walking.free_gait.plan_evaluation import empty_sweep_workspace
from roboyard.walking.free_gait.plan_follower import (
    PlanFollower,
    PlanFollowerConfig,
    Touchdown,
    fit_height_to_ground,
    fit_height_to_stance,
)
from roboyard.walking.free_gait.planners.planner import STEP_PLANNERS
from roboyard.walking.free_gait.planning import expect_planner_kernels
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.replanning import committed_events
from roboyard.walking.free_gait.robot_model import FreeGaitModel, fill_reach_table
from roboyard.walking.free_gait.step_plan import StepPlan, Swing, swing_position
from roboyard.walking.free_gait.terrain_completion import TerrainCompletion
from roboyard.walking.leg import knee_side_of
from roboyard.walking.nodes.legged_robot import (
    GaitReport,
    LeggedRobotNodeBase,
    LeggedRobotNodeConfig,
    leg_odometry_pose,
)


def step_plan_to_msg(
    plan: StepPlan,
    goal: Array,
    time_ns: int,
    frame: str,
    *,
    plan_id: int = 0,
    time_in_plan: float = 0.0,
    reason: str = "",
) -> Any:
    """Return the roboyard_msgs/FootstepPlan of a plan to a goal (2,)."""
    return msg.FootstepPlan(
        header=msg.Header(stamp=time_to_msg(time_ns), frame_id=frame),
        planner=plan.statistics.planner,
        id=plan_id,
        time=time_in_plan,
        cost=plan.cost,
        reason=reason,
        goal=msg.Point(x=float(goal[0]), y=float(goal[1])),
        heading=plan.heading,
        feet=[_point_to_msg(position) for position in plan.start_feet],
        body_times=plan.body_track[:, 0].copy(),
        body_path=[_point_to_msg(position) for position in plan.body_track[:, 1:]],
        swings=[
            msg.FootSwing(
                leg=swing.leg,
                lift_off_time=swing.lift_off_time,
                touch_down_time=swing.touch_down_time,
                source=_point_to_msg(swing.source),
                target=_point_to_msg(swing.target),
                apex_height=swing.apex_height,
                vertical_time=swing.vertical_time,
            )
            for swing in plan.swings
        ],
    )


def step_plan_from_msg(message: Any, n_legs: int) -> StepPlan:
    """Return the plan of a roboyard_msgs/FootstepPlan for a number of legs. Raises InputError if it is not valid."""
    times, track = np.asarray(message.body_times, np.float64), _points_from_msg(message.body_path)
    if len(message.feet) != n_legs or any(swing.leg >= n_legs for swing in message.swings):
        raise InputError(f"a plan for {len(message.feet)} feet", valid=f"for {n_legs}")
    if len(times) < 2 or len(times) != len(track) or times[0] != 0.0 or not (np.diff(times) > 0.0).all():
        raise InputError("a plan whose times do not grow from 0", valid="a time for each place of the body")
    swings = tuple(
        Swing(
            swing.leg,
            swing.lift_off_time,
            swing.touch_down_time,
            _point_from_msg(swing.source),
            _point_from_msg(swing.target),
            swing.apex_height,
            swing.vertical_time,
        )
        for swing in message.swings
    )
    if not all(swing.lift_off_time < swing.touch_down_time <= times[-1] + 1e-9 for swing in swings):
        raise InputError(
            "a plan with a swing that does not end in it",
            valid="lift_off_time before touch_down_time, touch_down_time before the plan's end",
        )
    if not all(swing.vertical_time > 0.0 for swing in swings):
        raise InputError("a swing whose ends take no time", valid="vertical_time: more than 0 s")
    numbers = [
        track,
        _points_from_msg(message.feet),
        *(np.array([*swing.source, *swing.target, swing.apex_height, swing.vertical_time]) for swing in swings),
    ]
    if not all(np.isfinite(part).all() for part in numbers):
        raise InputError("a plan of numbers that are not finite", valid="metres and seconds")
    return StepPlan(
        message.heading, _points_from_msg(message.feet), np.column_stack([times, track]), swings, message.cost
    )


def touchdown_to_msg(touchdown: Touchdown, leg: str, time_ns: int, frame: str) -> Any:
    """Return a roboyard_msgs/Touchdown."""
    header = msg.Header(stamp=time_to_msg(time_ns), frame_id=frame)
    return msg.Touchdown(
        header=header,
        leg=leg,
        planned=_point_to_msg(touchdown.planned),
        actual=_point_to_msg(touchdown.actual),
        kind=touchdown.kind,
    )


def _point_to_msg(position: Any) -> Any:
    x, y, z = (float(value) for value in position)
    return msg.Point(x=x, y=y, z=z)


def _point_from_msg(point: Any) -> tuple[float, float, float]:
    return point.x, point.y, point.z


def _points_from_msg(points: Any) -> Array:
    return np.array([_point_from_msg(point) for point in points], np.float64).reshape(-1, 3)


_STOP_MARGIN = 1e-3
"""A plan stops so long before a foot would come down where it may not [s]."""
_MIN_IMPROVEMENT = 0.5
"""Another plan takes over if it is sooner at the goal by this [s]."""
_MAX_PLANNING_ATTEMPTS = 8
"""So often it looks for a plan before it says that there is none."""
_MAX_JOINT_LAG = 0.1
"""Joints may be behind by as much before the plan waits for them [rad]."""


class FreeGaitNodeConfig(LeggedRobotNodeConfig):
    """Configuration of `FreeGaitNode`."""

    goal: tuple[float, ...] = parameter((), doc="First goal, x and y in the map [m]; empty: none.")
    planner: str = parameter("splitting", choices=STEP_PLANNERS.names(), doc="Planner of the steps.", runtime=True)
    budget: int = parameter(
        60_000, low=1, high=10**9, doc="Largest number of events that planning tries.", runtime=True
    )
    seed: int = parameter(0, low=0, high=2**31, doc="Seed of the planner's random numbers.", runtime=True)
    planning_latency: float = parameter(
        1.0, unit="s", low=0.01, high=600.0, doc="Declared duration of planning.", runtime=True
    )
    replan_period: float = parameter(
        2.0,
        unit="s",
        low=0.1,
        high=1e4,
        doc="Time between two searches for a better plan during the walk.",
        runtime=True,
    )
    replan_budget: int = parameter(
        6_000, low=0, high=10**9, runtime=True,
        doc="Largest number of events that a search for a better plan tries; 0: no such search.",
    )  # fmt: skip
    replan_latency: float = parameter(
        0.1, unit="s", low=0.01, high=60.0, doc="Declared duration of planning during the walk.", runtime=True
    )
    follower: PlanFollowerConfig = parameter(factory=PlanFollowerConfig, flatten="", doc="How feet find the ground.")
    friction: float = parameter(
        0.8, low=0.01, high=10.0, doc="Assumed coefficient of friction of the ground.", runtime=True
    )
    known_ground_radius: float = parameter(
        0.9, unit="m", low=0.0, high=100.0, doc="Distance below which unseen ground counts as a hole.", runtime=True
    )
    start_area_radius: float = parameter(
        0.7, unit="m", low=0.0, high=10.0, runtime=True,
        doc="Distance from the start below which unseen ground is as high as the ground there.",
    )  # fmt: skip
    map_frame: str = parameter("map", doc="Frame of the map.")


class FreeGaitNode(LeggedRobotNodeBase[FreeGaitNodeConfig]):
    """Makes a legged robot stand up and walk to goals with steps that it plans over an elevation map.

    in: goal_pose (geometry_msgs/PoseStamped: goal position of the body; it keeps its heading), elevation_map
    (grid_map_msgs/GridMap), step_plan (roboyard_msgs/FootstepPlan: executed as it is), imu (sensor_msgs/Imu),
    feet/<leg> (gazebo_msgs/ContactsState), /tf map_frame → odom_frame
    out: positions to the hardware, steps/plan (roboyard_msgs/FootstepPlan: the plan that is executed), steps/touchdown
    (roboyard_msgs/Touchdown), odom (nav_msgs/Odometry), /tf odom_frame → base_frame, gait/state
    (roboyard_msgs/GaitState: as of the gait node)

    Without a transform from map_frame to odom_frame both are the same.
    """

    state_fields = (
        *LeggedRobotNodeBase.state_fields,
        "_goal",
        "_map",
        "_n_plans",
        "_stance_positions",
        "_n_attempts",
        "_invalid_footholds",
        "_replan_ns",
        "_n_replans",
        "_start_position",
    )

    def setup(self) -> None:
        """Claim the joints, and stand up."""
        expect_kernels(
            fill_reach_table,
            knee_side_of,
            interpolate_body_height,
            limit_slope,
            flood_reachable,
            dijkstra_distances,
            swing_position,
        )
        expect_kernels(empty_sweep_workspace)
        expect_planner_kernels(self.config.planner)
        if len(self.config.goal) not in (0, 2) or not all(map(math.isfinite, self.config.goal)):
            raise ConfigError(f"goal {self.config.goal}", location=self.full_name, valid="[x, y] of the map [m]")
        super().setup()
        self._robot_model, self._n_plans = FreeGaitModel.from_robot(self.legged_robot, self.description), 0
        self._goal, self._n_attempts = list(self.config.goal), 0
        self._map: HeightMap | None = None
        self._stance_positions = np.zeros((len(self.legged_robot.legs), 3))
        self._follower: PlanFollower | None = None
        self._search: OffloadedTask | None = None
        self._invalid_footholds: list[int] = []
        self._start_position: list[float] = []
        self._replan_ns = self._n_replans = 0
        self._claim_joints()
        self._phase, self._transition = "rising", self._plan_stand_up()
        self._create_publishers("gait/state")
        self._plan_publisher = self.publisher("steps/plan", msg.FootstepPlan, latched=True)
        self._touchdown_publisher = self.publisher("steps/touchdown", msg.Touchdown)
        self.subscribe("goal_pose", msg.PoseStamped, self._on_goal)
        self.subscribe("elevation_map", msg.GridMap, self._on_map)
        self.subscribe("step_plan", msg.FootstepPlan, self._on_plan)
        self._subscribe_sensors()
        self._start_control_loop()

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        follower_state = None if self._follower is None else self._follower.to_dict()
        return super().save_state() | {"follower": follower_state}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        super().load_state(state)
        self._follower = (
            None if state["follower"] is None else PlanFollower.from_dict(state["follower"], self.config.follower)
        )

    # -- subscriptions -------------------------------------------------------------------------------------------------
    def _on_goal(self, message: Any) -> None:
        goal = [message.pose.position.x, message.pose.position.y]
        if not all(map(math.isfinite, goal)):
            self.log.error(f"refused a goal at {goal}: not finite", throttle=5.0)
        elif self._phase not in ("rising", "standing"):
            self.log.warn(f"refused a goal at {goal[0]:.2f}, {goal[1]:.2f}: it is {self._phase}")
        else:
            self._goal = goal

    def _on_map(self, message: Any) -> None:
        try:
            self._map = heights_from_msg(message)
        except RoboyardError as error:
            self.log.error(f"refused a map: {error}", throttle=5.0)
            return
        if self._phase == "walking":
            self._check_footholds()

    def _on_plan(self, message: Any) -> None:
        if self._phase != "standing":
            self.log.warn(f"refused a plan: it is {self._phase}")
            return
        try:
            plan = step_plan_from_msg(message, len(self.legged_robot.legs))
        except RoboyardError as error:
            self.log.error(f"refused {error}")
            return
        self._goal = [message.goal.x, message.goal.y]
        self._start_walking(plan, "given")

    # -- planning ------------------------------------------------------------------------------------------------------
    def _request_plan(self) -> None:
        """Start the search for a plan from the current stance to the goal."""
        body_pose, stop_event = (
            self._estimate_body_pose(self.legged_robot.foot_positions(self._joint_setpoints)),
            Event(),
        )
        (x, y), goal = body_pose.translation[:2], self._goal
        height_map = self._completed_map(x, y)
        if height_map is None:
            return
        try:
            feet = self._stance_positions[:, :2]
            foothold_map = FootholdMap.from_height_map(
                height_map, self._robot_model, heading=body_pose.yaw, friction=self.config.friction, start=feet
            )
            problem = StepPlanningProblem.create(
                self._robot_model, foothold_map, (x, y), goal, feet=self._stance_positions
            )
        except RoboyardError as error:
            self._abandon_goal(str(error))
            return
        self._phase, self._n_attempts = "planning", self._n_attempts + 1
        options = {
            "budget": self.config.budget,
            "seed": self.config.seed + self._n_attempts - 1,
            "should_stop": stop_event.is_set,
        }
        self.offload(
            replanning.try_plan,
            problem,
            self.config.planner,
            options,
            latency=self.config.planning_latency,
            on_done=self._on_planned,
            cancel_event=stop_event,
        )

    def _on_planned(self, future: Future) -> None:
        outcome = future.result
        if isinstance(outcome, str):
            self._phase = "standing"
            if self._n_attempts >= _MAX_PLANNING_ATTEMPTS:
                self._abandon_goal(outcome)
        else:
            self._start_walking(outcome, "start")

    def _abandon_goal(self, reason: str) -> None:
        self._goal, self._n_attempts = [], 0
        self.log.error(f"the robot stays in place: {reason}")
        self.report_health("error", "no plan", reason=reason)

    def _start_walking(self, plan: StepPlan, reason: str) -> None:
        """Execute a plan from its start."""
        body_pose = self._estimate_body_pose(self.legged_robot.foot_positions(self._joint_setpoints))
        self._follower = PlanFollower(plan, body_pose, self._stance_positions, self.config.follower)
        self._phase, self._n_attempts, self._invalid_footholds, self._replan_ns = "walking", 0, [], self.now_ns
        self._publish_plan(reason)
        self.report_health("ok", f"walks {plan.path_length:.2f} m on {len(plan.swings)} steps")

    def _check_footholds(self) -> None:
        """Check the plan's footholds on a new map, and replan if some are invalid."""
        follower = self._follower
        if follower is None or (height_map := self._completed_map(*follower.planned_position)) is None:
            return
        try:
            heading, feet = follower.plan.heading, replanning.stance_at(follower.plan, follower.time)[:, :2]
            foothold_map = FootholdMap.from_height_map(
                height_map, self._robot_model, heading=heading, friction=self.config.friction, start=feet
            )
        except RoboyardError as error:
            self.log.error(f"refused a map: {error}", throttle=5.0)
            return
        self._invalid_footholds = replanning.find_invalid_footholds(follower.plan, follower.time, foothold_map)
        # what was thought gone may turn out to be there
        follower.time_limit = (
            min((follower.plan.swings[k].touch_down_time for k in self._invalid_footholds), default=math.inf)
            - _STOP_MARGIN
        )
        if self._invalid_footholds:
            self.log.warn(f"{len(self._invalid_footholds)} footholds of the plan are invalid")
            self._request_better_plan()

    def _completed_map(self, x: float, y: float) -> HeightMap | None:
        """Return the map, completed for a body at a position [m]; None without a map."""
        if self._map is None or self._map.variance is None:
            return self._map
        if not self._start_position:
            self._start_position = [x, y, float(self._stance_positions[:, 2].mean())]
        completion = TerrainCompletion(
            self.config.known_ground_radius,
            (self._start_position[0], self._start_position[1], self._start_position[2]),
            self.config.start_area_radius,
        )
        feet, footholds = self._stance_positions, np.zeros((0, 3))
        if self._follower is not None:
            feet = np.vstack([feet, replanning.stance_at(self._follower.plan, self._follower.time)])
            footholds = self._follower.plan.footholds
        return completion.complete(self._map, (x, y), self._goal, feet, footholds, 0.8 * self._robot_model.scale)

    def _request_better_plan(self) -> None:
        """Start the search for a better plan during the walk; a running search is canceled."""
        follower = self._follower
        if (
            follower is None
            or not self._goal
            or (height_map := self._completed_map(*follower.planned_position)) is None
        ):
            return
        if self._search is not None:
            self._search.cancel()
        plan, self._replan_ns = follower.plan, self.now_ns
        self._n_replans += 1
        try:
            committed = committed_events(
                plan,
                follower.time + self.config.replan_latency * self.config.follower.speed_scale,
                frozenset(self._invalid_footholds),
            )
        except RoboyardError as error:
            self.log.warn(f"no other plan: {error}", throttle=5.0)
            return
        stop_event, goal = Event(), np.array(self._goal)
        options = {
            "budget": self.config.replan_budget,
            "seed": self.config.seed + self._n_replans,
            "should_stop": stop_event.is_set,
        }
        self._search = self.offload(
            replanning.try_replan,
            self._robot_model,
            height_map,
            self.config.friction,
            plan,
            goal,
            committed,
            self.config.planner,
            options,
            latency=self.config.replan_latency,
            on_done=self._on_replanned,
            cancel_event=stop_event,
        )

    def _on_replanned(self, future: Future) -> None:
        self._search = None
        outcome, follower = future.result, self._follower
        if follower is None or self._phase != "walking":
            return
        if isinstance(outcome, str):
            if self._invalid_footholds:
                self.log.warn(f"no alternative step plan yet: {outcome}", throttle=1.0)
                self._request_better_plan()
            return
        if self._invalid_footholds or outcome.duration < follower.plan.duration - _MIN_IMPROVEMENT:
            reason, self._invalid_footholds = "ground" if self._invalid_footholds else "better", []
            follower.switch_plan(outcome)
            self._publish_plan(reason)

    def _publish_plan(self, reason: str) -> None:
        if self._follower is None:
            return
        self._n_plans += 1
        plan, plan_time, goal = self._follower.plan, self._follower.time, np.array(self._goal)
        message = step_plan_to_msg(
            plan,
            goal,
            self.now_ns,
            self.frame(self.config.map_frame),
            plan_id=self._n_plans,
            time_in_plan=plan_time,
            reason=reason,
        )
        self._plan_publisher.publish(message)

    # -- control step --------------------------------------------------------------------------------------------------
    def advance_setpoints(self, feet: Array, measured_joints: Array) -> None:
        """Stand up, start to plan, or follow the plan, and replan periodically."""
        if self._phase == "rising":
            self._joint_setpoints = self._next_transition_setpoints()
        elif self._phase == "standing" and self._goal and self._map is not None:
            self._request_plan()
        if self._phase == "walking":
            self._follow_plan(feet, measured_joints)
            is_replan_due = self.now_ns - self._replan_ns > self.config.replan_period * 1e9
            if self.config.replan_budget and self._search is None and is_replan_due:
                self._request_better_plan()

    def stance_mask(self) -> NDArray[np.bool_]:
        """Return (l) the stance feet of the plan; all feet without a plan."""
        return self._all_feet if self._follower is None else self._follower.in_stance

    def gait_report(self) -> GaitReport:
        """Return the phase, and the twist of the plan."""
        return GaitReport("rising" if self._phase == "rising" else "walking", "free", self._commanded_twist())

    def _commanded_twist(self) -> Array:
        """Return (3,) the twist of the plan in the body frame."""
        if self._follower is None or self._phase != "walking":
            return np.zeros(3)
        return self.config.follower.speed_scale * self._follower.plan.body_velocity(self._follower.time)

    def on_transition_end(self, setpoints: Array) -> None:
        """Stand, and wait for a goal."""
        self._phase, self._transition_index, self._transition = "standing", 0, setpoints[None]

    def _follow_plan(self, feet: Array, measured_joints: Array) -> None:
        """Compute the set-points of the next control step of the plan."""
        follower = self._follower
        if follower is None:
            return
        joint_lag = float(np.abs(self._joint_setpoints - measured_joints).max()) / _MAX_JOINT_LAG
        foot_targets, touchdowns = follower.advance(
            1.0 / self.config.rate, self._estimate_body_pose(feet), feet, self._measured_contacts(), joint_lag
        )
        try:
            setpoints = self.legged_robot.solve_ik(foot_targets, self._joint_setpoints)
        except RoboyardError as error:
            self.log.warn(f"foot target skipped, foot holds position: {error}", throttle=1.0)
            is_unreachable = ~self.legged_robot.is_reachable(foot_targets)  # the others go on
            foot_targets[is_unreachable] = self.legged_robot.foot_positions(self._joint_setpoints)[is_unreachable]
            setpoints = self.legged_robot.solve_ik(foot_targets, self._joint_setpoints)
        self._joint_setpoints = setpoints
        for touchdown in touchdowns:
            message = touchdown_to_msg(
                touchdown, self._leg_names[touchdown.leg], self.now_ns, self.frame(self.config.map_frame)
            )
            self._touchdown_publisher.publish(message)
        self._stance_positions = follower.stance_positions.copy()
        if follower.is_done:
            self._phase, self._goal = "standing", []
            self.log.info("goal reached")
            self.report_health("ok", "goal reached")

    def _estimate_body_pose(self, feet: Array) -> SE3:
        """Return T_map_body: from odometry and localization, at its height above the stance positions."""
        T = leg_odometry_pose(self._odometry)
        with suppress(TransformError):  # nobody says where the odometry's frame lies
            T = self.transforms.lookup(self.frame(self.config.map_frame), self._frames[0]) @ T
        if self._follower is not None:
            return fit_height_to_stance(T, feet, self._stance_positions, self.stance_mask())
        T, self._stance_positions = fit_height_to_ground(T, feet, self._map)
        return T

    def loaded_feet(self) -> tuple[NDArray[np.bool_], Array]:
        """Return the stance feet, and no feet before the robot begins to stand up."""
        in_stance, feet = super().loaded_feet()
        return (in_stance if self._phase != "rising" or self._transition_index > 0 else self._no_feet), feet
