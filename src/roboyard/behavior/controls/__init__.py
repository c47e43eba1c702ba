"""Nodes with several children."""

from roboyard.behavior.controls.branches import IfThenElse, Switch, TryCatch, WhileDoElse, switch
from roboyard.behavior.controls.parallel import Parallel, ParallelAll
from roboyard.behavior.controls.reactive import ReactiveFallback, ReactiveSequence
from roboyard.behavior.controls.sequences import AsyncFallback, AsyncSequence, Fallback, Sequence, SequenceWithMemory

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
