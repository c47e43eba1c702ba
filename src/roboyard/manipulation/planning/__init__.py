"""Motion planning for arms in a `PlanningScene`, to joint, pose and pointing goals; each failure is an error with its
cause.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.planning.axis_constraint import AxisConstraint
    from roboyard.manipulation.planning.cartesian_path import CartesianPathConfig, plan_cartesian_path
    from roboyard.manipulation.planning.goals import (
        JointGoal,
        MotionGoal,
        NamedGoal,
        PointingGoal,
        PoseGoal,
        find_goal_states,
    )
    from roboyard.manipulation.planning.motion_planners import make_planner
    from roboyard.manipulation.planning.plan import MotionPlan, PlanConfig, plan_motion
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
    "PlanConfig",
    "PlannedPath",
    "PointingGoal",
    "PoseGoal",
    "TimedPose",
    "find_goal_states",
    "make_planner",
    "plan_cartesian_path",
    "plan_motion",
    "plan_timed_tool_path",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "axis_constraint": ("AxisConstraint",),
    "cartesian_path": ("CartesianPathConfig", "plan_cartesian_path"),
    "goals": ("JointGoal", "MotionGoal", "NamedGoal", "PointingGoal", "PoseGoal", "find_goal_states"),
    "motion_planners": ("make_planner",),
    "plan": ("MotionPlan", "PlanConfig", "plan_motion"),
    "planner": ("MotionPlanner", "MotionPlanningProblem", "PlannedPath"),
    "timed_tool_path": ("TimedPose", "plan_timed_tool_path"),
})  # fmt: skip
