"""Joints that are blocked, weak or without power, in the engine's model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from roboyard.description.joint_interfaces import LOCKED_RANGE
from roboyard.simulation import servo_loop as s
from roboyard.simulation.assembly import JointPlace, Placement
from roboyard.simulation.faults.kinds import JointFault, PowerFault
from roboyard.simulation.running import Running
from roboyard.simulation.servos import effort_limit

_COLUMNS = ("jnt_limited", "jnt_range", "jnt_solref")
_STIFF = 2.0
"""Time constant of what holds a blocked joint, in physics steps: the least that is stable."""


class JointFaults:
    """What the engine's model was before any fault, and what the faults under way make of it.

    Args:
        running: A compiled world on which no fault has fallen yet.
    """

    def __init__(self, running: Running) -> None:
        self.running = running
        self._sound = {name: getattr(running.model, name).copy() for name in _COLUMNS}

    def apply(self, faults: Mapping[str, JointFault | PowerFault], held: Mapping[str, Mapping[str, float]]) -> None:
        """Make the model that of these faults.

        Args:
            faults: By name.
            held: Where joints are held [rad or m]: by the fault's name, by the joint's.
        """
        model, servos = self.running.model, self.running.servos
        for name, values in self._sound.items():
            getattr(model, name)[:] = values
        for (owner, joint), servo in servos.servos.items():
            share = _share(owner, joint, faults.values())
            servos.floats[servo.row, s.OWN] = effort_limit(servo.place.axis) * share if share > 0.0 else 0.0
            servos.limit(servo, model)
        for name, fault in faults.items():
            for place in self._places(fault):
                if place.name in held[name]:
                    self._block(place, held[name][place.name])

    def held(self, fault: JointFault | PowerFault) -> dict[str, float]:
        """Where the joints stand [rad or m] that the fault holds there: a blocked one, and those that have a brake."""
        if isinstance(fault, PowerFault):
            braked = _with_brakes(self.running.assembled.placements[fault.model])
        else:
            braked = {fault.joint} if fault.trouble == "blocked" else set()
        return {
            place.name: float(self.running.data.qpos[place.qpos])
            for place in self._places(fault)
            if place.name in braked
        }

    def _places(self, fault: JointFault | PowerFault) -> tuple[JointPlace, ...]:
        placement = self.running.assembled.placements.get(fault.model)
        return placement.joints if placement is not None else ()

    def _block(self, place: JointPlace, position: float) -> None:
        """Limits on either side of where it stands hold it: unlike friction they do not creep."""
        model = self.running.model
        model.jnt_limited[place.joint] = 1
        model.jnt_range[place.joint] = position - LOCKED_RANGE, position + LOCKED_RANGE
        model.jnt_solref[place.joint] = _STIFF * model.opt.timestep, 1.0


def _with_brakes(placement: Placement) -> set[str]:
    """Joints with a magnet brake, which holds them when the power is gone: ``<param name="brake">true</param>``."""
    interfaces = placement.entry.model.interfaces
    return {one.joint for one in interfaces if dict(one.parameters).get("brake", "").strip().lower() in ("true", "1")}


def _share(model: str, joint: str, faults: Iterable[JointFault | PowerFault]) -> float:
    """What is left of a joint's effort limit; 0 without power."""
    share = 1.0
    for fault in faults:
        if fault.model != model:
            continue
        if isinstance(fault, PowerFault):
            return 0.0
        if fault.joint == joint and fault.trouble == "weak":
            share *= fault.amount
    return share if not math.isnan(share) else 0.0
