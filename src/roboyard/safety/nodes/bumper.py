"""The bumper guard node: no command passes while something presses the bumper."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from roboyard.bus import Node, TransformError
from roboyard.config import Config, parameter
from roboyard.control import STANDSTILL
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.messages import msg, srv
from roboyard.messages.convert import is_finite_twist
from roboyard.safety.bumper import BumperConfig, BumperGuard, Bumping, TouchPoint
from roboyard.safety.nodes.planar import planar_twist, twist_message


class BumperGuardNodeConfig(Config):
    """Configuration of `BumperGuardNode`."""

    contact_topics: tuple[str, ...] = parameter(("bumper",), doc="Topics of the bumpers, gazebo_msgs/ContactsState.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the published commands.")
    command_timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="Age at which a command is no longer used.", runtime=True
    )
    source_timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="Silence of a bumper after which the drive is blocked."
    )
    release: BumperConfig = parameter(factory=BumperConfig, flatten="", doc="How the bumper is cleared.")


class BumperGuardNode(Node[BumperGuardNodeConfig]):
    """Blocks the drive, whoever commands it, from a touch until the bumper is open again.

    in: cmd_vel_in, the bumpers' topics (gazebo_msgs/ContactsState), /tf base → bumper
    out: cmd_vel_out; ~state (std_msgs/String, latched: free, blocked, released)
    service: ~release (std_srvs/Trigger): one slow move away from what it touches

    A bumper that is silent for ``source_timeout`` blocks too: nobody would know of a touch.
    """

    state_fields = ("_heard_ns", "_told", "_began_ns")

    def setup(self) -> None:
        """Connect."""
        if not self.config.contact_topics:
            raise ConfigError("no bumper", location=f"{self.full_name}, parameter 'contact_topics'", valid="topics")
        self._guard = BumperGuard(self.config.release)
        self._wanted, self._heard_ns = STANDSTILL, -1
        self._touches: dict[str, tuple[TouchPoint, ...]] = dict.fromkeys(self.config.contact_topics, ())
        self._seen_ns: dict[str, int] = {}
        self._began_ns = self.now_ns
        self._told = ""
        self._output = self.publisher("cmd_vel_out", msg.Twist)
        self._state = self.publisher("~state", msg.String, latched=True)
        self.subscribe("cmd_vel_in", msg.Twist, self._on_command, with_source=True)
        for topic in self.config.contact_topics:
            self.subscribe(topic, msg.ContactsState, partial(self._on_contacts, topic))
        self.service("~release", srv.Trigger, self._on_release)
        self.timer(rate=self.config.rate, callback=self._tick)
        self._tell()

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {
            "guard": self._guard.save_state(),
            "wanted": tuple(self._wanted),
            "touches": {topic: [tuple(touch) for touch in touches] for topic, touches in self._touches.items()},
            "seen_ns": dict(self._seen_ns),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._guard.load_state(state["guard"])
        self._wanted = type(STANDSTILL)(*state["wanted"])
        self._touches = {topic: tuple(TouchPoint(*one) for one in ones) for topic, ones in state["touches"].items()}
        self._seen_ns = dict(state["seen_ns"])

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _on_command(self, message: Any, publisher: str) -> None:
        if not is_finite_twist(message):
            self.log.error(f"refused a command of {publisher}: not finite", throttle=5.0)
            return
        self._wanted, self._heard_ns = planar_twist(message), self.now_ns

    def _on_contacts(self, topic: str, message: Any) -> None:
        self._seen_ns[topic] = self.now_ns
        try:
            T = (
                self.transforms.lookup(self.frame(self.config.base_frame), message.header.frame_id)
                if message.states
                else None
            )
        except TransformError as error:
            self.log.error(f"a touch somewhere: {error}", throttle=5.0)
            T = None
        self._touches[topic] = tuple(_touch_points(message, T))
        before = self._guard.state
        self._guard.press([touch for touches in self._touches.values() for touch in touches], self.now_ns)
        if self._guard.state is Bumping.BLOCKED and before is not Bumping.BLOCKED:
            names = sorted({state.collision2_name for state in message.states})
            self.log.warn(f"touched {', '.join(names)}: the drive is blocked", throttle=1.0)
            self._output.publish(twist_message(STANDSTILL))
        if self._guard.state is not before:
            self._tell()

    def _on_release(self, request: Any) -> Any:
        if not self._guard.release(self.now_ns):
            return srv.Trigger.Response(success=False, message="nothing is blocked")
        self._tell()
        release = self.config.release
        return srv.Trigger.Response(
            success=True,
            message=f"one move away, at most {release.release_distance:g} m at {release.release_speed:g} m/s",
        )

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        if self._heard_ns < 0:
            self._tell()
            return
        if self.now_ns - self._heard_ns > self.config.command_timeout * 1e9:
            self._wanted, self._heard_ns = STANDSTILL, -1
        allowed = self._guard.judge(self._wanted, 1.0 / self.config.rate, self.now_ns)
        self._output.publish(twist_message(STANDSTILL if self._silent() else allowed))
        self._tell()

    def _silent(self) -> list[str]:
        late = self.config.source_timeout * 1e9
        return [
            one for one in self.config.contact_topics if self.now_ns - self._seen_ns.get(one, self._began_ns) > late
        ]

    def _tell(self) -> None:
        silent, state = self._silent(), self._guard.state
        if silent:
            self.report_health("error", f"blocks: {', '.join(silent)} silent")
        elif state is Bumping.FREE:
            self.report_health("ok", "nothing touches")
        else:
            sides = ", ".join(_side(touch) for touch in self._guard.touching)
            self.report_health("warn", f"{state.value}: touched {sides}")
        text = "blocked" if silent else state.value
        if text != self._told:
            self._told = text
            self._state.publish(msg.String(data=text))


def _touch_points(message: Any, T_base_sensor: SE3 | None) -> list[TouchPoint]:
    """Of a gazebo_msgs/ContactsState; touches without a place, and those at an unknown one, count as ahead."""
    found = []
    for state in message.states:
        for position, normal in zip(state.contact_positions, state.contact_normals, strict=True):
            if T_base_sensor is None:
                found.append(TouchPoint(0.0, 0.0, -1.0, 0.0))
                continue
            p = T_base_sensor @ (position.x, position.y, position.z)
            n = T_base_sensor.rotation_matrix() @ (normal.x, normal.y, normal.z)
            size = math.hypot(n[0], n[1])
            if size > 0.2:  # what it stands on presses from below
                found.append(TouchPoint(float(p[0]), float(p[1]), float(n[0] / size), float(n[1] / size)))
    return found


def _side(touch: TouchPoint) -> str:
    bearing = math.degrees(math.atan2(-touch.ny, -touch.nx))
    return f"at {bearing:.0f}°"
