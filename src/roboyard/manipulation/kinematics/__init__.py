"""From where a tool shall be to joints: closed forms with all branches, searches, the nearest that can be done."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.kinematics.goals import Aim, Cause, IkBatch, IkSettings, IkSolution, Nearest
    from roboyard.manipulation.kinematics.servo import ServoSettings, ServoStep, servo_step, servo_to
    from roboyard.manipulation.kinematics.solve import solve_ik, solve_ik_batch
    from roboyard.manipulation.kinematics.structure import form_of

__all__ = [
    "Aim",
    "Cause",
    "IkBatch",
    "IkSettings",
    "IkSolution",
    "Nearest",
    "ServoSettings",
    "ServoStep",
    "form_of",
    "servo_step",
    "servo_to",
    "solve_ik",
    "solve_ik_batch",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "goals": ("Aim", "Cause", "IkBatch", "IkSettings", "IkSolution", "Nearest"),
    "servo": ("ServoSettings", "ServoStep", "servo_step", "servo_to"),
    "solve": ("solve_ik", "solve_ik_batch"),
    "structure": ("form_of",),
})  # fmt: skip
