"""Legged robots: kinematics of legs, gaits, foot movements, and step plans over uneven ground.

The names that most users need: `load_walker`, `Walker`, `make_gait`, `Stepper`, `Steps`, `plan_steps_on_terrain`,
`check_plan`, `load_movement`, `play`, `stability_margin`.

    plan = ry.walking.plan_steps_on_terrain(rig, terrain, start=(0.0, 0.0), goal=(0.6, 0.0))
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.walking.gaits import Gait, make_gait
    from roboyard.walking.movement import Movement, play
    from roboyard.walking.movement_file import load_movement
    from roboyard.walking.stability import stability_margin
    from roboyard.walking.stepping import Stepper, Steps
    from roboyard.walking.steps.checker import check_plan
    from roboyard.walking.steps.plan import StepPlan
    from roboyard.walking.steps.planning import plan_steps_on_terrain
    from roboyard.walking.steps.rig import Rig
    from roboyard.walking.walker import Walker
    from roboyard.walking.walker_file import load_walker

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "load_walker",
    "Walker",
    "make_gait",
    "Stepper",
    "Steps",
    "plan_steps_on_terrain",
    "check_plan",
    "load_movement",
    "play",
    "stability_margin",
    "Gait",
    "Movement",
    "Rig",
    "StepPlan",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "gaits": ("Gait", "make_gait"),
    "movement": ("Movement", "play"),
    "movement_file": ("load_movement",),
    "stability": ("stability_margin",),
    "stepping": ("Stepper", "Steps"),
    "steps.checker": ("check_plan",),
    "steps.plan": ("StepPlan",),
    "steps.planning": ("plan_steps_on_terrain",),
    "steps.rig": ("Rig",),
    "walker": ("Walker",),
    "walker_file": ("load_walker",),
})  # fmt: skip
