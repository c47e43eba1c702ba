"""Legged robots: kinematics of legs, gaits, foot movements, and free gaits planned foothold by foothold.

The names that most users need: `load_legs`, `LeggedRobot`, `make_gait`, `GaitGenerator`, `SteppingConfig`,
`plan_steps_on_terrain`, `check_plan`, `load_movement`, `play_movement`, `stability_margin`.

    plan = ry.walking.plan_steps_on_terrain(model, terrain, start=(0.0, 0.0), goal=(0.6, 0.0))
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.walking.conformance import check_gait
    from roboyard.walking.foot_movement import FootMovement, load_movement, play_movement
    from roboyard.walking.free_gait.plan_checker import check_plan
    from roboyard.walking.free_gait.planning import plan_steps_on_terrain
    from roboyard.walking.free_gait.robot_model import FreeGaitModel
    from roboyard.walking.free_gait.step_plan import StepPlan
    from roboyard.walking.gait import GAITS, Gait, GaitPattern, LegLayout, make_gait
    from roboyard.walking.gait_comparison import GaitComparison, compare_gaits
    from roboyard.walking.gait_generator import GaitGenerator, SteppingConfig
    from roboyard.walking.legged_robot import LeggedRobot, load_legs
    from roboyard.walking.statics import stability_margin

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "load_legs",
    "LeggedRobot",
    "make_gait",
    "GaitGenerator",
    "SteppingConfig",
    "plan_steps_on_terrain",
    "check_plan",
    "load_movement",
    "play_movement",
    "stability_margin",
    "compare_gaits",
    "check_gait",
    "GAITS",
    "FootMovement",
    "FreeGaitModel",
    "Gait",
    "GaitComparison",
    "GaitPattern",
    "LegLayout",
    "StepPlan",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "conformance": ("check_gait",),
    "foot_movement": ("FootMovement", "load_movement", "play_movement"),
    "free_gait.plan_checker": ("check_plan",),
    "free_gait.planning": ("plan_steps_on_terrain",),
    "free_gait.robot_model": ("FreeGaitModel",),
    "free_gait.step_plan": ("StepPlan",),
    "gait": ("GAITS", "Gait", "GaitPattern", "LegLayout", "make_gait"),
    "gait_comparison": ("GaitComparison", "compare_gaits"),
    "gait_generator": ("GaitGenerator", "SteppingConfig"),
    "legged_robot": ("LeggedRobot", "load_legs"),
    "statics": ("stability_margin",),
})  # fmt: skip
