"""Named materials of Gazebo as plain colors.

Diffuse values of ``gazebo.material`` in Gazebo Classic; textured materials have the mean color of their texture.
"""

from __future__ import annotations

from roboyard.description.model import Material, Rgba

_GAZEBO_COLORS: dict[str, Rgba] = {
    "grey": (0.7, 0.7, 0.7, 1.0),
    "gray": (0.7, 0.7, 0.7, 1.0),
    "darkgrey": (0.175, 0.175, 0.175, 1.0),
    "darkgray": (0.175, 0.175, 0.175, 1.0),
    "lightgrey": (0.85, 0.85, 0.85, 1.0),
    "white": (1.0, 1.0, 1.0, 1.0),
    "flatblack": (0.1, 0.1, 0.1, 1.0),
    "black": (0.0, 0.0, 0.0, 1.0),
    "red": (1.0, 0.0, 0.0, 1.0),
    "redbright": (0.87, 0.26, 0.07, 1.0),
    "darkred": (0.5, 0.0, 0.0, 1.0),
    "green": (0.0, 1.0, 0.0, 1.0),
    "darkgreen": (0.0, 0.5, 0.0, 1.0),
    "blue": (0.0, 0.0, 1.0, 1.0),
    "darkblue": (0.0, 0.0, 0.5, 1.0),
    "skyblue": (0.13, 0.44, 0.70, 1.0),
    "lightblue": (0.5, 0.7, 1.0, 1.0),
    "yellow": (1.0, 1.0, 0.0, 1.0),
    "darkyellow": (0.7, 0.7, 0.0, 1.0),
    "zincyellow": (0.9725, 0.9529, 0.2078, 1.0),
    "gold": (0.8, 0.649, 0.0, 1.0),
    "orange": (1.0, 0.5088, 0.0468, 1.0),
    "darkorange": (1.0, 0.3, 0.0, 1.0),
    "purple": (1.0, 0.0, 1.0, 1.0),
    "darkmagenta": (0.5, 0.0, 0.5, 1.0),
    "indigo": (0.33, 0.0, 0.5, 1.0),
    "turquoise": (0.0, 1.0, 1.0, 1.0),
    "cyan": (0.0, 1.0, 1.0, 1.0),
    "wood": (0.6, 0.42, 0.24, 1.0),
    "woodfloor": (0.55, 0.38, 0.22, 1.0),
    "woodpallet": (0.65, 0.5, 0.33, 1.0),
    "residential": (0.6, 0.55, 0.5, 1.0),
    "bricks": (0.55, 0.3, 0.24, 1.0),
    "road": (0.25, 0.25, 0.25, 1.0),
    "residualroad": (0.3, 0.3, 0.3, 1.0),
    "asphalt": (0.25, 0.25, 0.25, 1.0),
    "grass": (0.3, 0.5, 0.2, 1.0),
    "gravel": (0.5, 0.48, 0.45, 1.0),
    "ceilingtiled": (0.9, 0.9, 0.88, 1.0),
    "paintedwall": (0.85, 0.83, 0.78, 1.0),
    "pioneerbody": (0.75, 0.06, 0.06, 1.0),
    "carpet": (0.45, 0.4, 0.42, 1.0),
    "chrome": (0.8, 0.8, 0.82, 1.0),
    "blueglow": (0.0, 0.0, 1.0, 1.0),
    "redglow": (1.0, 0.0, 0.0, 1.0),
    "greenglow": (0.0, 1.0, 0.0, 1.0),
    "yellowglow": (1.0, 1.0, 0.0, 1.0),
    "whiteglow": (1.0, 1.0, 1.0, 1.0),
    "blacktransparent": (0.0, 0.0, 0.0, 0.5),
    "redtransparent": (1.0, 0.0, 0.0, 0.5),
    "greentransparent": (0.0, 1.0, 0.0, 0.5),
    "bluetransparent": (0.0, 0.0, 1.0, 0.5),
    "yellowtransparent": (1.0, 1.0, 0.0, 0.5),
    "orangetransparent": (1.0, 0.44, 0.0, 0.4),
    "greytransparent": (0.5, 0.5, 0.5, 0.5),
}


def gazebo_material(name: str) -> Material | None:
    """Return the material ``Gazebo/Orange`` or ``Orange``; None for a name that Gazebo does not have. ``…Glow``
    materials emit light.
    """
    short = name.strip().rpartition("/")[2].lower()
    rgba = _GAZEBO_COLORS.get(short)
    if rgba is None:
        return None
    return Material(name, rgba, emissive=rgba[:3] if short.endswith("glow") else (0.0, 0.0, 0.0))
