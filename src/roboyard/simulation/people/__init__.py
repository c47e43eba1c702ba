"""People: bodies that are led through clips of motion and give way where they are touched.

What drives somebody, a behaviour tree or a crowd's model, lies elsewhere; here is what a body can do.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.people.anthropometry import Physique
    from roboyard.simulation.people.body import Body, make_body
    from roboyard.simulation.people.skeleton import PARTS, Skeleton

__all__ = ["PARTS", "Body", "Physique", "Skeleton", "make_body"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "anthropometry": ("Physique",),
    "body": ("Body", "make_body"),
    "skeleton": ("PARTS", "Skeleton"),
})  # fmt: skip
