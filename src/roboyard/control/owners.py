"""Who moves which joints: one source at a time."""

from __future__ import annotations

from collections.abc import Sequence

from roboyard.errors import InputError


class JointOwners:
    """The sources that move a robot's joints.

    A source takes joints when it begins to move them, rests when it is done, and keeps them, to hold them where they
    are, until another one takes them.  From a source that is not at rest nobody can take them.
    """

    def __init__(self) -> None:
        self._owner: dict[str, str] = {}
        self._moving: set[str] = set()

    def take(self, source: str, joints: Sequence[str]) -> None:
        """From now on ``source`` moves ``joints``.

        Raises:
            InputError: another source is moving one of them; nothing changes.
        """
        for joint in joints:
            other = self._owner.get(joint, source)
            if other != source and other in self._moving:
                raise InputError(f"joint {joint} is being moved by {other}", valid="wait until it rests, or cancel it")
        self._owner.update(dict.fromkeys(joints, source))
        self._moving.add(source)

    def rest(self, source: str) -> None:
        """``source`` is done; it holds what it has."""
        self._moving.discard(source)

    def may(self, source: str, joints: Sequence[str]) -> bool:
        """Whether ``source`` may command all of ``joints`` now: no other one has taken any."""
        return all(self._owner.get(joint, source) == source for joint in joints)

    def owns(self, source: str, joints: Sequence[str]) -> bool:
        """Whether ``source`` has taken all of ``joints``."""
        return all(self._owner.get(joint) == source for joint in joints)
