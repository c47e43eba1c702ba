"""Names and groups inside the compiled model, agreed between assembly, sensors, contacts and rendering."""

from __future__ import annotations

from typing import Final

SEPARATOR: Final = "::"

# Geom groups.  Renderers show groups 1 and 2; lidars see groups 1 and 3; contacts happen in 3 and 4.
SEEN_ONLY: Final = 1
"""Visuals of a link that has no collision shape, and meshes whose pieces touch: lidars see them."""
VISUAL: Final = 2
"""Visuals of a link that also has collision shapes: drawn only."""
COLLISION: Final = 3
"""Collision shapes: touch, and lidars see them."""
TOUCH_ONLY: Final = 4
"""Convex pieces of a mesh: they touch, lidars see the mesh itself."""

# A geom with contype 0 and conaffinity 0 is missed by the engine's bulk ray caster, so visuals carry a bit that
# nothing answers to.
VISUAL_CONTYPE: Final = 2
COLLISION_BITS: Final = 1


def scoped(*parts: str) -> str:
    """``model::link::collision``."""
    return SEPARATOR.join(parts)


def is_ground_name(name: str) -> bool:
    """Whether a model or link of this name is ground: its last part starts with ``ground`` or ``floor``."""
    last = name.rsplit(SEPARATOR, 1)[-1].lower()
    return last.startswith(("ground", "floor"))
