"""What a node of a tree answers when it is ticked, and what kinds of nodes there are."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """A node's status, with BehaviorTree.CPP's numbers."""

    IDLE = 0
    RUNNING = 1
    SUCCESS = 2
    FAILURE = 3
    SKIPPED = 4


IDLE, RUNNING, SUCCESS, FAILURE, SKIPPED = Status
"""Short names: an enumeration's attribute costs a look-up at every tick."""


class Kind(Enum):
    """What a node is, by the tag that names it in XML."""

    ACTION = "Action"
    CONDITION = "Condition"
    CONTROL = "Control"
    DECORATOR = "Decorator"
    SUBTREE = "SubTree"
