"""Motion planning for arms in a `PlanningScene`: goals, planners, constraints and tool paths.

`roboyard.manipulation` exports `plan_motion`, `plan_cartesian_path`, `PlanConfig`, `PoseGoal` and `MOTION_PLANNERS`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.planning.axis_constraint import AxisConstraint
    from roboyard.manipulation.planning.cartesian_path import CartesianPathConfig
    from roboyard.manipulation.planning.goals import (
        JointGoal,
        MotionGoal,
        NamedGoal,
        PointingGoal,
        find_goal_states,
    )
    from roboyard.manipulation.planning.motion_planners import make_planner
    from roboyard.manipulation.planning.plan import MotionPlan
    from roboyard.manipulation.planning.planner import MotionPlanner, MotionPlanningProblem, PlannedPath
    from roboyard.manipulation.planning.timed_tool_path import TimedPose, plan_timed_tool_path

__all__ = [
    "AxisConstraint",
    "CartesianPathConfig",
    "JointGoal",
    "MotionGoal",
    "MotionPlan",
    "MotionPlanner",
    "MotionPlanningProblem",
    "NamedGoal",
    "PlannedPath",
    "PointingGoal",
    "TimedPose",
    "find_goal_states",
    "make_planner",
    "plan_timed_tool_path",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "axis_constraint": ("AxisConstraint",),
    "cartesian_path": ("CartesianPathConfig",),
    "goals": ("JointGoal", "MotionGoal", "NamedGoal", "PointingGoal", "find_goal_states"),
    "motion_planners": ("make_planner",),
    "plan": ("MotionPlan",),
    "planner": ("MotionPlanner", "MotionPlanningProblem", "PlannedPath"),
    "timed_tool_path": ("TimedPose", "plan_timed_tool_path"),
})  # fmt: skip
