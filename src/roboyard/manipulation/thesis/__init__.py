"""How a thesis moved its youBot's arm, to be tried beside our own ways.

Westfälische Hochschule, bachelor thesis on picking and placing with a KUKA youBot, 2017: section 7 and its listings.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.thesis.driving import AlignControl, JointControl
    from roboyard.manipulation.thesis.inverse import REST, SEARCH, Scale, point_down

__all__ = ["REST", "SEARCH", "AlignControl", "JointControl", "Scale", "point_down"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "driving": ("AlignControl", "JointControl"),
    "inverse": ("REST", "SEARCH", "Scale", "point_down"),
})  # fmt: skip
