"""Nodes that inject faults: at their times or on skill events, and on request by service."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from roboyard.bus import FAULT, Node, resource
from roboyard.bus.executor import ScheduledEvent
from roboyard.config import loads, parameter, parse_yaml
from roboyard.errors import ConfigError, RoboyardError, UnknownNameError
from roboyard.messages import msg, service_type
from roboyard.scenarios.faults.injection import ScheduledFault
from roboyard.scenarios.faults.schedule import END_PREFIX, fault_event, fault_schedule, fault_times, log_line
from roboyard.scenarios.faults.schema import FaultConfig, FaultEntry, TriggeredFault


class FaultScheduleNode(Node):
    """Begins and ends faults at their times, or when skills reach what they wait for; reports them in log and
    diagnostics.

    ``events`` lists what happened so far: time [s], type of the fault, whether it ``started``, ``finished`` or, if it
    is momentary, ``occurred``, and a description.
    """

    faults: tuple[ScheduledFault, ...] = resource(tuple)
    events: list[dict[str, Any]] = resource(list)

    def setup(self) -> None:
        """Schedule the first fault."""
        self._by_name = {fault.name: fault for fault in self.faults}
        timed = [fault for fault in self.faults if fault.trigger is None]
        order = fault_schedule(fault_times(fault.config) for fault in timed)
        self._schedule = [(time_ns, timed[number].name, is_start) for time_ns, number, is_start in order]
        self._schedule_index = 0
        self._trigger_counts = {
            fault.name: config.occurrence
            for fault in self.faults
            if isinstance(config := fault.config, TriggeredFault) and config.trigger is not None
        }
        self._active_faults: list[str] = []
        self._next_event: ScheduledEvent | None = None
        for topic in sorted({fault.events_topic for fault in self.faults if fault.events_topic}):
            self.subscribe(topic, msg.SkillEvent, partial(self._on_skill_event, topic))
        if self.faults:
            self.report_health("ok", "no fault is under way")
        self._schedule_next_event()

    def _on_skill_event(self, topic: str, event: Any) -> None:
        triggers = (event.skill,) if event.event == "started" else (f"{event.skill}.{event.phase}",)
        if event.event not in ("started", "phase"):
            return
        for name in list(self._trigger_counts):
            fault = self._by_name[name]
            config = fault.config
            if not isinstance(config, TriggeredFault) or fault.events_topic != topic or config.trigger not in triggers:
                continue
            if self.now_ns < fault.start_ns:
                continue
            self._trigger_counts[name] -= 1
            if self._trigger_counts[name] > 0:
                continue
            del self._trigger_counts[name]
            fault.effect.on_trigger(event)
            delay_ns = round(config.trigger_delay * 1e9)
            start_ns, duration_ns = self.now_ns + delay_ns, fault.duration_ns
            ends = [] if duration_ns is None else [(start_ns + duration_ns, name, False)]
            self._add_to_schedule([(start_ns, name, True), *ends])
            self._schedule_next_event()
            if not delay_ns:
                self._run_due_faults()

    def _add_to_schedule(self, items: list[tuple[int, str, bool]]) -> None:
        """Add items behind those that have happened; at one instant faults end before others begin."""
        upcoming = sorted([*self._schedule[self._schedule_index :], *items], key=lambda item: (item[0], item[2]))
        self._schedule = [*self._schedule[: self._schedule_index], *upcoming]

    def _schedule_next_event(self) -> None:
        if self._next_event is not None:
            self._next_event.cancel()
        self._next_event = None
        if self._schedule_index < len(self._schedule):
            time_ns = self._schedule[self._schedule_index][0]
            self._next_event = self.call_after(
                max(0, time_ns - self.now_ns) / 1e9, self._run_due_faults, restored_by_node=True, priority=FAULT
            )

    def _run_due_faults(self) -> None:
        if self._next_event is not None:
            self._next_event.cancel()
        while self._schedule_index < len(self._schedule) and self._schedule[self._schedule_index][0] <= self.now_ns:
            _, name, is_start = self._schedule[self._schedule_index]
            self._schedule_index += 1
            fault = self._by_name[name]
            if is_start:
                self._report_event(fault, is_start, fault.effect.start() or fault.effect.description)
            else:
                fault.effect.end()
                self._report_event(fault, is_start, fault.effect.description)
        self._schedule_next_event()

    def _report_event(self, fault: ScheduledFault, is_start: bool, description: str) -> None:
        text = log_line(description, fault.trigger)
        self.events.append(fault_event(self.now, fault.config, is_start, text))
        if fault.config.is_momentary:
            self.log.info(text)
            return
        self.log.warn(text if is_start else f"{END_PREFIX}{text}")
        self._active_faults = (
            [*self._active_faults, fault.effect.description]
            if is_start
            else [other for other in self._active_faults if other != fault.effect.description]
        )
        level = self.health.level if self.health else ""
        if self._active_faults:
            self.report_health("warn", "; ".join(self._active_faults))
        else:
            self.report_health("ok", "no fault is under way")
        if self.health is not None and self.health.level == level:  # changes of level are published at once anyway
            self.bus.publish_health_change()

    def _started_faults(self) -> Iterator[str]:
        """Iterate over the names of the faults that have begun, in this order."""
        for _, name, is_start in self._schedule[: self._schedule_index]:
            if is_start:
                yield name

    def save_state(self) -> dict[str, Any]:
        """Return how far the schedule is, and the states of the effects."""
        fault_state = {
            "schedule": [list(item) for item in self._schedule],
            "trigger_counts": self._trigger_counts,
            "schedule_index": self._schedule_index,
            "active_faults": self._active_faults,
            "events": self.events,
            "effects": {name: fault.effect.save_state() for name, fault in self._by_name.items()},
        }
        return {**super().save_state(), **copy.deepcopy(fault_state)}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned; faults that the simulation applies are part of its own state."""
        super().load_state(saved)
        self._schedule = [(int(time_ns), str(name), bool(is_start)) for time_ns, name, is_start in saved["schedule"]]
        self._schedule_index, self._active_faults, self._trigger_counts = (
            saved["schedule_index"],
            list(saved["active_faults"]),
            dict(saved["trigger_counts"]),
        )
        self.events[:] = saved["events"]
        for name in dict.fromkeys((*self._started_faults(), *self._by_name)):
            self._by_name[name].effect.load_state(saved["effects"][name])
        self._schedule_next_event()


FIRST_NUMBER = 1_000
"""Number of the first requested fault; the scenario's own faults are numbered from zero."""
CreateFault = Callable[[FaultConfig, int], ScheduledFault]
"""Function that creates a fault of the run from its configuration and its number."""


@dataclass(frozen=True)
class _FaultRequest:
    """One fault, as an entry of a scenario."""

    fault: FaultEntry = parameter(doc="the fault")


class FaultServiceNode(FaultScheduleNode):
    """Injects faults on request; those that last end by themselves or on request.

    services: /inject_fault (roboyard_msgs/InjectFault), /end_fault (roboyard_msgs/EndFault)
    """

    create_fault: CreateFault = resource()

    def setup(self) -> None:
        """Offer the services."""
        super().setup()
        self._requests: list[str] = []
        self.service("/inject_fault", service_type("roboyard_msgs/srv/InjectFault"), self._on_inject)
        self.service("/end_fault", service_type("roboyard_msgs/srv/EndFault"), self._on_end)

    def _on_inject(self, request: Any) -> Any:
        response = service_type("roboyard_msgs/srv/InjectFault").Response()
        try:
            fault = self._create_from_request(str(request.fault), len(self._requests))
            self._requests.append(f"{self.now!r} {request.fault}")
            self._add_to_schedule([(fault.start_ns, fault.name, True)])
            if fault.duration_ns is not None:
                self._add_to_schedule([(fault.start_ns + fault.duration_ns, fault.name, False)])
            self._run_due_faults()
        except RoboyardError as error:
            response.message = str(error)
            return response
        response.success, response.name = True, fault.name
        return response

    def _on_end(self, request: Any) -> Any:
        response = service_type("roboyard_msgs/srv/EndFault").Response()
        name = str(request.name)
        fault = self._by_name.get(name)
        active_faults = [
            other
            for other in self._by_name.values()
            if not other.config.is_momentary and other.effect.description in self._active_faults
        ]
        if fault not in active_faults:
            active_names = [other.name for other in active_faults]
            response.message = str(
                UnknownNameError(f"no fault {request.name!r}", valid=", ".join(active_names) or "none")
            )
            return response
        self._schedule = [item for item in self._schedule if item[1] != name or item[0] <= self.now_ns]
        self._add_to_schedule([(self.now_ns, name, False)])
        self._run_due_faults()
        response.success = True
        return response

    def _create_from_request(self, text: str, number: int, start_time: float | None = None) -> ScheduledFault:
        """Create the fault of a request, which begins now or at ``start_time`` [s].

        Raises:
            ConfigError: The request is no fault, or nothing in the run can fail in this way.
        """
        if "trigger" in _parse_request(text) or "time" in _parse_request(text):
            raise ConfigError("'time' or 'trigger' of a fault that is to begin now", valid="an entry without them")
        time = self.now if start_time is None else start_time
        request = loads(_FaultRequest, f"fault: {{time: {time!r}, {text.strip().removeprefix('{').removesuffix('}')}}}")
        fault = self.create_fault(request.fault, FIRST_NUMBER + number)
        self._by_name[fault.name] = fault
        return fault

    def save_state(self) -> dict[str, Any]:
        """Return the state of the schedule, and the requests so far."""
        return {**super().save_state(), "requests": list(self._requests)}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._requests = list(saved["requests"])
        for number, line in enumerate(self._requests):
            start_time, _, text = line.partition(" ")
            self._create_from_request(text, number, float(start_time))
        super().load_state(saved)


def _parse_request(text: str) -> dict[str, Any]:
    """Return the keys of a request.

    Raises:
        ConfigError: The request is no mapping on one line.
    """
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")) or "\n" in stripped:
        raise ConfigError(f"{text[:80]!r} is no fault", valid="{type: sensor_dropout, sensor: laser, duration: 5 s}")
    value = parse_yaml(stripped, "fault").value
    if not isinstance(value, dict):
        raise ConfigError(f"{text[:80]!r} is no fault", valid="{type: sensor_dropout, sensor: laser, duration: 5 s}")
    return value
