"""What a server shows: a live run, or a recording."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from roboyard.view.wire import ViewMessage

Reply = Callable[[ViewMessage], None]
"""Sends a frame to the viewer who asked; from any thread."""


class Show(Protocol):
    """All methods are called on the server's thread."""

    free: frozenset[str]
    """What every viewer may say, who steers or not."""

    def greeting(self) -> list[ViewMessage]:
        """What a new viewer gets first."""

    async def news(self, wants: Collection[str]) -> list[ViewMessage]:
        """What is new since the last call; of topics only those that somebody wants."""

    def shown(self, topic: str) -> ViewMessage | None:
        """The newest drawing of a topic, for who begins to want it."""

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """Do what a viewer says.

        Raises:
            RoboyardError: it cannot be done.
        """

    def lost(self, viewer: int) -> None:
        """A viewer is gone, or does not steer any more."""

    def gone(self, viewer: int) -> None:
        """A viewer is gone."""


class Hand(Protocol):
    """Does what viewers who steer say."""

    @property
    def ops(self) -> frozenset[str]:
        """What it understands."""

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """See `Show.command`."""
