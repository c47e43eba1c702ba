"""A mission: poses that the robot shall be brought to, one after the other."""

from __future__ import annotations

from typing import Final

from roboyard.bus import GoalFuture, Node, param
from roboyard.bus.actions.client import GoalRejectedError
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped
from roboyard.navigation.errors import PoseUnknown

_MAY_PASS: Final = (PoseUnknown.cause,)
"""Causes for which a goal is refused that may be taken a little later."""


class MissionNode(Node):
    """Sends goals to the navigator, as somebody does who clicks on a map.

    actions: navigate_to_pose (client)
    out: ~/reached (std_msgs/UInt32): how many goals were reached so far, latched

    A goal that the navigator refuses since it does not know yet where the robot is, or that nobody is there to take, is
    sent again every second for ``patience``; one that is refused for another cause is over.
    """

    goals: tuple[float, ...] = param((0.0,), doc="x, y [m], yaw [rad] in the map, for each", fixed=True)
    scatter: float = param(0.0, unit="m", low=0.0, high=100.0, doc="how far goals differ from seed to seed")
    start: float = param(1.0, unit="s", low=0.0, high=1e6, doc="when the first is sent", fixed=True)
    rest: float = param(0.5, unit="s", low=0.0, high=1e4, doc="at each goal")
    patience: float = param(10.0, unit="s", low=0.0, high=1e4, doc="with a navigator that is not ready")
    go_on: bool = param(True, doc="with the next goal when one cannot be reached")
    map_frame: str = param("map", fixed=True)

    fields = ("_scattered", "_next", "_reached", "_due", "_asked")

    def setup(self) -> None:
        """Connect."""
        if not self.goals or len(self.goals) % 3:
            raise ConfigError(f"{len(self.goals)} numbers", where="goals", valid="x, y, yaw for each goal")
        self._next = self._reached = 0
        self._scattered = self.random.uniform(-self.scatter, self.scatter, (len(self.goals) // 3, 2)).tolist()
        self._due: float | None = self.start
        self._asked: float | None = None
        self._client = self.action_client("navigate_to_pose", action.NavigateToPose, on_restored=self._follow)
        self._done = self.publisher("~/reached", msg.UInt32, latched=True)
        self.timer(rate=10.0, callback=self._tick)

    def _tick(self) -> None:
        if self._due is None or self.now < self._due - 1e-9:
            return
        if 3 * self._next >= len(self.goals):
            return
        self._due = None
        self._asked = self.now if self._asked is None else self._asked
        x, y, yaw = self.goals[3 * self._next : 3 * self._next + 3]
        dx, dy = self._scattered[self._next]
        pose = SE2(x + dx, y + dy, yaw)
        stamped = pose_stamped(pose, self.frame(self.map_frame), self.now_ns)
        self._follow(self._client.send(action.NavigateToPose.Goal(pose=stamped)))

    def _follow(self, goal: GoalFuture) -> None:
        goal.then(lambda _: self._ended(goal))

    def _ended(self, goal: GoalFuture) -> None:
        if goal.error is not None:
            self._refused(goal)
            return
        if goal.succeeded:
            self._reached += 1
            self._done.publish(msg.UInt32(data=self._reached))
        elif not self.go_on:
            return
        self._go_on()

    def _refused(self, goal: GoalFuture) -> None:
        asked = self.now if self._asked is None else self._asked
        for_now = not isinstance(goal.error, GoalRejectedError) or goal.cause in _MAY_PASS
        if for_now and self.now - asked < self.patience:
            self._due = self.now + 1.0
            return
        self.log.warn(f"goal {self._next + 1} was refused: {goal.error}")
        if self.go_on:
            self._go_on()

    def _go_on(self) -> None:
        self._next += 1
        self._asked = None
        self._due = self.now + self.rest
