"""Nodes that inject faults: at their times or on skill events, and on request by service."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from roboyard.bus import FAULT, Node, resource
from roboyard.bus.executor import ScheduledEvent
from roboyard.config import loads, parameter, parse_yaml
from roboyard.errors import ConfigError, RoboyardError, UnknownNameError
from roboyard.messages import msg, service_type
from roboyard.scenarios.faults.injection import ScheduledFault
from roboyard.scenarios.faults.schedule import END_PREFIX, MOMENTARY_FAULTS, fault_event, fault_schedule, log_line
from roboyard.scenarios.faults.schema import FaultConfig


class FaultScheduleNode(Node):
    """Begins and ends faults at their times, or when skills come to what they wait for; says so in log and diagnostics.

    ``events`` is the list of what happened so far: time [s], the scenario's word for it, whether it ``started``,
    ``finished`` or just ``occurred``, and what it was in words.
    """

    faults: tuple[ScheduledFault, ...] = resource(tuple)
    events: list[dict[str, Any]] = resource(list)

    def setup(self) -> None:
        """Wait for the first one."""
        self._by_name = {fault.name: fault for fault in self.faults}
        timed = [fault for fault in self.faults if not fault.trigger]
        order = fault_schedule((fault.start_ns, fault.end_ns) for fault in timed)
        self._schedule = [(time_ns, timed[number].name, is_start) for time_ns, number, is_start in order]
        self._schedule_index = 0
        self._trigger_counts = {fault.name: fault.occurrence for fault in self.faults if fault.trigger}
        self._active_faults: list[str] = []
        self._next_event: ScheduledEvent | None = None
        for topic in sorted({fault.events_topic for fault in self.faults if fault.trigger}):
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
            if fault.events_topic == topic and fault.trigger in triggers and self.now_ns >= fault.start_ns:
                self._trigger_counts[name] -= 1
                if self._trigger_counts[name] > 0:
                    continue
                del self._trigger_counts[name]
                fault.on_event(event)
                start_ns = self.now_ns + fault.trigger_delay_ns
                duration_ns = None if fault.end_ns is None else fault.end_ns - fault.start_ns
                ends = [] if duration_ns is None else [(start_ns + duration_ns, name, False)]
                upcoming = sorted(
                    [*self._schedule[self._schedule_index :], (start_ns, name, True), *ends], key=_schedule_order
                )
                self._schedule = [*self._schedule[: self._schedule_index], *upcoming]
                self._schedule_next_event()
                if not fault.trigger_delay_ns:
                    self._run_due_faults()

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
            self._report_event(fault, is_start, (fault.apply if is_start else fault.revert)())
        self._schedule_next_event()

    def _report_event(self, fault: ScheduledFault, is_start: bool, outcome: str | None) -> None:
        text = log_line(outcome or fault.description, fault.trigger)
        self.events.append(fault_event(self.now, fault.fault_type, is_start, text))
        if fault.fault_type in MOMENTARY_FAULTS:
            self.log.info(text)
            return
        self.log.warn(text if is_start else f"{END_PREFIX}{text}")
        self._active_faults = (
            [*self._active_faults, fault.description]
            if is_start
            else [other for other in self._active_faults if other != fault.description]
        )
        level = self.health.level if self.health else ""
        if self._active_faults:
            self.report_health("warn", "; ".join(self._active_faults))
        else:
            self.report_health("ok", "no fault is under way")
        if self.health is not None and self.health.level == level:  # changes of level are published at once anyway
            self.bus.publish_health_change()

    def save_state(self) -> dict[str, Any]:
        """How far the agenda is, and the generators of what disturbs topics."""
        random_states = {
            fault.name: copy.deepcopy(impairment.rng.bit_generator.state)
            for fault in self._by_name.values()
            if (impairment := fault.impairment)
        }
        dropped_counts = {
            fault.name: fault.impairment.dropped_count for fault in self._by_name.values() if fault.impairment
        }
        schedule = [list(item) for item in self._schedule]
        fault_state = {
            "schedule": schedule,
            "trigger_counts": self._trigger_counts,
            "schedule_index": self._schedule_index,
            "active_faults": self._active_faults,
            "events": self.events,
            "random_states": random_states,
            "dropped_counts": dropped_counts,
        }
        return {**super().save_state(), **copy.deepcopy(fault_state)}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take it back.  Faults of robots are in the simulation's state; topics are disturbed again from here."""
        super().load_state(saved)
        self._schedule = [(int(time_ns), str(name), bool(is_start)) for time_ns, name, is_start in saved["schedule"]]
        self._schedule_index, self._active_faults, self._trigger_counts = (
            saved["schedule_index"],
            list(saved["active_faults"]),
            dict(saved["trigger_counts"]),
        )
        self.events[:] = saved["events"]
        for fault in self._by_name.values():
            if fault.impairment is not None:
                fault.revert()
        for _, name, is_start in self._schedule[: self._schedule_index]:
            fault = self._by_name[name]
            if fault.impairment is not None:
                (fault.apply if is_start else fault.revert)()
        for fault in self._by_name.values():
            if fault.impairment is not None:
                fault.impairment.rng.bit_generator.state = saved["random_states"][fault.name]
                fault.impairment.dropped_count = saved["dropped_counts"][fault.name]
        self._schedule_next_event()


def _schedule_order(item: tuple[int, str, bool]) -> tuple[int, bool]:
    """At one instant what ends goes before what begins."""
    return item[0], item[2]


FIRST_NUMBER = 1_000
"""Number of the first: a scenario's own faults are numbered from zero."""
CreateFault = Callable[[FaultConfig, int], ScheduledFault]
"""A fault's deed, by the fault and its number."""


@dataclass(frozen=True)
class _FaultRequest:
    """One fault, as an entry of a scenario."""

    fault: FaultConfig = parameter(doc="what happens")


class FaultServiceNode(FaultScheduleNode):
    """Lets faults happen when it is asked to; those that last end by themselves, or when it is asked to.

    services: /inject_fault (roboyard_msgs/InjectFault), /end_fault (roboyard_msgs/EndFault)
    """

    create_fault: CreateFault = resource()

    def setup(self) -> None:
        """Serve."""
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
            if fault.end_ns is not None:
                self._add_to_schedule([(fault.end_ns, fault.name, False)])
            self._run_due_faults()
        except RoboyardError as error:
            response.message = str(error)
            return response
        response.success, response.name = True, fault.name
        return response

    def _on_end(self, request: Any) -> Any:
        response = service_type("roboyard_msgs/srv/EndFault").Response()
        fault = self._by_name.get(str(request.name))
        if fault is None or fault.fault_type in MOMENTARY_FAULTS or fault.description not in self._active_faults:
            active_names = [name for name, other in self._by_name.items() if other.description in self._active_faults]
            response.message = str(
                UnknownNameError(f"no fault {request.name!r}", valid=", ".join(active_names) or "none")
            )
            return response
        self._schedule = [item for item in self._schedule if item[1] != fault.name or item[0] <= self.now_ns]
        self._add_to_schedule([(self.now_ns, fault.name, False)])
        self._run_due_faults()
        response.success = True
        return response

    def _add_to_schedule(self, items: list[tuple[int, str, bool]]) -> None:
        """Into the agenda, behind what is past."""
        upcoming = sorted([*self._schedule[self._schedule_index :], *items], key=lambda item: (item[0], item[2]))
        self._schedule = [*self._schedule[: self._schedule_index], *upcoming]

    def _create_from_request(self, text: str, number: int, start_time: float | None = None) -> ScheduledFault:
        """The deed of an entry that was asked for, now or ``at`` [s].

        Raises:
            ConfigError: it is none, or nothing in the run can fail so.
        """
        if "trigger" in _parse_request(text) or "time" in _parse_request(text):
            raise ConfigError("'time' or 'trigger' of a fault that is to begin now", valid="an entry without them")
        time = self.now if start_time is None else start_time
        request = loads(_FaultRequest, f"fault: {{time: {time!r}, {text.strip().removeprefix('{').removesuffix('}')}}}")
        fault = self.create_fault(request.fault, FIRST_NUMBER + number)
        self._by_name[fault.name] = fault
        return fault

    def save_state(self) -> dict[str, Any]:
        """The agenda, and what was asked for."""
        return {**super().save_state(), "requests": list(self._requests)}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take it back."""
        self._requests = list(saved["requests"])
        for number, line in enumerate(self._requests):
            start_time, _, text = line.partition(" ")
            self._create_from_request(text, number, float(start_time))
        super().load_state(saved)


def _parse_request(text: str) -> dict[str, Any]:
    """The keys of an entry.

    Raises:
        ConfigError: it is no mapping on one line.
    """
    stripped = text.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")) or "\n" in stripped:
        raise ConfigError(f"{text[:80]!r} is no fault", valid="{type: sensor_dropout, sensor: laser, duration: 5 s}")
    value = parse_yaml(stripped, "fault").value
    if not isinstance(value, dict):
        raise ConfigError(f"{text[:80]!r} is no fault", valid="{type: sensor_dropout, sensor: laser, duration: 5 s}")
    return value
