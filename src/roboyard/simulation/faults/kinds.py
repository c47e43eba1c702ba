"""The kinds of faults that a simulation knows, as frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roboyard.simulation.surface_tables import Patch

SensorTrouble = Literal["silent", "stuck", "delayed", "noisy", "blind", "dark"]
JointTrouble = Literal["blocked", "weak"]


@dataclass(frozen=True, slots=True)
class SensorFault:
    """One sensor of a model.

    ``silent`` gives nothing; ``stuck`` repeats what it measured when the fault began, with fresh stamps; ``delayed``
    gives what it measured ``amount`` seconds ago [s], stamped with that time; ``noisy`` adds white noise of standard
    deviation ``amount`` in the unit of what it measures; ``blind`` is a depth camera that can measure no pixel;
    ``dark`` leaves ``amount`` of the light, a share, in a camera's colours.
    """

    model: str
    sensor: str
    trouble: SensorTrouble
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class JointFault:
    """One joint of a model: ``blocked`` is held where it is; ``weak`` has ``amount`` times its effort limit left."""

    model: str
    joint: str
    trouble: JointTrouble
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class PowerFault:
    """A model without power: no joint has any effort, those with brakes are held, every sensor is silent."""

    model: str


@dataclass(frozen=True, slots=True)
class GroundFault:
    """A patch of ground with another friction."""

    patch: Patch


Fault = SensorFault | JointFault | PowerFault | GroundFault
KINDS: dict[str, type[Fault]] = {kind.__name__: kind for kind in (SensorFault, JointFault, PowerFault)}
"""Those whose fields are plain; `GroundFault` holds a patch."""
