"""Who moves which joints: one source at a time; and who is told to stop or to pause."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roboyard.errors import InputError


class JointOwners:
    """The sources that move a robot's joints.

    A source takes joints when it begins to move them, rests when it is done, and keeps them, to hold them where they
    are, until another one takes them.  From a source that is not at rest nobody can take them.  Whoever commands joints
    takes part, so that each joint does what one source says; a source alone has owners of its own.
    """

    def __init__(self) -> None:
        self._owner: dict[str, str] = {}
        self._moving: set[str] = set()
        self._stop: dict[str, Callable[[], None]] = {}
        self._paused: set[str] = set()

    def join(self, source: str, stop: Callable[[], None]) -> None:
        """A source that can be stopped says how."""
        self._stop[source] = stop

    def leave(self, source: str) -> None:
        """A source is no more; its joints are nobody's."""
        self._stop.pop(source, None)
        self._moving.discard(source)
        self._owner = {joint: owner for joint, owner in self._owner.items() if owner != source}

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

    def hold(self, source: str, joints: Sequence[str]) -> None:
        """``source`` holds ``joints`` where they are unless somebody else has one of them."""
        if all(self._owner.get(joint, source) == source for joint in joints):
            self._owner.update(dict.fromkeys(joints, source))

    def rest(self, source: str) -> None:
        """``source`` is done; it holds what it has."""
        self._moving.discard(source)

    def owns(self, source: str, joints: Sequence[str]) -> bool:
        """Whether ``source`` has all of ``joints``: only then it may command them."""
        return all(self._owner.get(joint) == source for joint in joints)

    def stop(self, joints: Sequence[str]) -> list[str]:
        """Tell whoever moves one of ``joints`` to stop; who that was."""
        movers = sorted({self._owner.get(joint, "") for joint in joints} & self._moving)
        for source in movers:
            if source in self._stop:
                self._stop[source]()
        return movers

    def pause(self, joints: Sequence[str], on: bool) -> None:
        """From now on ``joints`` stand, or may go on."""
        self._paused = self._paused | set(joints) if on else self._paused - set(joints)

    def paused(self, joints: Sequence[str]) -> bool:
        """Whether one of ``joints`` is to stand for now."""
        return not self._paused.isdisjoint(joints)


def create_joint_owners(_robot: object) -> JointOwners:
    """Return the resource ``owners`` of a robot's nodes: no source moves any of its joints yet."""
    return JointOwners()
