"""Messages of planned steps: plans and touch-downs."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg
from roboyard.walking.steps.following import Touchdown
from roboyard.walking.steps.plan import StepPlan, Swing


def plan_message(
    plan: StepPlan, goal: Array, time_ns: int, frame: str, *, number: int = 0, at: float = 0.0, why: str = ""
) -> Any:
    """roboyard_msgs/FootstepPlan of a plan to a goal (2,)."""
    return msg.FootstepPlan(
        header=msg.Header(stamp=time_to_msg(time_ns), frame_id=frame),
        planner=plan.effort.planner,
        id=number,
        time=at,
        cost=plan.cost,
        reason=why,
        goal=msg.Point(x=float(goal[0]), y=float(goal[1])),
        heading=plan.heading,
        feet=[_point(place) for place in plan.feet],
        body_times=plan.track[:, 0].copy(),
        body_path=[_point(place) for place in plan.track[:, 1:]],
        swings=[
            msg.FootSwing(
                leg=one.leg, lift_off_time=one.lifts, touch_down_time=one.lands, source=_point(one.source),
                target=_point(one.target), apex_height=one.top, vertical_time=one.quick,
            )
            for one in plan.swings
        ],
    )  # fmt: skip


def plan_of_message(message: Any, legs: int) -> StepPlan:
    """The plan of a roboyard_msgs/FootstepPlan for so many legs. Raises InputError where it is none."""
    times, track = np.asarray(message.body_times, np.float64), _array(message.body_path)
    if len(message.feet) != legs or any(one.leg >= legs for one in message.swings):
        raise InputError(f"a plan for {len(message.feet)} feet", valid=f"for {legs}")
    if len(times) < 2 or len(times) != len(track) or times[0] != 0.0 or not (np.diff(times) > 0.0).all():
        raise InputError("a plan whose times do not grow from 0", valid="a time for each place of the body")
    swings = tuple(
        Swing(
            one.leg,
            one.lift_off_time,
            one.touch_down_time,
            _triple(one.source),
            _triple(one.target),
            one.apex_height,
            one.vertical_time,
        )
        for one in message.swings
    )
    if not all(one.lifts < one.lands <= times[-1] + 1e-9 for one in swings):
        raise InputError(
            "a plan with a swing that does not end in it",
            valid="lift_off_time before touch_down_time, touch_down_time before the plan's end",
        )
    if not all(one.quick > 0.0 for one in swings):
        raise InputError("a swing whose ends take no time", valid="vertical_time: more than 0 s")
    numbers = [
        track,
        _array(message.feet),
        *(np.array([*one.source, *one.target, one.top, one.quick]) for one in swings),
    ]
    if not all(np.isfinite(part).all() for part in numbers):
        raise InputError("a plan of numbers that are not finite", valid="metres and seconds")
    return StepPlan(message.heading, _array(message.feet), np.column_stack([times, track]), swings, message.cost)


def touchdown_message(down: Touchdown, leg: str, time_ns: int, frame: str) -> Any:
    """roboyard_msgs/Touchdown."""
    header = msg.Header(stamp=time_to_msg(time_ns), frame_id=frame)
    return msg.Touchdown(header=header, leg=leg, planned=_point(down.planned), actual=_point(down.found), kind=down.how)


def _point(place: Any) -> Any:
    x, y, z = (float(value) for value in place)
    return msg.Point(x=x, y=y, z=z)


def _triple(point: Any) -> tuple[float, float, float]:
    return point.x, point.y, point.z


def _array(points: Any) -> Array:
    return np.array([_triple(point) for point in points], np.float64).reshape(-1, 3)
