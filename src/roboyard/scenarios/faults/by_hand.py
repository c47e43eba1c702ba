"""Faults that somebody lets happen while a run goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roboyard.bus import resource
from roboyard.config import loads, parameter, parse_yaml
from roboyard.errors import ConfigError, RoboyardError, UnknownNameError
from roboyard.messages import service_type
from roboyard.scenarios.faults.agenda import MOMENTARY
from roboyard.scenarios.faults.deeds import Deed
from roboyard.scenarios.faults.kinds import Fault
from roboyard.scenarios.faults.node import Faults

FIRST = 1_000
"""Number of the first: a scenario's own faults are numbered from zero."""
Make = Callable[[Fault, int], Deed]
"""A fault's deed, by the fault and its number."""


@dataclass(frozen=True)
class _Entry:
    """One fault, as an entry of a scenario."""

    fault: Fault = parameter(doc="what happens")


class FaultsByHand(Faults):
    """Lets faults happen when it is asked to; those that last end by themselves, or when it is asked to.

    services: /inject_fault (roboyard_msgs/InjectFault), /end_fault (roboyard_msgs/EndFault)
    """

    make: Make = resource()

    def setup(self) -> None:
        """Serve."""
        super().setup()
        self._asked: list[str] = []
        self.service("/inject_fault", service_type("roboyard_msgs/srv/InjectFault"), self._on_inject)
        self.service("/end_fault", service_type("roboyard_msgs/srv/EndFault"), self._on_end)

    def _on_inject(self, request: Any) -> Any:
        response = service_type("roboyard_msgs/srv/InjectFault").Response()
        try:
            deed = self._take(str(request.fault), len(self._asked))
            self._asked.append(f"{self.now!r} {request.fault}")
            self._put([(deed.begin_ns, deed.name, True)])
            if deed.end_ns is not None:
                self._put([(deed.end_ns, deed.name, False)])
            self._happen()
        except RoboyardError as error:
            response.message = str(error)
            return response
        response.success, response.name = True, deed.name
        return response

    def _on_end(self, request: Any) -> Any:
        response = service_type("roboyard_msgs/srv/EndFault").Response()
        deed = self._by_name.get(str(request.name))
        if deed is None or deed.kind in MOMENTARY or deed.text not in self._active:
            lasting = [name for name, one in self._by_name.items() if one.text in self._active]
            response.message = str(UnknownNameError(f"no fault {request.name!r}", valid=", ".join(lasting) or "none"))
            return response
        self._agenda = [item for item in self._agenda if item[1] != deed.name or item[0] <= self.now_ns]
        self._put([(self.now_ns, deed.name, False)])
        self._happen()
        response.success = True
        return response

    def _put(self, items: list[tuple[int, str, bool]]) -> None:
        """Into the agenda, behind what is past."""
        rest = sorted([*self._agenda[self._past :], *items], key=lambda item: (item[0], item[2]))
        self._agenda = [*self._agenda[: self._past], *rest]

    def _take(self, text: str, number: int, at: float | None = None) -> Deed:
        """The deed of an entry that was asked for, now or ``at`` [s].

        Raises:
            ConfigError: it is none, or nothing in the run can fail so.
        """
        if "on" in _mapping(text) or "at" in _mapping(text):
            raise ConfigError("'at' or 'on' of a fault that is to begin now", valid="an entry without them")
        moment = self.now if at is None else at
        entry = loads(_Entry, f"fault: {{at: {moment!r}, {text.strip().removeprefix('{').removesuffix('}')}}}")
        deed = self.make(entry.fault, FIRST + number)
        self._by_name[deed.name] = deed
        return deed

    def save_state(self) -> dict[str, Any]:
        """The agenda, and what was asked for."""
        return {**super().save_state(), "asked": list(self._asked)}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take it back."""
        self._asked = list(saved["asked"])
        for number, line in enumerate(self._asked):
            at, _, text = line.partition(" ")
            self._take(text, number, float(at))
        super().load_state(saved)


def _mapping(text: str) -> dict[str, Any]:
    """The keys of an entry.

    Raises:
        ConfigError: it is no mapping on one line.
    """
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")) or "\n" in stripped:
        raise ConfigError(f"{text[:80]!r} is no fault", valid="{what: sensor_silent, sensor: laser, for: 5 s}")
    value = parse_yaml(stripped, "fault").value
    if not isinstance(value, dict):
        raise ConfigError(f"{text[:80]!r} is no fault", valid="{what: sensor_silent, sensor: laser, for: 5 s}")
    return value
