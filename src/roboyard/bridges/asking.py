"""What a bridge's own thread asks of the bus, awaited there."""

from __future__ import annotations

import asyncio

from roboyard.bridges.gateway import Gateway, Seen
from roboyard.bridges.loop import Loop
from roboyard.bus import Future
from roboyard.errors import InputError, RoboyardError


async def look(gateway: Gateway, loop: Loop) -> Seen:
    """The run as it is at the end of the present instant."""
    found: asyncio.Future[Seen] = loop.asyncio.create_future()

    def ask() -> None:
        seen = gateway.look()
        loop.post(lambda: None if found.done() else found.set_result(seen))

    gateway.ask(ask)
    return await found


async def ask(gateway: Gateway, loop: Loop, service: str, kind: str, source: str, data: bytes) -> object:
    """Call a service of the bus with a request as CDR, and wait for the message that answers.

    Raises:
        RoboyardError: nobody serves it, it refuses, or too much waits already.
    """
    answered: asyncio.Future[object] = loop.asyncio.create_future()

    def tell(future: Future) -> None:
        outcome = future.error or future.result
        loop.post(lambda: None if answered.done() else answered.set_result(outcome))

    if not gateway.call(service, kind, source, data, tell):
        raise InputError("too many inputs wait already", location=service)
    outcome = await answered
    if isinstance(outcome, RoboyardError):
        raise outcome
    return outcome
