"""The bumper node: blocks velocity commands while the bumper has contact."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from roboyard.bus import Node, TransformError
from roboyard.config import Config, parameter
from roboyard.control import ZERO_TWIST
from roboyard.control.nodes.velocity_base import planar_twist_from_msg, planar_twist_to_msg
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.messages import msg, srv
from roboyard.messages.convert import is_finite_twist
from roboyard.safety.bumper import BumperConfig, BumperContact, BumperGuard, BumperState


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
    bumper: BumperConfig = parameter(factory=BumperConfig, flatten="", doc="How the bumper is cleared.")


class BumperGuardNode(Node[BumperGuardNodeConfig]):
    """Blocks the drive, whoever commands it, from a touch until the bumper is open again.

    in: cmd_vel_in, the bumpers' topics (gazebo_msgs/ContactsState), /tf base → bumper
    out: cmd_vel_out; ~state (std_msgs/String, latched: free, blocked, released)
    service: ~release (std_srvs/Trigger): one slow motion away from the contacts

    A bumper that is silent for ``source_timeout`` blocks too, since its contacts are unknown.
    """

    state_fields = ("_command_ns", "_published_state", "_start_ns")

    def setup(self) -> None:
        """Connect."""
        if not self.config.contact_topics:
            raise ConfigError("no bumper", location=f"{self.full_name}, parameter 'contact_topics'", valid="topics")
        self._guard = BumperGuard(self.config.bumper)
        self._command, self._command_ns = ZERO_TWIST, -1
        self._contacts: dict[str, tuple[BumperContact, ...]] = dict.fromkeys(self.config.contact_topics, ())
        self._received_ns: dict[str, int] = {}
        self._start_ns = self.now_ns
        self._published_state = ""
        self._output = self.publisher("cmd_vel_out", msg.Twist)
        self._state = self.publisher("~state", msg.String, latched=True)
        self.subscribe("cmd_vel_in", msg.Twist, self._on_command, with_source=True)
        for topic in self.config.contact_topics:
            self.subscribe(topic, msg.ContactsState, partial(self._on_contacts, topic))
        self.service("~release", srv.Trigger, self._on_release)
        self.timer(rate=self.config.rate, callback=self._update)
        self._publish_state()

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {
            "guard": self._guard.save_state(),
            "wanted": tuple(self._command),
            "touches": {topic: [tuple(contact) for contact in contacts] for topic, contacts in self._contacts.items()},
            "seen_ns": dict(self._received_ns),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._guard.load_state(state["guard"])
        self._command = type(ZERO_TWIST)(*state["wanted"])
        self._contacts = {
            topic: tuple(BumperContact(*contact) for contact in contacts)
            for topic, contacts in state["touches"].items()
        }
        self._received_ns = dict(state["seen_ns"])

    # -- inputs --------------------------------------------------------------------------------------------------------
    def _on_command(self, message: Any, publisher: str) -> None:
        if not is_finite_twist(message):
            self.log.error(f"rejected a command of {publisher}: not finite", throttle=5.0)
            return
        self._command, self._command_ns = planar_twist_from_msg(message), self.now_ns

    def _on_contacts(self, topic: str, message: Any) -> None:
        self._received_ns[topic] = self.now_ns
        try:
            T = (
                self.transforms.lookup(self.frame(self.config.base_frame), message.header.frame_id)
                if message.states
                else None
            )
        except TransformError as error:
            self.log.error(f"contact at an unknown position: {error}", throttle=5.0)
            T = None
        self._contacts[topic] = tuple(_contacts_from_msg(message, T))
        previous_state = self._guard.state
        self._guard.update_contacts(
            [contact for contacts in self._contacts.values() for contact in contacts], self.now_ns
        )
        if self._guard.state is BumperState.BLOCKED and previous_state is not BumperState.BLOCKED:
            names = sorted({state.collision2_name for state in message.states})
            self.log.warn(f"contact with {', '.join(names)}: the drive is blocked", throttle=1.0)
            self._output.publish(planar_twist_to_msg(ZERO_TWIST))
        if self._guard.state is not previous_state:
            self._publish_state()

    def _on_release(self, request: Any) -> Any:
        if not self._guard.release(self.now_ns):
            return srv.Trigger.Response(success=False, message="the drive is not blocked")
        self._publish_state()
        config = self.config.bumper
        return srv.Trigger.Response(
            success=True,
            message=f"one move away, at most {config.release_distance:g} m at {config.release_speed:g} m/s",
        )

    # -- outputs -------------------------------------------------------------------------------------------------------
    def _update(self) -> None:
        if self._command_ns < 0:
            self._publish_state()
            return
        if self.now_ns - self._command_ns > self.config.command_timeout * 1e9:
            self._command, self._command_ns = ZERO_TWIST, -1
        allowed = self._guard.filter_command(self._command, 1.0 / self.config.rate, self.now_ns)
        self._output.publish(planar_twist_to_msg(ZERO_TWIST if self._silent_topics() else allowed))
        self._publish_state()

    def _silent_topics(self) -> list[str]:
        timeout_ns = self.config.source_timeout * 1e9
        return [
            topic
            for topic in self.config.contact_topics
            if self.now_ns - self._received_ns.get(topic, self._start_ns) > timeout_ns
        ]

    def _publish_state(self) -> None:
        silent, state = self._silent_topics(), self._guard.state
        if silent:
            self.report_health("error", f"blocked: {', '.join(silent)} silent")
        elif state is BumperState.FREE:
            self.report_health("ok", "no contact")
        else:
            bearings = ", ".join(_bearing_text(contact) for contact in self._guard.contacts)
            self.report_health("warn", f"{state.value}: contact {bearings}")
        text = "blocked" if silent else state.value
        if text != self._published_state:
            self._published_state = text
            self._state.publish(msg.String(data=text))


def _contacts_from_msg(message: Any, T_base_sensor: SE3 | None) -> list[BumperContact]:
    """Return the contacts of a gazebo_msgs/ContactsState; those at an unknown position count as ahead."""
    contacts = []
    for state in message.states:
        for position, normal in zip(state.contact_positions, state.contact_normals, strict=True):
            if T_base_sensor is None:
                contacts.append(BumperContact(0.0, 0.0, -1.0, 0.0))
                continue
            p = T_base_sensor @ (position.x, position.y, position.z)
            n = T_base_sensor.rotation_matrix() @ (normal.x, normal.y, normal.z)
            length = math.hypot(n[0], n[1])
            if length > 0.2:  # contacts with the ground press from below
                contacts.append(BumperContact(float(p[0]), float(p[1]), float(n[0] / length), float(n[1] / length)))
    return contacts


def _bearing_text(contact: BumperContact) -> str:
    bearing = math.degrees(math.atan2(-contact.ny, -contact.nx))
    return f"at {bearing:.0f}°"
