"""Simulated people: bodies that play animation clips, walk to goals, reach for objects and yield when touched.

Behavior trees, schedules and the crowd model decide what a person does; this package holds what a body can do.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.people.anthropometry import BodyDimensions
    from roboyard.people.body import PersonModel, make_person_model
    from roboyard.people.skeleton import PARTS, Skeleton

__all__ = ["PARTS", "BodyDimensions", "PersonModel", "Skeleton", "make_person_model"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "anthropometry": ("BodyDimensions",),
    "body": ("PersonModel", "make_person_model"),
    "skeleton": ("PARTS", "Skeleton"),
})  # fmt: skip
