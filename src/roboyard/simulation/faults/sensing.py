"""A sensor that is not as it should be: what becomes of its readings."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import fields, replace
from typing import Any

import numpy as np

from roboyard.simulation.faults.kinds import SensorFault
from roboyard.simulation.randomness import plain_state, restore_generator

MEASURED: dict[str, tuple[str, ...]] = {"encoder": ("position", "velocity"), "lidar": ("ranges",)}
"""By kind of sensor, the fields of its readings that noise falls on; for other kinds all that hold real numbers."""
_NEVER = ("orientation", "variance", "reference")
"""A rotation plus noise is none, and what a sensor says of itself is not measured."""
_METRE = 1.0 / 111_320.0
"""In degrees of latitude: noise of a place is given in metres."""
DEPTH_CAMERAS = ("depth_camera", "rgbd_camera")
COLOUR_CAMERAS = ("camera", "rgbd_camera", "stereo_camera")
NUMBERLESS = ("contact", "ground_truth")
"""Kinds of sensors whose readings are no plain numbers: noise has nothing to fall on."""


def _blinded(reading: Any) -> Any:
    """Without any depth; colours stay."""
    if reading.depth is None:
        return reading
    nothing = np.full_like(reading.depth, np.nan)
    nothing.flags.writeable = False
    return replace(reading, depth=nothing)


def _darkened(reading: Any, light: float) -> Any:
    """With so much of the light in its colours; depth stays."""
    pictures = {name: getattr(reading, name) for name in ("colour", "right")}
    made = {name: np.rint(light * one).astype(np.uint8) for name, one in pictures.items() if one is not None}
    for one in made.values():
        one.flags.writeable = False
    return replace(reading, **made)


class Impairment:
    """One fault of one sensor, under way.

    Args:
        fault: What is wrong.
        kind: Of the sensor.
        held: Its reading when the fault began.
        rng: For noise.
    """

    def __init__(self, fault: SensorFault, kind: str, held: Any, rng: np.random.Generator) -> None:
        self.fault, self.held = fault, held
        self._kind, self._rng = kind, rng
        self._past: deque[tuple[int, Any]] = deque()

    @property
    def late_ns(self) -> int:
        """By how much readings come late [ns]; 0: they do not."""
        return round(self.fault.amount * 1e9) if self.fault.trouble == "delayed" else 0

    def apply(self, reading: Any, now_ns: int) -> Any:
        """What comes out when ``reading`` goes in at ``now_ns`` [ns]; None is silence. Once for each moment."""
        match self.fault.trouble:
            case "silent":
                return None
            case "stuck":
                return None if self.held is None else replace(self.held, time_ns=now_ns)
            case "delayed":
                return self._delayed(reading, now_ns - self.late_ns, now_ns)
            case "noisy":
                return None if reading is None else self._noisy(reading)
            case "blind":
                return None if reading is None else _blinded(reading)
            case "dark":
                return None if reading is None else _darkened(reading, self.fault.amount)

    def _delayed(self, reading: Any, until_ns: int, now_ns: int) -> Any:
        self._past.append((now_ns, reading))
        found = None
        while self._past and self._past[0][0] <= until_ns:
            found = self._past.popleft()
        if found is None:
            return None
        self._past.appendleft(found)  # it is the newest one that old until another is
        return found[1]

    def _noisy(self, reading: Any) -> Any:
        changed: dict[str, Any] = {}
        wanted = MEASURED.get(self._kind)
        for item in fields(reading):
            if item.name in _NEVER or (wanted is not None and item.name not in wanted):
                continue
            value = getattr(reading, item.name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                noise = self.fault.amount * self._rng.standard_normal(value.shape)
                made = np.where(np.isfinite(value), value + noise, value).astype(value.dtype, copy=False)
                changed[item.name] = made
                made.flags.writeable = False
            elif isinstance(value, float):
                scale = _METRE if item.name in ("latitude", "longitude") else 1.0
                if item.name == "longitude":
                    scale /= max(math.cos(math.radians(reading.latitude)), 1e-6)
                error = scale * self.fault.amount * float(self._rng.standard_normal())
                changed[item.name] = value + error if math.isfinite(value) else value
            elif isinstance(value, tuple) and value and all(isinstance(number, float) for number in value):
                errors = self.fault.amount * self._rng.standard_normal(len(value))
                changed[item.name] = tuple(float(number) for number in np.asarray(value) + errors)
        return replace(reading, **changed)

    def save_state(self) -> dict[str, Any]:
        """Its memory: readings, and the generator as plain data."""
        return {"held": self.held, "past": list(self._past), "rng": plain_state(dict(self._rng.bit_generator.state))}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self.held = saved["held"]
        self._past = deque((int(time_ns), reading) for time_ns, reading in saved["past"])
        restore_generator(self._rng, saved["rng"])
