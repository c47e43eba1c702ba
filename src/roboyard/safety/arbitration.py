"""Arbitration: selects one of several command sources of a drive or a joint group, by priorities, time-outs and locks.

Any number of sources send commands. At most one of them is the owner, and only its commands pass.

Rules
    1. A source is live from its command until its time-out has passed.
    2. A live source of higher priority becomes the owner at once.
    3. Of sources of the same priority the owner stays the owner while it is live.
    4. At the time-out of the owner, the live source of highest priority becomes the owner, with its newest command; of
       several the one whose present command stream began first.
    5. When no source is live, the output is the stop command, once.
    6. While a lock of level L is held, commands of sources of priority L or less are ignored; live sources count again
       when it is released.

Ownership therefore ends at most one time-out after the owner's last command, provided ``expire`` is called at
``deadline_ns``.  The state is a pure function of the calls: no clock, no randomness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from roboyard.errors import ConfigError

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class CommandSource:
    """A command source.

    Attributes:
        name: Full name of the publisher ("/rover/teleop"), or only the last part of it ("teleop").
        priority: Priority; the highest one wins.
        timeout: Time for which a command is valid [s].

    Raises:
        ConfigError: no name, or a time-out that is not a positive, finite number.
    """

    name: str
    priority: int = 0
    timeout: float = 0.5

    def __post_init__(self) -> None:
        if not self.name.strip("/"):
            raise ConfigError(f"source name '{self.name}'", location="CommandSource", valid="e.g. 'teleop'")
        if not (math.isfinite(self.timeout) and self.timeout > 0.0):
            raise ConfigError(
                f"timeout = {self.timeout}", location=f"source {self.name}", valid="a positive number [s]"
            )

    def matches_publisher(self, publisher: str) -> bool:
        """Return whether this is the source of a publisher, by its full name."""
        return publisher == self.name or publisher.rsplit("/", 1)[-1] == self.name


@dataclass(frozen=True, slots=True)
class ArbitrationConfig:
    """Configuration of `Arbiter`.

    Attributes:
        sources: Known sources; the first that matches a publisher is used.
        unknown: Priority and time-out of publishers that are not listed; None: their commands are rejected.

    Raises:
        ConfigError: two sources of the same name.
    """

    sources: tuple[CommandSource, ...] = ()
    unknown: CommandSource | None = CommandSource("unknown", priority=0, timeout=0.5)

    def __post_init__(self) -> None:
        names = [source.name for source in self.sources]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise ConfigError(
                f"source '{duplicate}' is listed twice", location="ArbitrationConfig", valid="each name once"
            )

    def find_source(self, publisher: str) -> CommandSource | None:
        """Return the source of a publisher; None if its commands are rejected."""
        return next((source for source in self.sources if source.matches_publisher(publisher)), self.unknown)


@dataclass(frozen=True, slots=True)
class ArbitrationDecision(Generic[C]):
    """Result of a call of `Arbiter`.

    Attributes:
        output: Command to pass on now; None: nothing new.
        owner: Publisher that is the owner now; None: none.
        changed: Whether the owner has changed.
        stop: Whether ``output`` is the stop command because no source is live.
    """

    output: C | None
    owner: str | None
    changed: bool = False
    stop: bool = False


@dataclass(slots=True)
class _CommandStream(Generic[C]):
    """The present command stream of a publisher."""

    priority: int
    expires_ns: int
    start_index: int
    command: C


class Arbiter(Generic[C]):
    """Selects the owner of a drive or a joint group.

    Args:
        config: Sources with their priorities and time-outs.
        stop: The command while no source is live, e.g. the zero twist.
    """

    def __init__(self, config: ArbitrationConfig, stop: C) -> None:
        self.config = config
        self._stop = stop
        self._streams: dict[str, _CommandStream[C]] = {}
        self._locks: dict[str, int] = {}
        self._owner: str | None = None
        self._count = 0

    @property
    def owner(self) -> str | None:
        """Publisher that was the owner after the last call; None: none."""
        return self._owner

    @property
    def deadline_ns(self) -> int | None:
        """Latest time at which ``expire`` must be called [ns]; None without an owner."""
        return None if self._owner is None else self._streams[self._owner].expires_ns

    @property
    def locks(self) -> dict[str, int]:
        """Levels of the held locks by name."""
        return dict(self._locks)

    def live_publishers(self, now_ns: int) -> tuple[str, ...]:
        """Return the live publishers at ``now_ns``, by priority, then by the start of their command streams."""
        names = [name for name, stream in self._streams.items() if stream.expires_ns > now_ns]
        return tuple(sorted(names, key=self._sort_key))

    def submit(self, publisher: str, command: C, now_ns: int) -> ArbitrationDecision[C]:
        """Take a command of ``publisher`` at ``now_ns`` (never decreasing).

        The decision's output is ``command`` if the publisher is the owner, that of another source if the owner has just
        expired and another source becomes the owner, else None.
        """
        source = self.config.find_source(publisher)
        if source is None:
            return self.expire(now_ns)
        stream = self._streams.get(publisher)
        expires_ns = now_ns + round(source.timeout * 1e9)
        if stream is None or stream.expires_ns <= now_ns:
            # a late command of the owner starts a new stream, to which rule 3 does not apply
            is_owner_expired = self._owner == publisher
            self._count += 1
            self._streams[publisher] = _CommandStream(source.priority, expires_ns, self._count, command)
            return self._decide(now_ns, new_publisher=publisher, is_owner_expired=is_owner_expired)
        stream.priority, stream.expires_ns, stream.command = source.priority, expires_ns, command
        return self._decide(now_ns, new_publisher=publisher)

    def expire(self, now_ns: int) -> ArbitrationDecision[C]:
        """Change the owner, or stop, if the time-out of the owner has passed."""
        return self._decide(now_ns)

    def lock(self, name: str, level: int, now_ns: int) -> ArbitrationDecision[C]:
        """Set the lock ``name``: from now on only commands of sources of priority above ``level`` are used."""
        self._locks[name] = level
        return self._decide(now_ns)

    def unlock(self, name: str, now_ns: int) -> ArbitrationDecision[C]:
        """Release the lock ``name``, if it is held."""
        self._locks.pop(name, None)
        return self._decide(now_ns)

    def release(self, publisher: str, now_ns: int) -> ArbitrationDecision[C]:
        """Remove a publisher; it is no longer the owner."""
        self._streams.pop(publisher, None)
        return self._decide(now_ns)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, with commands as they were submitted."""
        streams = {name: (s.priority, s.expires_ns, s.start_index, s.command) for name, s in self._streams.items()}
        return {"streams": streams, "locks": dict(self._locks), "owner": self._owner, "count": self._count}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._streams = {name: _CommandStream(*fields) for name, fields in state["streams"].items()}
        self._locks, self._owner, self._count = dict(state["locks"]), state["owner"], state["count"]

    # -- the rules -----------------------------------------------------------------------------------------------------
    def _sort_key(self, name: str) -> tuple[int, int]:
        stream = self._streams[name]
        return (-stream.priority, stream.start_index)

    def _has_equal_priority(self, one: str, other: str) -> bool:
        return self._streams[one].priority == self._streams[other].priority

    def _decide(
        self, now_ns: int, new_publisher: str | None = None, is_owner_expired: bool = False
    ) -> ArbitrationDecision[C]:
        for name in [name for name, stream in self._streams.items() if stream.expires_ns <= now_ns]:
            del self._streams[name]
        level = max(self._locks.values(), default=None)
        eligible = [n for n, stream in self._streams.items() if level is None or stream.priority > level]
        previous_owner = self._owner
        owner = min(eligible, key=self._sort_key, default=None)
        if (
            previous_owner is not None
            and owner is not None
            and previous_owner in eligible
            and not is_owner_expired
            and self._has_equal_priority(previous_owner, owner)
        ):
            owner = previous_owner
        self._owner = owner
        if owner is None:
            is_stop = previous_owner is not None
            return ArbitrationDecision(self._stop if is_stop else None, None, changed=is_stop, stop=is_stop)
        changed = owner != previous_owner
        is_passed_on = changed or owner == new_publisher
        return ArbitrationDecision(self._streams[owner].command if is_passed_on else None, owner, changed)
