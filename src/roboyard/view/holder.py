"""Who of several viewers steers: one at a time, seen by all, handed over when asked."""

from __future__ import annotations

from roboyard.errors import InputError


class Holder:
    """Whose hand is on it.

    Args:
        read_only: Nobody's, ever.

    Attributes:
        number: Of the viewer who steers; None: nobody.
        asking: Numbers of those who ask for it, first come first.
    """

    def __init__(self, *, read_only: bool = False) -> None:
        self.read_only = read_only
        self.number: int | None = None
        self.asking: list[int] = []

    def came(self, viewer: int) -> None:
        """A viewer came: the first has control."""
        if self.number is None and not self.read_only:
            self.number = viewer

    def left(self, viewer: int) -> None:
        """A viewer is gone: who asked for control has it now."""
        self.asking = [other for other in self.asking if other != viewer]
        if self.number == viewer:
            self.number = self.asking.pop(0) if self.asking else None

    def take(self, viewer: int) -> None:
        """A viewer wants it: at once where nobody has it, else who has it is asked.

        Raises:
            InputError: there is nothing to have.
        """
        self._check_there()
        if self.number is None:
            self.number = viewer
        elif viewer != self.number and viewer not in self.asking:
            self.asking.append(viewer)

    def give(self, viewer: int) -> None:
        """Who has it lets go: to who has asked longest, or to nobody.

        Raises:
            InputError: it has it not.
        """
        self.check(viewer)
        self.number = self.asking.pop(0) if self.asking else None

    def keep(self, viewer: int) -> None:
        """Who has it does not want to give it away.

        Raises:
            InputError: it has it not.
        """
        self.check(viewer)
        self.asking.clear()

    def check(self, viewer: int) -> None:
        """Refuse who does not steer.

        Raises:
            InputError: somebody else does, or nobody may.
        """
        self._check_there()
        if viewer != self.number:
            who = "nobody has" if self.number is None else f"viewer {self.number} has"
            raise InputError(f"{who} control, not you", valid="take control first")

    def _check_there(self) -> None:
        if self.read_only:
            raise InputError("this view is for looking only", valid="start it without --read-only")
