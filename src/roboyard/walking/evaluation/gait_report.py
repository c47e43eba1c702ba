"""Report section of a legged robot's gait: feet on the ground, stability, body, torques and power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.evaluation.figures import (
    BAD,
    COMMAND,
    GOOD,
    MUTED,
    ODOMETRY,
    TRUTH,
    decimation_slice,
    ensure_axis_range,
    figure_style,
    new_figure,
    render_svg,
)
from roboyard.evaluation.section import ReportSection, ReportTable, SectionContext
from roboyard.geometry.arrays import Array, Flags
from roboyard.record import Recording
from roboyard.walking.evaluation.motors import MotorModel

_N_DRAWN_CYCLES = 5.0
"""Gait cycles that the diagram shows."""
_MIN_WINDOW, _MAX_WINDOW = 4.0, 90.0
"""Shortest and longest time that the diagram shows [s]."""


@dataclass(frozen=True, slots=True)
class GaitTrace:
    """States of the gait node over time.

    Attributes:
        legs: (l) names of the legs.
        time: (n) times [s].
        in_stance: (n, l) feet that are in stance by the gait.
        in_contact: (n, l) feet in contact; None: the feet have no contact sensors.
        margin: (n) stability margin, seen from above [m].
        tilt: (n) angle until the robot tips over [rad].
        is_moving: (n) whether the robot was commanded to move.
        is_walking: (n) whether the robot walked, or stood ready to walk.
        gait_names: (n) name of the gait.
    """

    legs: tuple[str, ...]
    time: Array
    in_stance: Flags
    in_contact: Flags | None
    margin: Array
    tilt: Array
    is_moving: Flags
    is_walking: Flags
    gait_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EffortTrace:
    """Motors over time: time (k) [s], torques and speeds (k, 3 l) [N m, rad/s], leg after leg."""

    time: Array
    effort: Array
    speed: Array


@dataclass(frozen=True, slots=True)
class BodyTrace:
    """True pose of the body over time: time (k) [s], height (k) [m], roll and pitch (k) [rad]."""

    time: Array
    height: Array
    roll: Array
    pitch: Array


def gait_section(context: SectionContext) -> ReportSection | None:
    """Show gait, stability and motors of a walking robot; None for others."""
    gait = read_gait_trace(context.recording, f"{context.namespace}/gait/state")
    if gait is None:
        return None
    figures = [gait_figure(gait, gait_window(gait)), margin_figure(gait)]
    body = read_body_trace(context.recording, context.robot.topics.truth)
    if body is not None:
        figures.append(body_figure(body))
    note = (
        "Feet: bars show when they are on the ground by the gait, the thin bars below by their contacts. Margin: least "
        "distance of the body's center to the edge of the polygon of the feet on the ground, seen from above; below it "
        "the angle by which the robot would have to turn about such an edge to tip over."
    )
    motors = MotorModel.from_dict(context.document["motors"]) if "motors" in context.document else None
    efforts = read_effort_trace(context.recording, f"{context.namespace}/joint_states", motors) if motors else None
    if motors is None or efforts is None:
        return ReportSection("Gait and motors", tuple(figures), note=note)
    figures += [torque_figure(efforts, motors), power_figure(efforts, motors)]
    note += (
        " Torques: the band is the range of all legs, the line their root mean square. Energy: work τ ω and heat of "
        "the windings τ² ω₀ / τ₀ by the torque-speed line from stall torque τ₀ to no-load speed ω₀; no energy is "
        "recovered, so it is more than the sum of work and heat where legs drive motors; electronics are left out. "
        "Cost of transport: energy divided by weight and distance."
    )
    return ReportSection("Gait and motors", tuple(figures), table=motor_table(efforts, motors), note=note)


# -- reading -----------------------------------------------------------------------------------------------------------
def read_gait_trace(recording: Recording, topic: str) -> GaitTrace | None:
    """Read the states that a gait node published on a topic; None if there are none.

    Raises:
        RecordingError: The recording is damaged.
    """
    if topic not in recording.topics:
        return None
    states_by_time = [(item.time_ns * 1e-9, item.message) for item in recording.messages([topic])]
    if not states_by_time:
        return None
    states = [state for _, state in states_by_time]
    measured_contacts = [np.asarray(state.in_contact, bool) for state in states]
    legs = tuple(states[0].legs)
    # the first contacts come after the first state
    in_contact = [contacts if len(contacts) else np.zeros(len(legs), bool) for contacts in measured_contacts]
    twists = [state.twist for state in states]
    walking = np.array([state.phase == "walking" for state in states])
    moving = np.array([bool(t.linear.x or t.linear.y or t.angular.z) for t in twists])
    return GaitTrace(
        legs,
        np.array([time for time, _ in states_by_time]),
        np.array([state.in_stance for state in states], bool),
        np.array(in_contact) if any(len(contacts) for contacts in measured_contacts) else None,
        np.array([state.margin for state in states]),
        np.array([state.tilt for state in states]),
        walking & moving,
        walking,
        tuple(str(state.gait) for state in states),
    )


def read_effort_trace(recording: Recording, topic: str, motors: MotorModel) -> EffortTrace | None:
    """Read torques and speeds of the motors' joints; None if they were not recorded.  Raises RecordingError."""
    if topic not in recording.topics:
        return None
    times, effort, speed = [], [], []
    indices: list[int] = []
    names: list[str] = []
    for item in recording.messages([topic]):
        message = item.message
        if list(message.name) != names:
            names = list(message.name)
            indices = [names.index(joint) for joint in motors.joints if joint in names]
        if len(indices) == len(motors.joints):
            times.append(item.time_ns * 1e-9)
            effort.append(np.asarray(message.effort)[indices])
            speed.append(np.asarray(message.velocity)[indices])
    return EffortTrace(np.array(times), np.array(effort), np.array(speed)) if len(times) > 1 else None


def read_body_trace(recording: Recording, topic: str) -> BodyTrace | None:
    """Read the true pose of the body; None if it was not recorded.  Raises RecordingError."""
    if topic not in recording.topics:
        return None
    rows = []
    for item in recording.messages([topic]):
        p, q = item.message.pose.pose.position, item.message.pose.pose.orientation
        rows.append((item.time_ns * 1e-9, p.z, q.w, q.x, q.y, q.z))
    if not rows:
        return None
    time, height, w, x, y, z = np.array(rows).T
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    return BodyTrace(time, height, roll, pitch)


# -- computing ---------------------------------------------------------------------------------------------------------
def gait_window(gait: GaitTrace) -> tuple[float, float]:
    """Return start and end of the time that the diagram shows: some cycles in the middle of the motion [s]."""
    start, end = float(gait.time[0]), float(gait.time[-1])
    moving_times = gait.time[gait.is_moving]
    if not len(moving_times):
        return start, end
    liftoff_times = [
        gait.time[1:][gait.in_stance[:-1, k] & ~gait.in_stance[1:, k] & gait.is_moving[1:]]
        for k in range(len(gait.legs))
    ]
    cycles = np.concatenate([np.diff(times) for times in liftoff_times])
    cycle = float(np.median(cycles)) if len(cycles) else _MAX_WINDOW
    length = min(max(_N_DRAWN_CYCLES * cycle, _MIN_WINDOW), _MAX_WINDOW, end - start)
    center = 0.5 * float(moving_times[0] + moving_times[-1])
    first = min(max(center - 0.5 * length, start), end - length)
    return first, first + length


def motor_table(efforts: EffortTrace, motors: MotorModel) -> ReportTable:
    """Tabulate torque, power, energy and saturation of each motor over the whole recording."""
    time = float(efforts.time[-1] - efforts.time[0])
    power = motors.power(efforts.effort, efforts.speed)
    energy: Array = np.asarray(np.trapezoid(power, efforts.time, axis=0))
    work: Array = np.asarray(np.trapezoid(efforts.effort * efforts.speed, efforts.time, axis=0))
    heat: Array = np.asarray(np.trapezoid(motors.heat(efforts.effort), efforts.time, axis=0))
    rms: Array = np.sqrt((efforts.effort**2).mean(axis=0))
    peak, max_speed = np.abs(efforts.effort).max(axis=0), np.abs(efforts.speed).max(axis=0)
    saturation = motors.is_saturated(efforts.effort, efforts.speed).mean(axis=0)
    rows = [
        (
            motors.legs[k // 3], joint, f"{rms[k]:.2f}", f"{peak[k]:.2f}", f"{100 * saturation[k]:.1f}",
            f"{max_speed[k]:.2f}", f"{energy[k] / time:.2f}", f"{energy[k]:.1f}",
            f"{round(work[k], 1) + 0.0:.1f}", f"{heat[k]:.1f}",
        )
        for k, joint in enumerate(motors.joints)
    ]  # fmt: skip
    rows.append(
        (
            "all", "", f"{np.sqrt((rms**2).mean()):.2f}", f"{peak.max():.2f}", f"{100 * saturation.mean():.1f}",
            f"{max_speed.max():.2f}", f"{energy.sum() / time:.2f}", f"{energy.sum():.1f}", f"{work.sum():.1f}",
            f"{heat.sum():.1f}",
        )
    )  # fmt: skip
    header = (
        "leg", "joint", "torque rms [N m]", "peak [N m]", "saturated [%]", "max. speed [rad/s]", "power [W]",
        "energy [J]", "work [J]", "heat [J]",
    )  # fmt: skip
    return ReportTable(header, tuple(rows), frozenset(header[2:]))


_WIDTH = 8.6
_JOINTS = ("first", "second", "third")


def gait_figure(gait: GaitTrace, window: tuple[float, float]) -> str:
    """Draw for each foot when it was on the ground: by the gait, and by its contacts."""
    start, end = window
    is_in_window = (gait.time >= start) & (gait.time <= end)
    time = gait.time[is_in_window]
    with figure_style():
        rows = len(gait.legs)
        figure, axes = new_figure(_WIDTH, 0.9 + 0.32 * rows)
        for row in range(rows):
            _draw_bars(
                axes,
                time,
                (gait.in_stance[:, row] & gait.is_walking)[is_in_window],
                row - 0.14,
                0.44,
                TRUTH,
                "by the gait" if not row else None,
            )
            if gait.in_contact is not None:
                label = "by its contacts" if not row else None
                _draw_bars(axes, time, gait.in_contact[is_in_window, row], row + 0.24, 0.12, GOOD, label)
            axes.axhline(row + 0.45, color=MUTED, lw=0.3)
        axes.set_yticks(range(rows), gait.legs)
        axes.set_ylim(rows - 0.5, -0.5)
        axes.set_xlim(start, end)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("simulated time [s]")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, handlelength=1.4)
        return render_svg(figure, "Times of each foot on the ground, by the gait and by its contacts")


def margin_figure(gait: GaitTrace) -> str:
    """Draw the stability margin while walking [mm], and the angle until the robot tips over [deg]."""
    with figure_style():
        figure, (above, below) = new_figure(_WIDTH, 3.4, rows=2)
        samples = decimation_slice(len(gait.time))
        panels = ((above, 1e3 * gait.margin, "mm", "margin"), (below, np.degrees(gait.tilt), "°", "until it tips"))
        for axes, recorded_values, unit, label in panels:
            values = np.where(gait.is_walking & np.isfinite(recorded_values), recorded_values, np.nan)
            axes.plot(gait.time[samples], values[samples], color=TRUTH, lw=1.1)
            axes.axhline(0.0, color=BAD, lw=1.0)
            if np.isfinite(values).any():
                min_index = int(np.nanargmin(values))
                min_label = f"least: {values[min_index]:.0f} {unit}"
                axes.plot(gait.time[min_index], values[min_index], "v", ms=6, color=ODOMETRY, label=min_label)
                axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
            axes.set_ylim(bottom=min(0.0, float(np.nanmin(values, initial=0.0))) - 5.0)
            axes.set_ylabel(f"{label} [{unit}]")
        _configure_time_axis(below, gait.time)
        return render_svg(figure, "Stability margin over time")


def body_figure(body: BodyTrace) -> str:
    """Draw height [mm] and tilt [deg] of the body."""
    with figure_style():
        figure, (above, below) = new_figure(_WIDTH, 3.2, rows=2)
        samples = decimation_slice(len(body.time))
        above.plot(body.time[samples], 1e3 * body.height[samples], color=TRUTH, lw=1.2)
        above.set_ylabel("height [mm]")
        below.plot(body.time[samples], np.degrees(body.roll[samples]), color=TRUTH, lw=1.1, label="roll")
        below.plot(body.time[samples], np.degrees(body.pitch[samples]), color=ODOMETRY, lw=1.1, label="pitch")
        ensure_axis_range(below, -0.1, 0.1)
        below.set_ylabel("tilt [°]")
        below.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, borderaxespad=0.1)
        _configure_time_axis(below, body.time)
        return render_svg(figure, "True height and tilt of the body over time")


def torque_figure(efforts: EffortTrace, motors: MotorModel) -> str:
    """Draw torques of all legs' first, second and third joints [N m]."""
    with figure_style():
        figure, panels = new_figure(_WIDTH, 4.6, rows=3)
        time, reduce_blocks = _split_into_blocks(efforts.time)
        for joint, (axes, name) in enumerate(zip(panels, _JOINTS, strict=True)):
            joint_efforts = efforts.effort[:, joint::3]
            low, high = (
                reduce_blocks(joint_efforts.min(axis=1), np.min),
                reduce_blocks(joint_efforts.max(axis=1), np.max),
            )
            rms = np.sqrt(reduce_blocks((joint_efforts**2).mean(axis=1), np.mean))
            axes.fill_between(time, low, high, color=TRUTH, alpha=0.22, lw=0)
            axes.plot(time, rms, color=TRUTH, lw=1.1)
            stall = float(motors.stall_torque[joint::3].min())
            if np.isfinite(stall) and max(-low.min(), high.max()) > 0.6 * stall:
                for side in (-stall, stall):
                    axes.axhline(side, color=BAD, lw=0.9, ls=(0, (4, 2)))
            ensure_axis_range(axes, -0.1, 0.1)
            axes.set_ylabel(f"{name} [N m]")
        _configure_time_axis(panels[-1], efforts.time)
        return render_svg(figure, "Torques of the legs' joints over time")


def power_figure(efforts: EffortTrace, motors: MotorModel) -> str:
    """Draw the power of all motors [W] with its share of heat, and their energy so far [J]."""
    with figure_style():
        figure, (above, below) = new_figure(_WIDTH, 3.4, rows=2)
        power = motors.power(efforts.effort, efforts.speed).sum(axis=1)
        heat = np.minimum(motors.heat(efforts.effort).sum(axis=1), power)
        time, reduce_blocks = _split_into_blocks(efforts.time)
        mean_power, mean_heat = reduce_blocks(power, np.mean), reduce_blocks(heat, np.mean)
        above.fill_between(time, 0.0, mean_heat, color=ODOMETRY, alpha=0.45, lw=0, label="heat")
        above.fill_between(time, mean_heat, mean_power, color=COMMAND, alpha=0.45, lw=0, label="work")
        above.set_ylabel("power [W]")
        above.set_ylim(bottom=0.0)
        above.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, handlelength=1.2, borderaxespad=0.1)
        steps = np.diff(efforts.time)
        energy = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * steps)])
        samples = decimation_slice(len(energy))
        below.plot(efforts.time[samples], energy[samples], color=TRUTH, lw=1.4)
        below.set_ylabel("energy [J]")
        below.set_ylim(bottom=0.0)
        _configure_time_axis(below, efforts.time)
        return render_svg(figure, "Power and energy of the motors over time")


def _draw_bars(
    axes: Any, time: NDArray[np.float64], is_active: NDArray[np.bool_], center: float, height: float, color: str,
    label: str | None,
) -> None:  # fmt: skip
    """Draw bars where ``is_active`` holds, each up to the next sample."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_active, [False]]).astype(int)))
    last = len(time) - 1
    spans = [
        (time[start], time[min(end, last)] - time[start])
        for start, end in zip(edges[::2], edges[1::2], strict=True)
        if start < last
    ]
    axes.broken_barh(spans, (center - 0.5 * height, height), facecolors=color, lw=0, label=label)


def _split_into_blocks(time: NDArray[np.float64], max_blocks: int = 700) -> tuple[NDArray[np.float64], Any]:
    """Return times of blocks of samples, and a function that reduces values in them, so that the page stays small."""
    size = max(1, -(-len(time) // max_blocks))
    starts = np.arange(0, len(time), size)

    def reduce_values(values: NDArray[np.float64], reduction: Any) -> NDArray[np.float64]:
        return np.array([reduction(values[start : start + size]) for start in starts])

    return time[starts], reduce_values


def _configure_time_axis(axes: Any, time: NDArray[np.float64]) -> None:
    axes.set_xlim(0.0, max(float(time[-1]), 1e-3))
    axes.set_xlabel("simulated time [s]")
