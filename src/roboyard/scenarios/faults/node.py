"""The node that lets a scenario's faults happen."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from roboyard.bus import FAULT, Node, resource
from roboyard.bus.executor import ScheduledEvent
from roboyard.messages import msg
from roboyard.scenarios.faults.agenda import MOMENTARY, OVER, agenda, event, line
from roboyard.scenarios.faults.deeds import Deed


class Faults(Node):
    """Begins and ends faults at their times, or when skills come to what they wait for; says so in log and diagnostics.

    ``events`` is the list of what happened so far: time [s], the scenario's word for it, whether it ``began``,
    ``ended`` or just ``happened``, and what it was in words.
    """

    deeds: tuple[Deed, ...] = resource(tuple)
    events: list[dict[str, Any]] = resource(list)

    def setup(self) -> None:
        """Wait for the first one."""
        self._by_name = {deed.name: deed for deed in self.deeds}
        timed = [deed for deed in self.deeds if not deed.on]
        order = agenda((deed.begin_ns, deed.end_ns) for deed in timed)
        self._agenda = [(time_ns, timed[number].name, begins) for time_ns, number, begins in order]
        self._past = 0
        self._awaited = {deed.name: deed.nth for deed in self.deeds if deed.on}
        self._active: list[str] = []
        self._waiting: ScheduledEvent | None = None
        for topic in sorted({deed.events for deed in self.deeds if deed.on}):
            self.subscribe(topic, msg.SkillEvent, partial(self._on_skill, topic))
        if self.deeds:
            self.report_health("ok", "no fault is under way")
        self._wait()

    def _on_skill(self, topic: str, event: Any) -> None:
        moments = (event.skill,) if event.event == "started" else (f"{event.skill}.{event.phase}",)
        if event.event not in ("started", "phase"):
            return
        for name in list(self._awaited):
            deed = self._by_name[name]
            if deed.events == topic and deed.on in moments and self.now_ns >= deed.begin_ns:
                self._awaited[name] -= 1
                if self._awaited[name] > 0:
                    continue
                del self._awaited[name]
                deed.tell(event)
                begin_ns = self.now_ns + deed.later_ns
                lasts_ns = None if deed.end_ns is None else deed.end_ns - deed.begin_ns
                ends = [] if lasts_ns is None else [(begin_ns + lasts_ns, name, False)]
                rest = sorted([*self._agenda[self._past :], (begin_ns, name, True), *ends], key=_order)
                self._agenda = [*self._agenda[: self._past], *rest]
                self._wait()
                if not deed.later_ns:
                    self._happen()

    def _wait(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = None
        if self._past < len(self._agenda):
            time_ns = self._agenda[self._past][0]
            self._waiting = self.call_after(
                max(0, time_ns - self.now_ns) / 1e9, self._happen, restored_by_node=True, priority=FAULT
            )

    def _happen(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        while self._past < len(self._agenda) and self._agenda[self._past][0] <= self.now_ns:
            _, name, begins = self._agenda[self._past]
            self._past += 1
            deed = self._by_name[name]
            self._tell(deed, begins, (deed.begin if begins else deed.end)())
        self._wait()

    def _tell(self, deed: Deed, begins: bool, said: str | None) -> None:
        text = line(said or deed.text, deed.on)
        self.events.append(event(self.now, deed.kind, begins, text))
        if deed.kind in MOMENTARY:
            self.log.info(text)
            return
        self.log.warn(text if begins else f"{OVER}{text}")
        self._active = [*self._active, deed.text] if begins else [other for other in self._active if other != deed.text]
        level = self.health.level if self.health else ""
        if self._active:
            self.report_health("warn", "; ".join(self._active))
        else:
            self.report_health("ok", "no fault is under way")
        if self.health is not None and self.health.level == level:  # changes of level are published at once anyway
            self.bus.publish_health_change()

    def save_state(self) -> dict[str, Any]:
        """How far the agenda is, and the generators of what disturbs topics."""
        random = {
            deed.name: copy.deepcopy(d.rng.bit_generator.state)
            for deed in self._by_name.values()
            if (d := deed.disturbance)
        }
        lost = {deed.name: deed.disturbance.dropped_count for deed in self._by_name.values() if deed.disturbance}
        agenda = [list(item) for item in self._agenda]
        mine = {
            "agenda": agenda, "awaited": self._awaited, "past": self._past, "active": self._active,
            "events": self.events, "random_of": random, "lost": lost,
        }  # fmt: skip
        return {**super().save_state(), **copy.deepcopy(mine)}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take it back.  Faults of robots are in the simulation's state; topics are disturbed again from here."""
        super().load_state(saved)
        self._agenda = [(int(time_ns), str(name), bool(begins)) for time_ns, name, begins in saved["agenda"]]
        self._past, self._active, self._awaited = saved["past"], list(saved["active"]), dict(saved["awaited"])
        self.events[:] = saved["events"]
        for deed in self._by_name.values():
            if deed.disturbance is not None:
                deed.end()
        for _, name, begins in self._agenda[: self._past]:
            deed = self._by_name[name]
            if deed.disturbance is not None:
                (deed.begin if begins else deed.end)()
        for deed in self._by_name.values():
            if deed.disturbance is not None:
                deed.disturbance.rng.bit_generator.state = saved["random_of"][deed.name]
                deed.disturbance.dropped_count = saved["lost"][deed.name]
        self._wait()


def _order(item: tuple[int, str, bool]) -> tuple[int, bool]:
    """At one instant what ends goes before what begins."""
    return item[0], item[2]
