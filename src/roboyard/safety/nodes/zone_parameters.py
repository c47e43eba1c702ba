"""Outlines and zones as texts in parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.geometry import polygons
from roboyard.safety.zones import Action, Zone, outline

_ACTIONS = {action.name.lower(): action for action in Action if action is not Action.NONE}
_KEYS = ("name", "action", "points", "radius", "min_points", "ratio", "linear_limit", "angular_limit", "time",
         "speeds", "turns")  # fmt: skip


def read_outline(text: str, where: str) -> NDArray[np.float64]:
    """``"[[0.2, 0.1], [-0.2, 0.1], …]"`` [m], as Nav2 has its footprints.

    Raises:
        ConfigError: not of this form, or no polygon.
    """
    try:
        corners = np.asarray(yaml.safe_load(text), dtype=np.float64)
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise ConfigError(f"{text!r:.80} is no outline", location=where, valid="[[x, y], [x, y], …] in m") from error
    return outline(corners, where)


def read_zone(text: str, footprint: NDArray[np.float64], where: str) -> Zone:
    """``"{name: near, action: slowdown, ratio: 0.4, radius: 0.8}"`` as a zone.

    Args:
        text: With ``points: [[x, y], …]`` or ``radius``; without, the zone is the footprint.
        footprint: (n, 2) [m].
        where: For errors.

    Raises:
        ConfigError: not of this form, an unknown key, or a value out of range.
    """
    try:
        said: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{text!r:.80} is no zone", location=where, valid="{name: …, action: …}") from error
    if not isinstance(said, dict) or not isinstance(said.get("name"), str):
        raise ConfigError(f"{text!r:.80} is no zone", location=where, valid="{name: …, action: …, …}")
    where = f"{where}, zone {said['name']}"
    unknown = next((key for key in said if key not in _KEYS), None)
    if unknown is not None:
        raise ConfigError(f"unknown key {unknown!r}", location=where, valid=", ".join(_KEYS))
    if said.get("action") not in _ACTIONS:
        raise ConfigError(f"action {said.get('action')!r}", location=where, valid=", ".join(_ACTIONS))
    try:
        if "radius" in said:
            corners = polygons.regular_polygon(float(said["radius"]))
        else:
            corners = np.asarray(said.get("points", footprint), dtype=np.float64)
        rest = {key: _value(key, value) for key, value in said.items() if key not in ("action", "points", "radius")}
        return Zone(action=_ACTIONS[said["action"]], corners=corners, **rest)
    except ConfigError:
        raise
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{text!r:.80}: {error}", location=where, valid="numbers") from error


def _value(key: str, value: Any) -> Any:
    if key == "name":
        return value
    if key == "min_points":
        return int(value)
    return (float(value[0]), float(value[1])) if key in ("speeds", "turns") else float(value)
