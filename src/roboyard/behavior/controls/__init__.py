"""Nodes with several children."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.behavior.controls.branches import IfThenElse, Switch, TryCatch, WhileDoElse, switch
    from roboyard.behavior.controls.parallel import Parallel, ParallelAll
    from roboyard.behavior.controls.reactive import ReactiveFallback, ReactiveSequence
    from roboyard.behavior.controls.sequences import (
        AsyncFallback,
        AsyncSequence,
        Fallback,
        Sequence,
        SequenceWithMemory,
    )

__all__ = [
    "AsyncFallback",
    "AsyncSequence",
    "Fallback",
    "IfThenElse",
    "Parallel",
    "ParallelAll",
    "ReactiveFallback",
    "ReactiveSequence",
    "Sequence",
    "SequenceWithMemory",
    "Switch",
    "TryCatch",
    "WhileDoElse",
    "switch",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "branches": ("IfThenElse", "Switch", "TryCatch", "WhileDoElse", "switch"),
    "parallel": ("Parallel", "ParallelAll"),
    "reactive": ("ReactiveFallback", "ReactiveSequence"),
    "sequences": ("AsyncFallback", "AsyncSequence", "Fallback", "Sequence", "SequenceWithMemory"),
})  # fmt: skip
