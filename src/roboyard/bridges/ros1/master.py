"""What we have told the master, and what we still have to tell it.

What shall be registered is a set; the master is told what is new in it and what has gone.  When the master was away it
knows nothing, so the set of what it was told is emptied and everything is told again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from roboyard.bridges.ros1.xmlrpc import MasterError, call
from roboyard.errors import InputError

Publishers = Callable[[str, str, list[str], bool], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to register: a node's end of a topic, or a service.

    Attributes:
        kind: What it is.
        node: Whose.
        uri: Where that node answers; of services: where they are called.
        name: Of the topic or service.
        type: Of the topic, in ROS 1.
    """

    kind: Literal["publisher", "subscriber", "service"]
    node: str
    uri: str
    name: str
    type: str = ""


class Master:
    """The master, as one who registers sees it.

    Args:
        uri: Where it answers.
        caller: In whose name questions are asked.
        found: Called with a node of ours, a topic that it listens to, the URIs of who publishes it, and whether there
            may be more.

    Attributes:
        there: Whether it answered last time.
        told: What it knows of us.
        parameters: What we have set there.
        heard: Whose parameters we are told of.
    """

    def __init__(self, uri: str, caller: str, found: Publishers) -> None:
        self.uri = uri
        self.there = True
        self.told: set[Entry] = set()
        self.parameters: dict[str, Any] = {}
        self.heard: set[str] = set()
        self._caller = caller
        self._found = found

    async def ask(self, method: str, *arguments: Any) -> Any:
        """Ask in our name. Raises MasterError."""
        return await call(self.uri, method, self._caller, *arguments)

    async def look(self, name: str, uri: str) -> bool:
        """Whether it is there and knows our node ``name``; if it does not, it was told nothing."""
        try:
            await self.ask("getPid")
            self.there = True
        except MasterError:
            self.there = False
            self._forget()
            return False
        try:
            known = bool(await self.ask("lookupNode", name) == uri)
        except MasterError:
            known = False
        if not known:
            self._forget()
        return known

    def _forget(self) -> None:
        self.told.clear()
        self.parameters.clear()
        self.heard.clear()

    async def update(self, wanted: Iterable[Entry]) -> None:
        """Tell what is new and what has gone. Raises MasterError when it is away."""
        wanted = set(wanted)
        for entry in sorted(self.told - wanted, key=_order):
            await self._withdraw(entry)
            self.told.discard(entry)
        for entry in sorted(wanted - self.told, key=_order):
            await self._tell(entry)
            self.told.add(entry)

    async def _tell(self, entry: Entry) -> None:
        node, name = entry.node, entry.name
        if entry.kind == "service":
            await call(self.uri, "registerService", node, name, *entry.uri.split(" ", 1))
        elif entry.kind == "publisher":
            await call(self.uri, "registerPublisher", node, name, entry.type, entry.uri)
        else:
            uris = await call(self.uri, "registerSubscriber", node, name, entry.type, entry.uri)
            self._found(node, name, [str(uri) for uri in uris], True)

    async def _withdraw(self, entry: Entry) -> None:
        method = {
            "service": "unregisterService", "publisher": "unregisterPublisher", "subscriber": "unregisterSubscriber",
        }[entry.kind]  # fmt: skip
        await call(self.uri, method, entry.node, entry.name, entry.uri.split(" ", 1)[0])

    async def put(self, node: str, key: str, value: Any) -> None:
        """Set a parameter unless it stands so already. Raises MasterError."""
        if key not in self.parameters or self.parameters[key] != value:
            await call(self.uri, "setParam", node, key, value)
            self.parameters[key] = value

    async def leave(self, parameters: Iterable[str]) -> None:
        """Withdraw everything, and delete these parameters; a master that is away needs no telling."""
        with suppress(MasterError, InputError):
            await self.update(())
            for key in parameters:
                await self.ask("deleteParam", key)


def _order(entry: Entry) -> tuple[str, ...]:
    return entry.kind, entry.node, entry.name
