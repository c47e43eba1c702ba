"""Why a skill did not do what it was asked for."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """One word for each way in which skills end."""

    DONE = ""
    VIEW_EMPTY = "view_empty"
    """Nothing of the kind is in view."""
    DISAGREEMENT = "disagreement"
    """Something is seen, but never twice at the same place."""
    CAMERA_SILENT = "camera_silent"
    """No pictures come, or nothing that can be used with them."""
    NO_DEPTH = "no_depth"
    """No pixel of the depth pictures is known, or there are none."""
    NOT_REACHABLE = "not_reachable"
    """No joints put the tool there, or no way leads there."""
    IN_COLLISION = "in_collision"
    """The arm, or what it holds, would touch something."""
    NOT_FOLLOWED = "not_followed"
    """The joints did not go where they were told to."""
    NOT_GRASPED = "not_grasped"
    """The fingers closed on nothing."""
    HAND_STUCK = "hand_stuck"
    """The fingers do not open: what is between them stays there."""
    BLOCKED = "blocked"
    """The fingers, or what they hold, came upon something on the way down."""
    LOST = "lost"
    """What was held is no longer between the fingers."""
    TOO_FAST = "too_fast"
    """It moves faster than the arm can follow within its reach."""
    OUT_OF_REACH = "out_of_reach"
    """It moves on, and leaves the arm's reach before the hand can be there."""
    UNSTEADY = "unsteady"
    """The belt changed its speed meanwhile."""
    BELT_SILENT = "belt_silent"
    """Nobody tells how fast the belt moves."""
    TOO_HEAVY = "too_heavy"
    """The arm cannot lift it."""
    TOO_CLOSE = "too_close"
    """The fingers find no room beside what stands around it."""
    COVERED = "covered"
    """Something stands on all places that are seen."""
    HAND_FULL = "hand_full"
    """Something is held already."""
    HAND_EMPTY = "hand_empty"
    """Nothing is held."""
    BAY_FULL = "bay_full"
    """Something is in this bay, or in all."""
    NOTHING_LOADED = "nothing_loaded"
    """Nothing is in this bay, or in any."""
    BAD_GOAL = "bad_goal"
    """What was asked for makes no sense."""
    NO_SERVER = "no_server"
    """Nobody serves an action that is needed."""
    TIMED_OUT = "timed_out"
    """An answer did not come in time."""
    CANCELLED = "cancelled"
    """Whoever asked for it wants it no longer, or a stop came."""
    PREEMPTED = "preempted"
    """Something newer was asked for."""


BLIND = (Cause.CAMERA_SILENT, Cause.NO_DEPTH)
"""Nothing can be seen at all: looking elsewhere does not help."""
UNSEEN = (Cause.VIEW_EMPTY, Cause.DISAGREEMENT)
"""There is nothing here that one could go for."""
MOVED_ON = (Cause.OUT_OF_REACH, Cause.UNSTEADY)
"""It is elsewhere than where the hand went: look again."""
BEYOND = (Cause.TOO_FAST, Cause.BELT_SILENT)
"""Nothing can be done at this belt as it is."""
BARRED = (Cause.NOT_REACHABLE, Cause.IN_COLLISION)
"""The arm does not get there."""
BURDENED = (Cause.TOO_HEAVY, Cause.NOT_FOLLOWED)
"""What is held may be more than the arm can carry there."""
ENDED = (Cause.CANCELLED, Cause.PREEMPTED)
"""Somebody ended it."""
