"""Robots in simulated worlds as environments of Gymnasium, for learning and for trying policies.

Importing this room registers ``roboyard/RoverNavigation-v0``, ``roboyard/Hexapod-v0`` and ``roboyard/ArmReach-v0``;
`RobotEnv` makes one of any robot, world and task.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roboyard.errors import MissingExtraError

try:
    from gymnasium.envs.registration import register, registry
except ImportError as error:
    raise MissingExtraError("roboyard.gym", "gym") from error

if TYPE_CHECKING:
    from roboyard.gym.commands import Command, JointSpeeds, JointTargets, Twist
    from roboyard.gym.env import RobotEnv
    from roboyard.gym.navigation import Navigate, RoverNavigation
    from roboyard.gym.places import FreePlaces
    from roboyard.gym.reaching import ArmReach, Reach
    from roboyard.gym.robot import ReadRobot
    from roboyard.gym.senses import Inertia, Joints, Motion, Scan, Sense, Touch, Upright
    from roboyard.gym.task import Episode, Stage, Start, Task, Verdict
    from roboyard.gym.walking import Hexapod, Walk

_HOMES = {
    "ArmReach": "reaching",
    "Command": "commands",
    "Episode": "task",
    "FreePlaces": "places",
    "Hexapod": "walking",
    "Inertia": "senses",
    "JointSpeeds": "commands",
    "JointTargets": "commands",
    "Joints": "senses",
    "Motion": "senses",
    "Navigate": "navigation",
    "Reach": "reaching",
    "ReadRobot": "robot",
    "RobotEnv": "env",
    "RoverNavigation": "navigation",
    "Scan": "senses",
    "Sense": "senses",
    "Stage": "task",
    "Start": "task",
    "Task": "task",
    "Touch": "senses",
    "Twist": "commands",
    "Upright": "senses",
    "Verdict": "task",
    "Walk": "walking",
}

__all__ = [
    "ArmReach",
    "Command",
    "Episode",
    "FreePlaces",
    "Hexapod",
    "Inertia",
    "JointSpeeds",
    "JointTargets",
    "Joints",
    "Motion",
    "Navigate",
    "Reach",
    "ReadRobot",
    "RobotEnv",
    "RoverNavigation",
    "Scan",
    "Sense",
    "Stage",
    "Start",
    "Task",
    "Touch",
    "Twist",
    "Upright",
    "Verdict",
    "Walk",
]

_STEPS = {"RoverNavigation": 300, "Hexapod": 500, "ArmReach": 100}
"""After so many steps an episode is cut short: 30, 20 and 10 s."""

for _name, _steps in _STEPS.items():
    if f"roboyard/{_name}-v0" not in registry:
        register(f"roboyard/{_name}-v0", f"roboyard.gym:{_name}", max_episode_steps=_steps)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
