"""What a gripper holds, of all that stands about: the scene follows what the fingers feel."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import UnknownNameError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision import Obstacle
from roboyard.manipulation.scene import Pair, PlanningScene
from roboyard.manipulation.self_filter import Shapes

_FINELY = 12
"""Halvings of the distance up to which something is looked for."""
_MOST_TOUCHES = 50


def between_fingers(scene: PlanningScene, q: ArrayLike) -> tuple[Array, float]:
    """The point (3,) between the fingers of the group's gripper, in the world, and how far they reach from there [m].

    Args:
        scene: With the fingers where they are.
        q: (n,) joints of the group.

    Raises:
        UnknownNameError: the group has no gripper; InputError: ``q`` is no state.
    """
    if scene.group.gripper is None:
        raise UnknownNameError(f"group {scene.group.name!r} has no gripper", valid="gripper: … in its groups file")
    fingers = scene.groups.gripper(scene.group.gripper).links
    frames = scene.chain.frames(q)
    parts = [part for part in scene.parts if part.name in fingers]
    places = np.array([(frames[part.frame] @ part.solid.T.matrix())[:3, 3] for part in parts])
    middles = [places[[part.name == name for part in parts]].mean(axis=0) for name in fingers]
    middle = np.mean(middles, axis=0)
    reach = max(
        float(np.linalg.norm(place - middle)) + float(np.linalg.norm(part.solid.size)) + part.solid.radius
        for part, place in zip(parts, places, strict=True)
    )
    return np.asarray(scene.T_world_base @ middle), reach


def gripped(scene: PlanningScene, q: ArrayLike) -> str | None:
    """The obstacle that a gripper holds that feels something: the one nearest to the point between its fingers.

    Returns:
        Its name, or None: nothing that is known is within the fingers' reach.

    Raises:
        UnknownNameError, InputError: as `between_fingers`.
    """
    point, reach = between_fingers(scene, q)
    best, nearest = None, reach
    for name, one in scene.obstacles.items():
        if not isinstance(one, Obstacle):
            continue
        shapes = Shapes.of_obstacles([one])
        if not shapes.on(point[None], [SE3.identity()], nearest)[0]:
            continue
        low, high = 0.0, nearest
        for _ in range(_FINELY):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if shapes.on(point[None], [SE3.identity()], middle)[0] else (middle, high)
        best, nearest = name, high
    return best


def touched_by(scene: PlanningScene, names: set[str], q: ArrayLike) -> tuple[Pair, ...]:
    """Pairs that touch with the joints at ``q`` (n,), one of each among the names: what a held thing stands on."""
    found: list[Pair] = []
    for _ in range(_MOST_TOUCHES):
        pair = scene.contact(q)
        if pair is None:
            break
        scene = scene.allowing(pair)
        if names & set(pair):
            found.append(pair)
    return tuple(found)
