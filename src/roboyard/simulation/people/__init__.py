"""People: bodies that are led through clips of motion and give way where they are touched.

What drives somebody, a behaviour tree or a crowd's model, lies elsewhere; here is what a body can do.
"""

from roboyard.simulation.people.anthropometry import Physique
from roboyard.simulation.people.body import Body, make_body
from roboyard.simulation.people.skeleton import PARTS, Skeleton

__all__ = ["PARTS", "Body", "Physique", "Skeleton", "make_body"]
