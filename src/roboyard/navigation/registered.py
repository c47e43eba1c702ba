"""Parts that packages register by name: planners, controllers."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import entry_points
from typing import Any

from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError, UnknownNameError


def registered_names(group: str) -> set[str]:
    """All names of a group of entry points."""
    return {entry.name for entry in entry_points(group=group)}


def registered(group: str, what: str, name: str, known: Collection[str]) -> Any:
    """What a package registered under a name; of several the first by value.

    Args:
        group: Of entry points.
        what: They are, for errors.
        name: Of the wanted one.
        known: Names there are to choose from, for errors.

    Raises:
        UnknownNameError: there is none.
        ConfigError: its package does not offer what it says.
    """
    found = sorted(entry_points(group=group, name=name), key=lambda entry: entry.value)
    if not found:
        raise UnknownNameError(f"no {what} {name!r}{did_you_mean(name, known)}", valid=", ".join(known))
    try:
        return found[0].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"cannot be loaded: {error}", location=f"{what} {name} ({found[0].value})") from error
