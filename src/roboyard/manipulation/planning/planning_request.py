"""Planning requests: several goals in turn, several attempts, straight tool paths, or timed poses; errors are results
here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from roboyard.errors import RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import PlanningCancelledError
from roboyard.manipulation.planning.axis_constraint import AxisConstraint
from roboyard.manipulation.planning.cartesian_path import plan_cartesian_path
from roboyard.manipulation.planning.goals import MotionGoal
from roboyard.manipulation.planning.plan import MotionPlan, PlanConfig, plan_motion
from roboyard.manipulation.planning.timed_tool_path import TimedPose, plan_timed_tool_path


@dataclass(frozen=True)
class PlanningRequest:
    """A request for a motion.

    Attributes:
        goals: Alternative goals in order of preference; the first one that can be planned is taken.
        cartesian_poses: Poses of the tool in the scene's world that it reaches along straight lines; instead of goals.
        timed_poses: Timed poses of the tool in the scene's world; instead of goals.
        start_time_ns: Start time of the timed poses.
        constraint: Axis constraint of the path.
        config: Options of the planner.
        n_attempts: Number of plans with different seeds; the fastest counts.
        tool: Tool of the group that goals are for; None: the group's tip.
    """

    goals: tuple[MotionGoal, ...] = ()
    cartesian_poses: tuple[SE3, ...] = ()
    timed_poses: tuple[TimedPose, ...] = ()
    start_time_ns: int = 0
    constraint: AxisConstraint | None = None
    config: PlanConfig = field(default_factory=PlanConfig)
    n_attempts: int = 1
    tool: str | None = None


def plan_request(
    scene: PlanningScene, start: Array, request: PlanningRequest, should_stop: Callable[[], bool]
) -> MotionPlan | RoboyardError:
    """Return the fastest motion, or the error of the last goal.

    Args:
        scene: The scene, with the tool of the request.
        start: (n,) start state.
        request: The request.
        should_stop: Polled during the search; True ends it.
    """
    plans: list[MotionPlan] = []
    last_error: RoboyardError | None = None
    for attempt in range(max(request.n_attempts, 1)):
        config = replace(request.config, seed=request.config.seed + attempt)
        try:
            if request.cartesian_poses:
                plans.append(plan_cartesian_path(scene, start, request.cartesian_poses, config, frame="world"))
                break
            if request.timed_poses:
                plans.append(plan_timed_tool_path(scene, start, request.timed_poses, config, frame="world"))
                break
            plans.append(_plan_first_reachable(scene, start, request, config, should_stop))
        except PlanningCancelledError as error:
            return error
        except RoboyardError as error:
            last_error = error
    if plans:
        return min(plans, key=lambda motion_plan: motion_plan.trajectory.duration)
    return last_error or PlanningCancelledError("the request has no goal")


def _plan_first_reachable(
    scene: PlanningScene, start: Array, request: PlanningRequest, config: PlanConfig, should_stop: Callable[[], bool]
) -> MotionPlan:
    for goal in request.goals[:-1]:
        try:
            return plan_motion(scene, start, goal, config, constraint=request.constraint, should_stop=should_stop)
        except PlanningCancelledError:
            raise
        except RoboyardError:
            continue
    return plan_motion(scene, start, request.goals[-1], config, constraint=request.constraint, should_stop=should_stop)
