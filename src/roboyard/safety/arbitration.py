"""Arbitration: which of several command sources owns a thing (the drive, a joint group) right now.

Any number of sources send; commands never mix: exactly one source owns, and only its commands pass.

Rules
    1. A source is live from its command until its time-out has passed.
    2. A live source of higher priority takes over at once.
    3. Among equals the owner keeps it until it is no longer live; a source cannot be talked over.
    4. When the owner falls silent, the live source of highest priority inherits, with its newest command; among equals
       the one whose present command stream began first.
    5. When nobody is live, the output is the stop command, once.
    6. While a lock of level L is held, sources of priority L or less are not heard; live ones come back when it opens.

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
class Source:
    """A command source.

    Attributes:
        name: Full name of the publisher ("/rover/teleop"), or only the last part of it ("teleop").
        priority: Higher wins.
        timeout: A command counts this long [s].

    Raises:
        ConfigError: no name, or a time-out that is not a positive, finite number.
    """

    name: str
    priority: int = 0
    timeout: float = 0.5

    def __post_init__(self) -> None:
        if not self.name.strip("/"):
            raise ConfigError(f"source name '{self.name}'", location="Source", valid="e.g. 'teleop'")
        if not (math.isfinite(self.timeout) and self.timeout > 0.0):
            raise ConfigError(
                f"timeout = {self.timeout}", location=f"source {self.name}", valid="a positive number [s]"
            )

    def matches(self, publisher: str) -> bool:
        """Whether the publisher with this full name is meant."""
        return publisher == self.name or publisher.rsplit("/", 1)[-1] == self.name


@dataclass(frozen=True, slots=True)
class ArbitrationConfig:
    """Who may command.

    Attributes:
        sources: The known ones; the first that matches a publisher counts.
        unknown: Priority and time-out of publishers not listed; None: they are refused.

    Raises:
        ConfigError: two sources of the same name.
    """

    sources: tuple[Source, ...] = ()
    unknown: Source | None = Source("unknown", priority=0, timeout=0.5)

    def __post_init__(self) -> None:
        names = [source.name for source in self.sources]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"source '{twice}' is listed twice", location="ArbitrationConfig", valid="each name once")

    def rule(self, publisher: str) -> Source | None:
        """The rule for a publisher; None: refuse it."""
        return next((source for source in self.sources if source.matches(publisher)), self.unknown)


@dataclass(frozen=True, slots=True)
class Decision(Generic[C]):
    """What a call led to.

    Attributes:
        output: Command to pass on now; None = nothing new.
        owner: Publisher that owns now; None = nobody.
        changed: The owner is another one than before the call.
        stop: ``output`` is the stop command because nobody is live.
    """

    output: C | None
    owner: str | None
    changed: bool = False
    stop: bool = False


@dataclass(slots=True)
class _Stream(Generic[C]):
    """The present command stream of a publisher."""

    priority: int
    expires_ns: int
    began: int
    command: C


class Arbiter(Generic[C]):
    """Holds who is live and who owns.

    Args:
        config: Who may command.
        stop: The command for "nobody commands", e.g. the zero twist.
    """

    def __init__(self, config: ArbitrationConfig, stop: C) -> None:
        self.config = config
        self._stop = stop
        self._streams: dict[str, _Stream[C]] = {}
        self._locks: dict[str, int] = {}
        self._owner: str | None = None
        self._count = 0

    @property
    def owner(self) -> str | None:
        """Publisher that owned after the last call; None = nobody."""
        return self._owner

    @property
    def deadline_ns(self) -> int | None:
        """When ``expire`` must be called at the latest; None = nobody owns."""
        return None if self._owner is None else self._streams[self._owner].expires_ns

    @property
    def locks(self) -> dict[str, int]:
        """Locks held, with their levels."""
        return dict(self._locks)

    def live(self, now_ns: int) -> tuple[str, ...]:
        """Publishers whose command counts at ``now_ns``, highest priority first, then in order of beginning."""
        names = [name for name, stream in self._streams.items() if stream.expires_ns > now_ns]
        return tuple(sorted(names, key=self._rank))

    def offer(self, publisher: str, command: C, now_ns: int) -> Decision[C]:
        """Take a command of ``publisher`` at ``now_ns`` (never decreasing).

        The decision's output is ``command`` if the publisher owns, another source's if the owner has just expired and
        this one does not inherit, else None.
        """
        rule = self.config.rule(publisher)
        if rule is None:
            return self.expire(now_ns)
        stream = self._streams.get(publisher)
        expires_ns = now_ns + round(rule.timeout * 1e9)
        if stream is None or stream.expires_ns <= now_ns:
            # the owner's own late command is a new stream: it has lost the place that rule 3 gave it
            lapsed = self._owner == publisher
            self._count += 1
            self._streams[publisher] = _Stream(rule.priority, expires_ns, self._count, command)
            return self._settle(now_ns, fresh=publisher, lapsed=lapsed)
        stream.priority, stream.expires_ns, stream.command = rule.priority, expires_ns, command
        return self._settle(now_ns, fresh=publisher)

    def expire(self, now_ns: int) -> Decision[C]:
        """Let time pass: hand over or stop if the owner has fallen silent."""
        return self._settle(now_ns)

    def lock(self, name: str, level: int, now_ns: int) -> Decision[C]:
        """Hold the lock ``name``: from now on only sources of priority above ``level`` are heard."""
        self._locks[name] = level
        return self._settle(now_ns)

    def unlock(self, name: str, now_ns: int) -> Decision[C]:
        """Open the lock ``name``, if it is held."""
        self._locks.pop(name, None)
        return self._settle(now_ns)

    def release(self, publisher: str, now_ns: int) -> Decision[C]:
        """Forget a publisher that has gone: it owns no longer."""
        self._streams.pop(publisher, None)
        return self._settle(now_ns)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data (commands as given)."""
        streams = {name: (s.priority, s.expires_ns, s.began, s.command) for name, s in self._streams.items()}
        return {"streams": streams, "locks": dict(self._locks), "owner": self._owner, "count": self._count}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._streams = {name: _Stream(*fields) for name, fields in state["streams"].items()}
        self._locks, self._owner, self._count = dict(state["locks"]), state["owner"], state["count"]

    # -- the rules -----------------------------------------------------------------------------------------------------
    def _rank(self, name: str) -> tuple[int, int]:
        stream = self._streams[name]
        return (-stream.priority, stream.began)

    def _equal(self, one: str, other: str) -> bool:
        return self._streams[one].priority == self._streams[other].priority

    def _settle(self, now_ns: int, fresh: str | None = None, lapsed: bool = False) -> Decision[C]:
        for name in [name for name, stream in self._streams.items() if stream.expires_ns <= now_ns]:
            del self._streams[name]
        level = max(self._locks.values(), default=None)
        heard = [n for n, stream in self._streams.items() if level is None or stream.priority > level]
        before = self._owner
        owner = min(heard, key=self._rank, default=None)
        if before is not None and owner is not None and before in heard and not lapsed and self._equal(before, owner):
            owner = before
        self._owner = owner
        if owner is None:
            stopping = before is not None
            return Decision(self._stop if stopping else None, None, changed=stopping, stop=stopping)
        changed = owner != before
        passes = changed or owner == fresh
        return Decision(self._streams[owner].command if passes else None, owner, changed)
