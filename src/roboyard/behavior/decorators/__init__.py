"""Nodes with one child."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.behavior.decorators.counting import Loop, Repeat, RetryUntilSuccessful, loop
    from roboyard.behavior.decorators.outcomes import (
        ForceFailure,
        ForceSuccess,
        Inverter,
        KeepRunningUntilFailure,
        Precondition,
        RunOnce,
        SubTree,
    )
    from roboyard.behavior.decorators.timing import Delay, Timeout
    from roboyard.behavior.decorators.updates import SkipUnlessUpdated, WaitValueUpdate, WasEntryUpdated

__all__ = [
    "Delay",
    "ForceFailure",
    "ForceSuccess",
    "Inverter",
    "KeepRunningUntilFailure",
    "Loop",
    "Precondition",
    "Repeat",
    "RetryUntilSuccessful",
    "RunOnce",
    "SkipUnlessUpdated",
    "SubTree",
    "Timeout",
    "WaitValueUpdate",
    "WasEntryUpdated",
    "loop",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "counting": ("Loop", "Repeat", "RetryUntilSuccessful", "loop"),
    "outcomes": ("ForceFailure", "ForceSuccess", "Inverter", "KeepRunningUntilFailure", "Precondition", "RunOnce",
        "SubTree"),
    "timing": ("Delay", "Timeout"),
    "updates": ("SkipUnlessUpdated", "WaitValueUpdate", "WasEntryUpdated"),
})  # fmt: skip
