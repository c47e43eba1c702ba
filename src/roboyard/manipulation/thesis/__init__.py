"""How a thesis moved its youBot's arm, to be tried beside our own ways.

Westfälische Hochschule, bachelor thesis on picking and placing with a KUKA youBot, 2017: section 7 and its listings.
"""

from roboyard.manipulation.thesis.driving import AlignControl, JointControl
from roboyard.manipulation.thesis.inverse import REST, SEARCH, Scale, point_down

__all__ = ["REST", "SEARCH", "AlignControl", "JointControl", "Scale", "point_down"]
