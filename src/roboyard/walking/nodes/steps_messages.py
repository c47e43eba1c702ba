"""Messages of planned steps: plans, touch-downs, and maps of heights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.messages import msg
from roboyard.messages.time import stamp
from roboyard.walking.steps.following import Touchdown
from roboyard.walking.steps.plan import StepPlan, Swing

Array = NDArray[np.float64]


def plan_message(
    plan: StepPlan, goal: Array, time_ns: int, frame: str, *, number: int = 0, at: float = 0.0, why: str = ""
) -> Any:
    """roboyard_msgs/StepPlan of a plan to a goal (2,)."""
    return msg.StepPlan(
        header=msg.Header(stamp=stamp(time_ns), frame_id=frame),
        planner=plan.effort.planner,
        number=number,
        at=at,
        cost=plan.cost,
        why=why,
        goal=msg.Point(x=float(goal[0]), y=float(goal[1])),
        heading=plan.heading,
        feet=[_point(place) for place in plan.feet],
        times=plan.track[:, 0].copy(),
        track=[_point(place) for place in plan.track[:, 1:]],
        swings=[
            msg.StepSwing(
                leg=one.leg, lifts=one.lifts, lands=one.lands, source=_point(one.source), target=_point(one.target),
                top=one.top,
            )
            for one in plan.swings
        ],
    )  # fmt: skip


def plan_of_message(message: Any, legs: int) -> StepPlan:
    """The plan of a roboyard_msgs/StepPlan for so many legs. Raises InputError where it is none."""
    times, track = np.asarray(message.times, np.float64), _array(message.track)
    if len(message.feet) != legs or any(one.leg >= legs for one in message.swings):
        raise InputError(f"a plan for {len(message.feet)} feet", valid=f"for {legs}")
    if len(times) < 2 or len(times) != len(track) or times[0] != 0.0 or not (np.diff(times) > 0.0).all():
        raise InputError("a plan whose times do not grow from 0", valid="a time for each place of the body")
    swings = tuple(
        Swing(one.leg, one.lifts, one.lands, _triple(one.source), _triple(one.target), one.top)
        for one in message.swings
    )
    if not all(one.lifts < one.lands <= times[-1] + 1e-9 for one in swings):
        raise InputError(
            "a plan with a swing that does not end in it", valid="lifts before lands, lands before its end"
        )
    numbers = [track, _array(message.feet), *(np.array([*one.source, *one.target, one.top]) for one in swings)]
    if not all(np.isfinite(part).all() for part in numbers):
        raise InputError("a plan of numbers that are not finite", valid="metres and seconds")
    return StepPlan(message.heading, _array(message.feet), np.column_stack([times, track]), swings, message.cost)


def touchdown_message(down: Touchdown, leg: str, time_ns: int, frame: str) -> Any:
    """roboyard_msgs/Touchdown."""
    header = msg.Header(stamp=stamp(time_ns), frame_id=frame)
    return msg.Touchdown(header=header, leg=leg, planned=_point(down.planned), found=_point(down.found), how=down.how)


def heights_message(heights: Array, corner: tuple[float, float], cell: float, time_ns: int, frame: str) -> Any:
    """grid_map_msgs/GridMap with a layer "elevation" of heights (rows along y, columns along x) [m].

    A grid map's rows go from the greatest x down, its columns from the greatest y; its data are column by column.
    """
    rows, columns = heights.shape
    layout = msg.MultiArrayLayout(
        dim=[
            msg.MultiArrayDimension(label="column_index", size=rows, stride=rows * columns),
            msg.MultiArrayDimension(label="row_index", size=columns, stride=columns),
        ]
    )
    middle = msg.Point(x=corner[0] + 0.5 * columns * cell, y=corner[1] + 0.5 * rows * cell)
    return msg.GridMap(
        header=msg.Header(stamp=stamp(time_ns), frame_id=frame),
        info=msg.GridMapInfo(
            resolution=cell, length_x=columns * cell, length_y=rows * cell,
            pose=msg.Pose(position=middle, orientation=msg.Quaternion(w=1.0)),
        ),
        layers=["elevation"],
        basic_layers=["elevation"],
        data=[msg.Float32MultiArray(layout=layout, data=heights[::-1, ::-1].astype(np.float32).ravel())],
    )  # fmt: skip


def heights_of_message(message: Any) -> tuple[Array, tuple[float, float], float]:
    """Heights (rows along y, columns along x) [m], corner and cell of a grid_map_msgs/GridMap that begins at index 0.

    Raises:
        InputError: it has no layer "elevation", or is turned, or its buffer begins elsewhere.
    """
    if "elevation" not in message.layers:
        raise InputError(f"a grid map of {', '.join(message.layers) or 'nothing'}", valid="a layer 'elevation'")
    info, q = message.info, message.info.pose.orientation
    if message.outer_start_index or message.inner_start_index or abs(q.x) + abs(q.y) + abs(q.z) > 1e-9:
        raise InputError("a grid map that is turned, or whose buffer does not begin at 0", valid="along its frame")
    columns, rows = (round(length / info.resolution) for length in (info.length_x, info.length_y))
    data = np.asarray(message.data[message.layers.index("elevation")].data, np.float64)
    if data.size != rows * columns:
        raise InputError(f"a grid map of {data.size} numbers", valid=f"{columns} x {rows}")
    p = info.pose.position
    corner = (p.x - 0.5 * info.length_x, p.y - 0.5 * info.length_y)
    return np.ascontiguousarray(data.reshape(rows, columns)[::-1, ::-1]), corner, float(info.resolution)


def _point(place: Any) -> Any:
    x, y, z = (float(value) for value in place)
    return msg.Point(x=x, y=y, z=z)


def _triple(point: Any) -> tuple[float, float, float]:
    return point.x, point.y, point.z


def _array(points: Any) -> Array:
    return np.array([_triple(point) for point in points], np.float64).reshape(-1, 3)
