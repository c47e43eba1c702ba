"""Parameters: our nodes' values at the master, and changes that others make there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from roboyard.bridges.asking import ask
from roboyard.bridges.descriptions import Descriptions
from roboyard.bridges.gateway import Gateway, Seen
from roboyard.bridges.loop import Loop
from roboyard.bridges.parameters import like, request_of
from roboyard.bridges.ros1.master import Master
from roboyard.bridges.ros1.station import Station
from roboyard.bridges.ros1.xmlrpc import MasterError, call
from roboyard.errors import MessageError, RoboyardError

_SIM_TIME: Final = "/use_sim_time"
_LARGEST: Final = 2**31 - 1


class Parameters:
    """Keeps the master's parameters and our nodes' the same.

    Args:
        master: The master.
        gateway: The bus.
        loop: Where it all goes on.
        simulated: Whether others shall take the time from /clock.
        descriptions: Robots as URDF.
    """

    def __init__(
        self, master: Master, gateway: Gateway, loop: Loop, *, simulated: bool, descriptions: Descriptions
    ) -> None:
        self._master = master
        self._gateway = gateway
        self._loop = loop
        self._simulated = simulated
        self._before: Any = None
        self._own: set[str] = set()
        self._values: dict[str, dict[str, Any]] = {}
        self._sources: dict[str, str] = {}
        self._descriptions = descriptions

    async def begin(self) -> None:
        """Remember how the master was found. Raises MasterError."""
        with suppress(MasterError):
            self._before = await self._master.ask("getParam", _SIM_TIME)

    def own(self) -> list[str]:
        """Keys that nobody needs when the run has ended."""
        if self._simulated and self._before is not True:
            self._own.add(_SIM_TIME)
        return sorted(self._own)

    async def update(self, seen: Seen, stations: Mapping[str, Station | None]) -> None:
        """Tell the master what has changed. Raises MasterError."""
        if self._simulated:
            await self._master.put("/roboyard", _SIM_TIME, True)
        for name, text in self._descriptions.texts.items():
            self._own.add(name)
            await self._master.put("/roboyard", name, text)
        for source, values in seen.parameters.items():
            station = stations.get(source)
            if station is None:
                continue
            node = station.name
            for name, value in values.items():
                plain = _plain(value)
                if plain is not None:
                    self._own.add(node)
                    await self._master.put(node, f"{node}/{name.replace('.', '/')}", plain)
            if values and node not in self._master.heard:
                await call(self._master.uri, "subscribeParam", node, station.uri, node)
                self._master.heard.add(node)
            self._values[node], self._sources[node] = values, source

    async def changed(self, node: str, key: str, value: Any) -> None:
        """Somebody has set a parameter of ours: the node takes the value, or it is set back."""
        key = key.rstrip("/")  # which the master puts there
        name = key.removeprefix(node).strip("/")
        values = self._values.get(node, {})
        label = next((known for known in values if known.replace(".", "/") == name), None)
        if label is None:
            if isinstance(value, dict):
                for part, inner in value.items():
                    await self.changed(node, f"{key}/{part}", inner)
            return
        if _plain(values[label]) == value:
            return
        self._master.parameters[key] = value
        try:
            await self._set(node, label, like(values[label], value))
        except RoboyardError as error:
            self._gateway.complain("refused", f"parameter {key}: {error}")
            with suppress(MasterError):
                await self._master.put(node, key, _plain(values[label]))

    async def _set(self, node: str, name: str, value: Any) -> None:
        service, kind, request = request_of(self._sources[node], name, value)
        answer: Any = await ask(self._gateway, self._loop, service, kind, "ros1", request)
        for result in answer.results:
            if not result.successful:
                raise MessageError(result.reason)


def _plain(value: Any) -> Any:
    """As XML-RPC has it; None if it has no such thing."""
    if isinstance(value, bool | float | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else None
    if isinstance(value, tuple):
        found = [_plain(item) for item in value]
        return None if None in found else found
    return None
