"""The node that lets a scenario's faults happen."""

from __future__ import annotations

import copy
from typing import Any

from roboyard.bus import FAULT, Node, resource
from roboyard.bus.executor import Scheduled
from roboyard.scenarios.faults.agenda import MOMENTARY, OVER, agenda, event
from roboyard.scenarios.faults.deeds import Deed


class Faults(Node):
    """Begins and ends faults at their times, and says so on /diagnostics and in the log.

    ``events`` is the list of what happened so far: time [s], the scenario's word for it, whether it ``began``,
    ``ended`` or just ``happened``, and what it was in words.
    """

    deeds: tuple[Deed, ...] = resource(tuple)
    events: list[dict[str, Any]] = resource(list)

    def setup(self) -> None:
        """Wait for the first one."""
        order = agenda((deed.begin_ns, deed.end_ns) for deed in self.deeds)
        self._agenda = [(time_ns, self.deeds[number], begins) for time_ns, number, begins in order]
        self._past = 0
        self._active: list[str] = []
        self._waiting: Scheduled | None = None
        if self.deeds:
            self.report_health("ok", "no fault is under way")
        self._wait()

    def _wait(self) -> None:
        self._waiting = None
        if self._past < len(self._agenda):
            time_ns = self._agenda[self._past][0]
            self._waiting = self.after(max(0, time_ns - self.now_ns) / 1e9, self._happen, restored=True, priority=FAULT)

    def _happen(self) -> None:
        while self._past < len(self._agenda) and self._agenda[self._past][0] <= self.now_ns:
            _, deed, begins = self._agenda[self._past]
            self._past += 1
            (deed.begin if begins else deed.end)()
            self._tell(deed, begins)
        self._wait()

    def _tell(self, deed: Deed, begins: bool) -> None:
        self.events.append(event(self.now, deed.kind, begins, deed.text))
        if deed.kind in MOMENTARY:
            self.log.info(deed.text)
            return
        self.log.warn(deed.text if begins else f"{OVER}{deed.text}")
        self._active = [*self._active, deed.text] if begins else [text for text in self._active if text != deed.text]
        level = self.health.level if self.health else ""
        if self._active:
            self.report_health("warn", "; ".join(self._active))
        else:
            self.report_health("ok", "no fault is under way")
        if self.health is not None and self.health.level == level:  # changes of level are published at once anyway
            self.bus.health_changed(self)

    def save(self) -> dict[str, Any]:
        """How far the agenda is, and the generators of what disturbs topics."""
        random = {deed.name: copy.deepcopy(d.rng.bit_generator.state) for deed in self.deeds if (d := deed.disturbance)}
        lost = {deed.name: deed.disturbance.lost for deed in self.deeds if deed.disturbance}
        mine = {"past": self._past, "active": self._active, "events": self.events, "random_of": random, "lost": lost}
        return {**super().save(), **copy.deepcopy(mine)}

    def load(self, saved: dict[str, Any]) -> None:
        """Take it back.  Faults of robots are in the simulation's state; topics are disturbed again from here."""
        super().load(saved)
        self._past, self._active = saved["past"], list(saved["active"])
        self.events[:] = saved["events"]
        for deed in self.deeds:
            if deed.disturbance is not None:
                deed.end()
        for _, deed, begins in self._agenda[: self._past]:
            if deed.disturbance is not None:
                (deed.begin if begins else deed.end)()
        for deed in self.deeds:
            if deed.disturbance is not None:
                deed.disturbance.rng.bit_generator.state = saved["random_of"][deed.name]
                deed.disturbance.lost = saved["lost"][deed.name]
        if self._waiting is not None:
            self._waiting.cancel()
        self._wait()
