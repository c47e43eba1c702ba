"""From what people write (``Twist``, ``geometry_msgs/Twist``) to full type names."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from roboyard.errors import MessageError

# Whose ``Name`` a bare name means when several packages have one.
PACKAGE_PREFERENCE = (
    "std_msgs", "geometry_msgs", "sensor_msgs", "nav_msgs", "builtin_interfaces", "tf2_msgs", "std_srvs",
    "visualization_msgs", "diagnostic_msgs", "trajectory_msgs", "action_msgs",
)  # fmt: skip


def resolve_type_name(name: str, kind: str, type_names: Sequence[str]) -> str:
    """The full name that ``name`` means.

    Args:
        name: ``package/msg/Name``, ``package/Name`` or ``Name``.
        kind: ``msg``, ``srv`` or ``action``.
        known: Full names to choose from.

    Raises:
        MessageError: nothing of that name (lists near ones), or several (lists them).
    """
    parts = name.split("/")
    if len(parts) == 3 and name in type_names:
        return name
    if len(parts) == 2 and f"{parts[0]}/{kind}/{parts[1]}" in type_names:
        return f"{parts[0]}/{kind}/{parts[1]}"
    if len(parts) == 1:
        candidates = [full for full in type_names if full.rsplit("/", 1)[1] == name]
        if len(candidates) == 1:
            return candidates[0]
        for package in PACKAGE_PREFERENCE:
            if (full := f"{package}/{kind}/{name}") in candidates:
                return full
        if candidates:
            raise MessageError(f"'{name}' is ambiguous", valid=f"one of {', '.join(sorted(candidates))}")
    kind_text = {"msg": "message type", "srv": "service type", "action": "action type"}[kind]
    raise MessageError(f"unknown {kind_text} '{name[:200]}'", valid=suggest_types(name, type_names))


def suggest_types(name: str, type_names: Sequence[str]) -> str:
    """Names like ``name``, as the end of an error message."""
    short: dict[str, list[str]] = {}
    for full in type_names:
        short.setdefault(full.rsplit("/", 1)[1].lower(), []).append(full)
    tail = name[:200].rsplit("/", 1)[-1]
    matches = [full for key in get_close_matches(tail.lower(), list(short), 5, 0.6) for full in short[key]][:5]
    if not matches and "/" in name:
        package = name.split("/", 1)[0] + "/"
        matches = [full for full in type_names if full.startswith(package)][:5]
    kind = type_names[0].split("/")[1] if type_names else "msg"
    return f"near it: {', '.join(matches)}" if matches else f"a package/{kind}/Name; own ones come in by register()"
