"""Where joints start: as their description says, else at zero, in both cases within their limits."""

from __future__ import annotations

from collections.abc import Iterable

from roboyard.description.model import AxisLimits, Model


def starting_positions(model: Model, scalars: Iterable[tuple[str, AxisLimits]]) -> dict[str, float]:
    """Position of each scalar joint at the start [rad or m].

    A joint whose limits leave out zero starts at the nearer of them: a leg that cannot be stretched would else be
    flung into its limits in the first step.  A joint that follows another starts where that one's start puts it,
    along chains of them, too.

    Args:
        model: The description.
        scalars: Its scalar joints with their limits.
    """
    stated = {one.joint: dict(one.initial) for one in model.interfaces}
    leaders = {joint.name: joint.mimic for joint in model.joints if joint.mimic is not None}
    found = {
        name: stated.get(name, {}).get("position", min(max(0.0, limits.lower), limits.upper))
        if limits.lower <= limits.upper
        else stated.get(name, {}).get("position", 0.0)
        for name, limits in scalars
    }

    def settled(name: str, above: tuple[str, ...] = ()) -> float:
        mimic = leaders.get(name)
        if mimic is None or mimic.joint not in found or name in above:
            return found[name]
        return mimic.offset + mimic.multiplier * settled(mimic.joint, (*above, name))

    return {name: settled(name) for name in found}
