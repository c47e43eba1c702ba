"""A robot driven by hand from a page: the deadman is the message that goes on coming.

While somebody drives, the page says so again and again.  When it falls silent the robot is told to stop, once, and then
nothing.  Heartbeats of the operator go on only as long as the page is heard: a page that is closed, or whose link is
cut, is an operator who is lost, and the robot's own tracker finds that out.
"""

from __future__ import annotations

import asyncio
from typing import Any

from roboyard.bus import Bus
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError
from roboyard.messages import msg
from roboyard.messages.convert import make_header
from roboyard.view.abilities import STAMPED, heard
from roboyard.view.sender import Sender
from roboyard.view.show import Reply
from roboyard.view.wire import number, numbers, word

DEADMAN = 0.4
"""Silence of a page after which a robot that was driven is told to stop [wall s]; letting go is told at once."""
_SILENCE = 0.5
"""Silence after which the operator's heartbeats end [wall s]."""
_TICK, _RESEND, _BEAT = 0.02, 0.045, 0.05
_FASTEST = 20.0


class DriveHand:
    """Drives one robot at a time.

    Args:
        bus: Of the run.
        loop: Of the server.
        sender: Into the run.
    """

    ops = frozenset({"drive", "operator", "beat"})

    def __init__(self, bus: Bus, loop: asyncio.AbstractEventLoop, sender: Sender) -> None:
        self._bus, self._loop, self._sender = bus, loop, sender
        self._viewer: int | None = None
        self._space: str | None = None
        self._wanted: list[float] | None = None
        self._operating = False
        self._driven_at = self._heard_at = self._sent_at = self._beat_at = 0.0
        self._sent_ns = self._beat_ns = -1
        self._ticking = False

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """Take what the page's stick says.

        Raises:
            InputError: no such robot, or it cannot be driven.
        """
        op, now = said["op"], wall_seconds()
        self._viewer = viewer
        self._heard_at = now
        if op == "beat":
            return
        space = word(said, "space", 100)
        if not heard(self._bus, f"{space}/cmd_vel"):
            raise InputError(f"nobody listens to {space}/cmd_vel", valid="a robot that can be driven")
        if self._space is not None and space != self._space:
            self._let_go()
        self._space = space
        if op == "operator":
            self._operating = bool(number(said, "on", 0, 1))
        else:
            wanted = [min(max(value, -_FASTEST), _FASTEST) for value in numbers(said, "v", 3)]
            self._driven_at = now
            if not any(wanted):
                self._let_go()
            elif wanted != self._wanted:
                self._wanted = wanted
                self._send(wanted, now)
        if not self._ticking:
            self._ticking = True
            self._tick()

    def lost(self, viewer: int) -> None:
        """Who drove is gone, or steers no more."""
        if viewer == self._viewer:
            self._let_go()
            self._operating, self._viewer = False, None

    def _tick(self) -> None:
        now, now_ns = wall_seconds(), self._bus.now_ns
        if self._wanted is not None and now - self._driven_at > DEADMAN:
            self._let_go()
        if self._wanted is not None and now - self._sent_at >= _RESEND and now_ns > self._sent_ns:
            self._send(self._wanted, now)
        if self._operating and now - self._heard_at > _SILENCE:
            self._operating = False
        if self._operating and now - self._beat_at >= _BEAT and now_ns > self._beat_ns:
            self._beat_at, self._beat_ns = now, now_ns
            self._publish("teleop/heartbeat", make_header("", now_ns))
        self._ticking = self._operating or self._wanted is not None
        if self._ticking and not self._bus.is_closing:
            self._loop.call_later(_TICK, self._tick)

    def _let_go(self) -> None:
        """One zero, and then nothing, so that the robot may do something by itself."""
        if self._wanted is not None:
            self._wanted = None
            self._send([0.0, 0.0, 0.0], wall_seconds())

    def _send(self, v: list[float], now: float) -> None:
        self._sent_at, self._sent_ns = now, self._bus.now_ns
        twist = msg.Twist(linear=msg.Vector3(x=v[0], y=v[1]), angular=msg.Vector3(z=v[2]))
        stamped = heard(self._bus, f"{self._space}/cmd_vel") == STAMPED
        self._publish(
            "cmd_vel", msg.TwistStamped(header=make_header("", self._sent_ns), twist=twist) if stamped else twist
        )

    def _publish(self, name: str, message: Any) -> None:
        try:
            self._sender.publish(f"{self._space}/{name}", message, f"{self._space}/teleop")
        except InputError:  # the run is too busy to hear; the next one may come through
            return
