"""What stands for a model that could not be had: a cube that is seen and touches nothing, wherever others refer to."""

from __future__ import annotations

from roboyard.description.model import Box, Link, Material, Model, Visual
from roboyard.geometry import SE3

PLACEHOLDER = "placeholder"
_PLACEHOLDER_MATERIAL = Material(PLACEHOLDER, (1.0, 0.0, 1.0, 0.5))


def make_placeholder(name: str) -> Model:
    """Half a metre of translucent magenta that touches nothing."""
    cube = Visual(
        PLACEHOLDER, Box((0.5, 0.5, 0.5)), SE3.from_xyz_rpy((0.0, 0.0, 0.25)), _PLACEHOLDER_MATERIAL, cast_shadows=False
    )
    link = Link(PLACEHOLDER, SE3.identity(), visuals=(cube,))
    return Model(name, (link,), static=True, canonical_link=PLACEHOLDER)


def is_placeholder(model: Model) -> bool:
    """Whether the model stands for one that could not be had."""
    return len(model.links) == 1 and model.links[0].name == PLACEHOLDER
