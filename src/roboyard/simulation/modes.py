"""In which modes joints take commands, by what their description says."""

from __future__ import annotations

from roboyard.description.model import Model
from roboyard.hardware.interface import CommandMode


def modes_of(model: Model, joint: str) -> tuple[CommandMode, ...]:
    """Modes in which ``joint`` takes commands.

    What the model's interfaces say; where a model declares no interface at all, every joint takes every mode, so that
    a description whose plugins alone name its motors can be driven.  Mimicking joints take none.
    """
    if any(item.mimic is not None and item.name == joint for item in model.joints):
        return ()
    if not any(interface.commands for interface in model.interfaces):
        return ("position", "velocity", "effort")
    declared = [mode for item in model.interfaces if item.joint == joint for mode, _, _ in item.commands]
    known: tuple[CommandMode, ...] = ("position", "velocity", "effort")
    return tuple(mode for mode in known if mode in declared)
