"""Joint claims: at most one source commands a joint at a time; sources can be stopped or paused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roboyard.errors import InputError


class JointClaims:
    """Claims of sources on a robot's joints.

    A source claims joints when it begins to move them, reports the end of the motion, and then keeps its claim, to hold
    them at their positions, until another source claims them. Another source cannot claim joints that move. Every node
    that commands joints takes part, so that each joint follows one source; a source alone has claims of its own.
    """

    def __init__(self) -> None:
        self._source_of_joint: dict[str, str] = {}
        self._moving_sources: set[str] = set()
        self._stop_callbacks: dict[str, Callable[[], None]] = {}
        self._paused_joints: set[str] = set()

    def register(self, source: str, stop: Callable[[], None]) -> None:
        """Register a source that can be stopped."""
        self._stop_callbacks[source] = stop

    def unregister(self, source: str) -> None:
        """Remove a source and release its claims."""
        self._stop_callbacks.pop(source, None)
        self._moving_sources.discard(source)
        self._source_of_joint = {
            joint: claimant for joint, claimant in self._source_of_joint.items() if claimant != source
        }

    def claim(self, source: str, joints: Sequence[str]) -> None:
        """Let ``source`` move ``joints`` from now on.

        Raises:
            InputError: another source is moving one of them; nothing changes.
        """
        for joint in joints:
            claimant = self._source_of_joint.get(joint, source)
            if claimant != source and claimant in self._moving_sources:
                raise InputError(
                    f"joint {joint} is being moved by {claimant}", valid="wait until it is at rest, or cancel it"
                )
        self._source_of_joint.update(dict.fromkeys(joints, source))
        self._moving_sources.add(source)

    def claim_if_free(self, source: str, joints: Sequence[str]) -> None:
        """Let ``source`` hold ``joints`` at their positions unless another source has claimed one of them."""
        if all(self._source_of_joint.get(joint, source) == source for joint in joints):
            self._source_of_joint.update(dict.fromkeys(joints, source))

    def finish_motion(self, source: str) -> None:
        """Report that the motion of ``source`` has ended; it keeps its claims."""
        self._moving_sources.discard(source)

    def has_claim(self, source: str, joints: Sequence[str]) -> bool:
        """Return whether ``source`` has claimed all of ``joints``: only then it may command them."""
        return all(self._source_of_joint.get(joint) == source for joint in joints)

    def stop(self, joints: Sequence[str]) -> list[str]:
        """Stop the sources that move one of ``joints``; return their names."""
        sources = sorted({self._source_of_joint.get(joint, "") for joint in joints} & self._moving_sources)
        for source in sources:
            if source in self._stop_callbacks:
                self._stop_callbacks[source]()
        return sources

    def set_paused(self, joints: Sequence[str], paused: bool) -> None:
        """Pause ``joints``, or let them continue."""
        self._paused_joints = self._paused_joints | set(joints) if paused else self._paused_joints - set(joints)

    def is_paused(self, joints: Sequence[str]) -> bool:
        """Return whether one of ``joints`` is paused."""
        return not self._paused_joints.isdisjoint(joints)


def create_joint_claims(_robot: object) -> JointClaims:
    """Return the resource ``joint_claims`` of a robot's nodes, without any claims."""
    return JointClaims()
