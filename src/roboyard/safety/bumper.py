"""Bumper: a contact blocks the drive until the bumper has no contact any more.

In the free state all commands pass. A contact blocks the drive. It is free again when the bumper has been open for a
while because the obstacle or the robot was moved away. Where this is not possible, a release allows one slow move away
from the contacts; other motions stay blocked, and a contact at another place blocks at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

from roboyard.config import Config, parameter
from roboyard.control import ZERO_TWIST, PlanarTwist


class BumperState(Enum):
    """State of the drive: all commands pass, none, or one slow motion away from the contacts."""

    FREE = "free"
    BLOCKED = "blocked"
    RELEASED = "released"


class BumperContact(NamedTuple):
    """A contact of the bumper, in the base frame.

    Attributes:
        x: Position ahead [m].
        y: Position to the left [m].
        nx: First component of the unit normal, from the obstacle into the robot.
        ny: Second component of the normal.
    """

    x: float
    y: float
    nx: float
    ny: float


_NEW_CONTACT_DISTANCE = 0.15
"""Distance from the contacts of a release from which a contact is a new one [m]."""


class BumperConfig(Config):
    """How a blocked drive becomes free again."""

    clear_time: float = parameter(
        0.3, unit="s", low=0.01, high=60.0, doc="Time without contact before the robot drives again."
    )
    release_speed: float = parameter(
        0.05, unit="m/s", low=0.001, high=1.0, doc="Speed of the fastest contact point in the motion away."
    )
    release_distance: float = parameter(
        0.15, unit="m", low=0.001, high=5.0, doc="Longest path of a contact point in the motion away."
    )
    release_time: float = parameter(10.0, unit="s", low=0.1, high=600.0, doc="Time for which a release holds.")


class BumperGuard:
    """Filters the commands of a robot with a bumper.

    Attributes:
        state: Which commands pass.
        contacts: Contacts of the bumper: the present ones, or the last ones while the drive is not free.
    """

    def __init__(self, config: BumperConfig | None = None) -> None:
        self.config = config or BumperConfig()
        self.state = BumperState.FREE
        self.contacts: tuple[BumperContact, ...] = ()
        self._last_contact_ns = 0
        self._release_end_ns = 0
        self._remaining_distance = 0.0

    def update_contacts(self, contacts: Sequence[BumperContact], time_ns: int) -> None:
        """Store the contacts at ``time_ns`` [ns], which may be none."""
        if not contacts:
            if self.state is not BumperState.FREE and time_ns - self._last_contact_ns >= self.config.clear_time * 1e9:
                self.state, self.contacts = BumperState.FREE, ()
            return
        self._last_contact_ns = time_ns
        if self.state is BumperState.RELEASED and not any(self._is_new(contact) for contact in contacts):
            return
        self.state, self.contacts = BumperState.BLOCKED, tuple(contacts)

    def release(self, time_ns: int) -> bool:
        """Allow one slow motion away from the contacts; return whether the drive was blocked."""
        if self.state is BumperState.FREE:
            return False
        self.state = BumperState.RELEASED
        self._release_end_ns = time_ns + round(self.config.release_time * 1e9)
        self._remaining_distance = self.config.release_distance
        return True

    def filter_command(self, command: PlanarTwist, dt: float, time_ns: int) -> PlanarTwist:
        """Return the part of a command that may pass.

        Args:
            command: Command, in the base frame.
            dt: Time for which it will be driven [s].
            time_ns: Present time [ns].
        """
        if self.state is BumperState.FREE:
            return command
        if self.state is BumperState.RELEASED and (time_ns >= self._release_end_ns or self._remaining_distance <= 0.0):
            self.state = BumperState.BLOCKED
        if self.state is BumperState.BLOCKED or not self.moves_away(command):
            return ZERO_TWIST
        max_speed = max((math.hypot(*_contact_velocity(command, contact)) for contact in self.contacts), default=0.0)
        max_speed = max(max_speed, math.hypot(command.vx, command.vy))
        scaling = min(1.0, self.config.release_speed / max_speed) if max_speed > 0.0 else 1.0
        self._remaining_distance -= scaling * max_speed * dt
        return PlanarTwist(*(scaling * value for value in command))

    def moves_away(self, twist: PlanarTwist) -> bool:
        """Return whether every contact point would move out of its obstacle, none along it or into it."""
        if not any(twist):
            return True
        for contact in self.contacts:
            vx, vy = _contact_velocity(twist, contact)
            if vx * contact.nx + vy * contact.ny <= 0.02 * math.hypot(vx, vy):
                return False
        return True

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "state": self.state.value,
            "touching": [tuple(contact) for contact in self.contacts],
            "pressed_ns": self._last_contact_ns,
            "until_ns": self._release_end_ns,
            "left": self._remaining_distance,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self.state = BumperState(saved["state"])
        self.contacts = tuple(BumperContact(*contact) for contact in saved["touching"])
        self._last_contact_ns, self._release_end_ns, self._remaining_distance = (
            saved["pressed_ns"],
            saved["until_ns"],
            saved["left"],
        )

    def _is_new(self, contact: BumperContact) -> bool:
        return all(
            math.hypot(contact.x - contact_before.x, contact.y - contact_before.y) > _NEW_CONTACT_DISTANCE
            for contact_before in self.contacts
        )


def _contact_velocity(twist: PlanarTwist, contact: BumperContact) -> tuple[float, float]:
    """Return the velocity of the robot at the contact, v + ω × p [m/s]."""
    return twist.vx - twist.wz * contact.y, twist.vy + twist.wz * contact.x
