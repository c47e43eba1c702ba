"""The body of a robot as planners of steps see it: a box; and what its limbs weigh."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Box, Model
from roboyard.errors import InputError


def body_box(model: Model, body: str) -> NDArray[np.float64]:
    """(2, 3) least and greatest corner, in a link's frame, of the boxes that are fixed to it [m].

    Raises:
        InputError: there is none.
    """
    fixed = {body}
    while True:
        joints = [joint for joint in model.joints if joint.type == "fixed"]
        more = {joint.child for joint in joints if joint.parent in fixed}
        more |= {joint.parent for joint in joints if joint.child in fixed}
        if more <= fixed:
            break
        fixed |= more
    links = {link.name: link for link in model.links}
    T_body_model, corners = links[body].T_model_link.inverse(), []
    for name in sorted(fixed & links.keys()):
        for shape in links[name].collisions:
            if isinstance(shape.geometry, Box):
                half = 0.5 * np.array(shape.geometry.size)
                signs = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
                corners.append(T_body_model @ links[name].T_model_link @ shape.T_link_geom @ (signs * half))
    if not corners:
        raise InputError(
            f"no box is fixed to {body}", location=model.name, valid="a body with a box for its collisions"
        )
    every = np.concatenate(corners)
    return np.array([every.min(axis=0), every.max(axis=0)])


def limb_masses(model: Model, legs: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """(l, 2) masses of thigh and shank [kg]: of what the second joint of each leg moves, and the third one.

    Args:
        model: The robot.
        legs: Names of the three joints of each leg, from the body on.
    """
    below: dict[str, list[str]] = {}
    for joint in model.joints:
        below.setdefault(joint.parent, []).append(joint.child)
    own = {link.name: link.inertial.mass if link.inertial else 0.0 for link in model.links}
    child = {joint.name: joint.child for joint in model.joints}

    def hung(link: str) -> float:
        return own.get(link, 0.0) + sum(map(hung, below.get(link, [])))

    moved = np.array([[hung(child[name]) for name in joints[1:]] for joints in legs])
    moved[:, 0] -= moved[:, 1]
    return moved
