"""Simulated people: bodies that play animation clips, walk to goals, reach for objects and yield when touched.

Behavior trees, schedules and the crowd model decide what a person does; this package holds what a body can do.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.people.animation_player import AnimationPlayer
    from roboyard.people.anthropometry import BodyDimensions
    from roboyard.people.body import PersonModel, make_person_model
    from roboyard.people.clip import AnimationClip
    from roboyard.people.clip_library import builtin_clip_names, find_clip
    from roboyard.people.crowd import CrowdSettings, compute_crowd_velocities
    from roboyard.people.person import Person, PersonActivity
    from roboyard.people.skeleton import PARTS, Skeleton
    from roboyard.people.walking import PersonGoalError, WalkingMap, WalkingPath

__all__ = [
    "PARTS",
    "AnimationClip",
    "AnimationPlayer",
    "BodyDimensions",
    "CrowdSettings",
    "Person",
    "PersonActivity",
    "PersonGoalError",
    "PersonModel",
    "Skeleton",
    "WalkingMap",
    "WalkingPath",
    "builtin_clip_names",
    "compute_crowd_velocities",
    "find_clip",
    "make_person_model",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "animation_player": ("AnimationPlayer",),
    "anthropometry": ("BodyDimensions",),
    "body": ("PersonModel", "make_person_model"),
    "clip": ("AnimationClip",),
    "clip_library": ("builtin_clip_names", "find_clip"),
    "crowd": ("CrowdSettings", "compute_crowd_velocities"),
    "person": ("Person", "PersonActivity"),
    "skeleton": ("PARTS", "Skeleton"),
    "walking": ("PersonGoalError", "WalkingMap", "WalkingPath"),
})  # fmt: skip
