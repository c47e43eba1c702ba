"""Nodes with one child."""

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
