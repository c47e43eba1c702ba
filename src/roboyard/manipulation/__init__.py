"""Manipulation: planning scenes, motion planning, grasping and servoing of robot arms.

The names that most users need: `load_groups`, `PlanningScene`, `box_obstacle`, `plan_motion`, `PlanConfig`, `PoseGoal`,
`plan_cartesian_path`, `time_parameterize`, `MOTION_PLANNERS`, `check_motion_planner`.

    scene = ry.manipulation.PlanningScene.create(load_joint_groups("scitos_arm"))
    plan = ry.manipulation.plan_motion(scene, "folded", "ahead")
    points = plan.trajectory.to_points()

with ``from roboyard.bringup.joint_groups import load_joint_groups``.  Everything here works on arrays; the nodes that
connect it to topics are in `roboyard.manipulation.nodes`.  A motion that cannot be planned raises a `PlanningError`,
whose ``cause`` names the reason.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.collision.obstacles import box_obstacle
    from roboyard.manipulation.collision.planning_scene import PlanningScene
    from roboyard.manipulation.conformance import check_motion_planner, check_time_parameterization, check_trajectory
    from roboyard.manipulation.errors import PlanningError
    from roboyard.manipulation.planning.cartesian_path import plan_cartesian_path
    from roboyard.manipulation.planning.goals import PoseGoal
    from roboyard.manipulation.planning.motion_planners import MOTION_PLANNERS
    from roboyard.manipulation.planning.plan import PlanConfig, plan_motion
    from roboyard.manipulation.semantics.groups_file import load_groups
    from roboyard.manipulation.semantics.planning_groups import (
        GripperSpec,
        PlanningGroup,
        SemanticDescription,
        ToolFrame,
        guess_groups,
    )
    from roboyard.manipulation.time_parameterization.parameterization import TIME_PARAMETERIZATIONS, time_parameterize

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "load_groups",
    "PlanningScene",
    "box_obstacle",
    "plan_motion",
    "PlanConfig",
    "PoseGoal",
    "plan_cartesian_path",
    "time_parameterize",
    "MOTION_PLANNERS",
    "check_motion_planner",
    "GripperSpec",
    "PlanningError",
    "PlanningGroup",
    "SemanticDescription",
    "TIME_PARAMETERIZATIONS",
    "ToolFrame",
    "check_time_parameterization",
    "check_trajectory",
    "guess_groups",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "collision.obstacles": ("box_obstacle",),
    "collision.planning_scene": ("PlanningScene",),
    "conformance": ("check_motion_planner", "check_time_parameterization", "check_trajectory"),
    "errors": ("PlanningError",),
    "planning.cartesian_path": ("plan_cartesian_path",),
    "planning.goals": ("PoseGoal",),
    "planning.motion_planners": ("MOTION_PLANNERS",),
    "planning.plan": ("PlanConfig", "plan_motion"),
    "semantics.groups_file": ("load_groups",),
    "semantics.planning_groups": ("GripperSpec", "PlanningGroup", "SemanticDescription", "ToolFrame", "guess_groups"),
    "time_parameterization.parameterization": ("TIME_PARAMETERIZATIONS", "time_parameterize"),
})  # fmt: skip
