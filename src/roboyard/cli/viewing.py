"""Opens a view for a verb, and says where it is to be seen."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.view import View


@contextmanager
def opened(wanted: bool, port: int | None, *, read_only: bool) -> Iterator[View | None]:
    """The view, if one is wanted; its address is told to the terminal only, since it carries the token.

    Args:
        wanted: Whether ``--view`` was given.
        port: ``--view-port``; None: the usual one, or any that is free.
        read_only: Nobody may steer.

    Raises:
        InputError: options of a view without one, or the port is taken.
    """
    if not wanted:
        if port is not None or read_only:
            raise InputError("--view-port and --read-only are of views", valid="add --view")
        yield None
        return
    from roboyard.cli.terminal import note
    from roboyard.view import View

    with View(port, read_only=read_only) as view:
        note(f"view it at {view.url}")
        yield view


def wait_for_the_end() -> None:
    """Until Ctrl-C or SIGTERM."""
    done = Event()
    before = {number: signal.signal(number, lambda *_: done.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        done.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
