"""A tree as its mission told it, live or in a recording: the text of its nodes, and where each stands."""

from __future__ import annotations

import json
from collections.abc import Iterable

from roboyard.errors import InputError

IDLE = "IDLE"


class Playback:
    """What is known of a tree at a moment.

    Attributes:
        lines: The tree as text, one node a line, in the order of their numbers from 1.
        now: Where each node stands, by its number.
        last: What each answered last.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now: dict[int, str] = {}
        self.last: dict[int, str] = {}

    def tree(self, text: str) -> None:
        """Another tree begins."""
        self.lines = text.splitlines()
        self.now.clear()
        self.last.clear()

    def events(self, text: str) -> None:
        """Nodes changed: JSON of ``[[number, path, before, after], …]``.

        Raises:
            InputError: it is something else.
        """
        try:
            changes = [(int(uid), str(after)) for uid, _path, _before, after in json.loads(text)]
        except (ValueError, TypeError) as error:
            raise InputError(f"these are no changes of a tree's nodes: {error}") from None
        self.take(changes)

    def take(self, statuses: Iterable[tuple[int, str]]) -> None:
        """Nodes stand elsewhere."""
        for uid, status in statuses:
            self.now[uid] = status
            if status != IDLE:
                self.last[uid] = status

    def __str__(self) -> str:
        """The tree: where a node stands in brackets, or in parentheses what it answered last."""
        return "\n".join(f"{line}{self._mark(uid)}" for uid, line in enumerate(self.lines, 1))

    def _mark(self, uid: int) -> str:
        now = self.now.get(uid, IDLE)
        if now != IDLE:
            return f"  [{now}]"
        return f"  ({self.last[uid]})" if uid in self.last else ""
