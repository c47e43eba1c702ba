"""Reader of a controller's settings, which records those that no mapper used."""

from __future__ import annotations

import math
from typing import Any

from roboyard.bringup.plugins.controller_files import ConfigValue, ControllerConfig
from roboyard.description.model import Model, Plugin, XmlElement
from roboyard.errors import DescriptionError

# What changes nothing in a simulation, or is done anyway.
_IMPLICIT_SETTINGS = {
    "use_sim_time", "open_loop", "position_feedback", "velocity_rolling_window_size", "publish_cmd", "publish_rate",
    "publish_wheel_data", "pose_covariance_diagonal", "twist_covariance_diagonal", "tf_frame_prefix_enable",
    "tf_frame_prefix", "use_stamped_vel", "state_publish_rate", "action_monitor_rate",
    "state_interfaces", "wheels_per_side", "preserve_turning_radius", "publish_limited_velocity",
    "estimate_velocity_from_position", "allow_multiple_cmd_vel_publishers", "odom_only_twist",
    "publish_ackermann_command", "publish_state",
}  # fmt: skip


class ControllerReader:
    """Reader of the settings of one controller.

    Args:
        model: Model whose joints the controller moves.
        controller: The controller.
    """

    def __init__(self, model: Model, controller: ControllerConfig) -> None:
        self.model, self.controller = model, controller
        self.location = controller.location
        self._used_settings: set[str] = set()
        self._findings: list[str] = []
        self._joints = {joint.name for joint in model.joints}

    def get(self, *names: str) -> ConfigValue | None:
        """Return the first of these settings that is stated."""
        self._used_settings.update(names)
        return next((one for name in names if (one := self.controller.settings.get(name)) is not None), None)

    def text(self, *names: str) -> str | None:
        """Return a setting as text."""
        found = self.get(*names)
        return str(found.value).strip() if found is not None and found.value not in (None, "") else None

    def number(self, *names: str) -> float | None:
        """Return a setting as a number; None if it is not stated, or nan, which ROS writes for "no limit".

        Raises:
            DescriptionError: It is no number.
        """
        found = self.get(*names)
        if found is None or found.value is None:
            return None
        if isinstance(found.value, bool) or not isinstance(found.value, int | float):
            raise DescriptionError(
                f"{names[0]} {str(found.value)[:60]!r} is not a number", location=self._location_of(found)
            )
        return float(found.value) if math.isfinite(found.value) else None

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a setting as a boolean."""
        found = self.get(name)
        return default if found is None else found.value in (True, "true", "True", 1.0)

    def joints(self, *names: str) -> tuple[str, ...]:
        """Return a setting as names of joints, one or a list.

        Raises:
            DescriptionError: There is no joint of a name.
        """
        found = self.get(*names)
        values = [] if found is None else found.value if isinstance(found.value, list) else [found.value]
        for value in values:
            if value not in self._joints:
                raise DescriptionError(
                    f"there is no joint {str(value)[:60]!r}",
                    location=self._location_of(found) if found else self.location,
                    valid=f"joints: {', '.join(sorted(self._joints)) or 'none'}",
                )
        return tuple(dict.fromkeys(map(str, values)))

    def nested(self, name: str) -> dict[str, Any]:
        """Return all settings below a name."""
        prefix = name + "."
        found = {key: one.value for key, one in self.controller.settings.items() if key.startswith(prefix)}
        self._used_settings.update(found)
        return {key.removeprefix(prefix): value for key, value in found.items()}

    def mark_ignored(self, *names: str) -> None:
        """Mark settings as used that need no finding."""
        self._used_settings.update(names)

    def add_finding(self, text: str) -> None:
        """Add a finding about the controller."""
        self._findings.append(text)

    def findings(self) -> tuple[str, ...]:
        """Return all findings, and one about the settings that no mapper read."""
        unused_settings = [
            key for key in self.controller.settings if key not in self._used_settings | _IMPLICIT_SETTINGS
        ]
        levels = list(dict.fromkeys(key.partition(".")[0] for key in unused_settings))
        texts = [
            *self._findings,
            *([f"{', '.join(levels)[:300]} not followed: nothing here does that"] if unused_settings else []),
        ]
        return tuple(f"{self.location}: {note}" for note in texts)

    def to_plugin(self, *elements: tuple[str, Any]) -> Plugin:
        """Return an equal plugin with elements of these tags and texts; those with None are left out."""
        line = self.controller.line
        children = tuple(XmlElement(tag, str(value), line=line) for tag, value in elements if value is not None)
        return Plugin(self.controller.name, "", XmlElement("plugin", children=children, line=line))

    def _location_of(self, setting: ConfigValue) -> str:
        return f"{self.controller.file}:{setting.line}, controller {self.controller.name}"
