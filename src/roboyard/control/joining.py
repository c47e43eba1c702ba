"""Joining of trajectories to where the joints are, at rest or in motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from roboyard.control.following import Course
from roboyard.control.limits import JointBounds
from roboyard.control.trajectories import JointSample, Trajectory, WayPoint
from roboyard.errors import InputError

_DELAYS = (0.0, *(0.02 * 1.5**k for k in range(16)))
"""By how much a trajectory is put off until it can be joined [s]."""
_HERE = 1e-6
"""Positions that differ by less are the same [rad or m]."""
_NOW = 1e-9


def joined(
    present: JointSample, points: Sequence[WayPoint], offset: float, bounds: JointBounds, joints: Sequence[str]
) -> tuple[list[WayPoint], float]:
    """Way points from where the joints are commanded to be now through the points to come, within the joints' limits.

    Points of the past are left out.  At rest the joints set out when the trajectory begins; in motion they go to its
    first point at once, and where they cannot be there in time, with the speed it says, it is put off.

    Args:
        present: Commanded for now.
        points: Their times count from when the trajectory begins.
        offset: When that is, from now on; negative: it is past [s].
        bounds: What the joints can do.
        joints: Their names.

    Returns:
        Points (two or more) whose times count from when the joints set out, and how long to wait until then [s].

    Raises:
        InputError: the joints would leave their range, or have to be faster than they are.
    """
    moving = bool((np.abs(present.velocity) > bounds.acceleration * _NOW).any())
    wait = offset if offset > 0.0 and not moving else 0.0
    later = [replace(point, time=point.time + offset - wait) for point in points]
    ahead = [point for point in later if point.time > _NOW]
    first = next((point for point in later if abs(point.time) <= _NOW), None) if not moving or not ahead else None
    here = first is not None and np.abs(first.position - present.position).max() <= _HERE
    if first is not None and here and ahead:
        return [replace(first, time=0.0, position=present.position), *ahead], wait
    if first is None and not moving:
        return [_lead(present, ahead[0], moving), *ahead], wait
    target = ahead[0] if first is None else first
    if moving and target.velocity is None:
        target = replace(target, velocity=np.zeros_like(present.velocity))
    rest = ahead[1:] if first is None else ahead
    refused: InputError | None = None
    for delay in _DELAYS:
        if target.time + delay <= _NOW:
            continue
        shifted = [replace(point, time=point.time + delay) for point in (target, *rest)]
        found = [_lead(present, shifted[0], moving), *shifted]
        try:
            course = Course(Trajectory(found), present.velocity, bounds, joints)
        except InputError as error:
            refused = refused or error
            continue
        if course.as_it_says or not moving:
            return found, wait
    raise refused or InputError(
        "cannot be joined from the present motion", valid="wait until the joints rest, or cancel"
    )


def _lead(present: JointSample, target: WayPoint, moving: bool) -> WayPoint:
    """The joints now, as a point whose spline to ``target`` is of the kind that ``target`` asks for."""
    smooth = moving or target.velocity is not None
    return WayPoint(
        0.0,
        present.position,
        present.velocity if smooth else None,
        present.acceleration if target.velocity is not None and target.acceleration is not None else None,
    )
