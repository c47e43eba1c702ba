"""Errands: what a person of a scenario does one after the other, by the same two actions that anybody may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roboyard.bus import GoalFuture, Node, resource
from roboyard.config import parameter
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg

_AGAIN = 1.0
"""Pause after an errand that was refused [s]."""


@dataclass(frozen=True)
class Errand:
    """Walk somewhere, show a clip, or wait: one of them."""

    walk: tuple[float, float] | tuple[float, float, float] | None = parameter(
        None, low=-1e4, high=1e4, doc="[x, y] or [x, y, yaw], in m and rad"
    )
    show: str | None = parameter(None, doc="a clip: its name or file")
    wait: float | None = parameter(None, unit="s", low=0.0, high=1e6, doc="how long")
    clip: str = parameter("walk", doc="that is walked by")
    distance: float = parameter(0.0, unit="m", low=0.0, high=5.0, doc="that a round of it covers; 0: as it is")
    speed: float = parameter(1.0, low=0.05, high=20.0, doc="times the clip's own, of what is shown")
    at: tuple[float, float, float] | None = parameter(None, unit="m", doc="[x, y, z] where the hand goes")
    hand: str = parameter("", doc="left or right; default: the clip's own")

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.walk, self.show, self.wait)) != 1:
            raise ConfigError("an errand of none or several of 'walk', 'show' and 'wait'", valid="one of them")


class ErrandsNode(Node):
    """Has a person do errands, again and again if wanted; one that is refused is told in the log, and the next begins.

    uses: <person>/movement (roboyard_msgs/ActorMovement), <person>/animation (roboyard_msgs/ActorAnimation)
    """

    person: str = resource(str)
    errands: tuple[Errand, ...] = resource(tuple)
    repeat: bool = resource(bool)

    state_fields = ("_next", "_until_ns")

    def setup(self) -> None:
        """Begin at once."""
        self._move = self.action_client(f"/{self.person}/movement", action.ActorMovement, on_goal_restored=self._watch)
        self._show = self.action_client(
            f"/{self.person}/animation", action.ActorAnimation, on_goal_restored=self._watch
        )
        self._next, self._until_ns = 0, 0
        self._goal: GoalFuture | None = None
        self.timer(rate=20.0, callback=self._look)

    def _watch(self, goal: GoalFuture) -> None:
        self._goal = goal

    def _look(self) -> None:
        goal = self._goal
        if goal is not None:
            if not goal.done():
                return
            self._goal = None
            if goal.error is not None:
                self.log.warn(f"{self.person}: {goal.error}")
                self._until_ns = self.now_ns + round(_AGAIN * 1e9)
        if self.now_ns < self._until_ns or not self.errands:
            return
        if self._next >= len(self.errands):
            if not self.repeat:
                return
            self._next = 0
        errand = self.errands[self._next]
        self._next += 1
        if errand.wait is not None:
            self._until_ns = self.now_ns + round(errand.wait * 1e9)
        else:
            self._goal = self._asked(errand)

    def _asked(self, errand: Errand) -> GoalFuture:
        if errand.walk is not None:
            x, y, *yaw = errand.walk
            target = pose_to_msg(SE2(x, y, yaw[0] if yaw else 0.0))
            if not yaw:
                target.orientation = msg.Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)
            goal: Any = action.ActorMovement.Goal(
                animation_name=errand.clip, animation_distance=errand.distance, target=target
            )
            return self._move.send(goal)
        place = msg.Point(*(errand.at or (0.0, 0.0, 0.0)))
        goal = action.ActorAnimation.Goal(
            animation_name=errand.show or "", animation_speed=errand.speed, has_target=errand.at is not None,
            target=place, hand=errand.hand,
        )  # fmt: skip
        return self._show.send(goal)
