"""The report's part about walking: what the feet did, how safely it stood, and what the motors gave and took."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.geometry.arrays import Array, Flags
from roboyard.record import Recording
from roboyard.scenarios.metrics.motors import Motors
from roboyard.scenarios.report.section import Section, Source, Table
from roboyard.scenarios.report.walking_figures import (
    body_figure,
    gait_figure,
    margin_figure,
    power_figure,
    torque_figure,
)

_CYCLES = 5.0
"""Cycles of the gait that the diagram shows."""
_SHORTEST, _LONGEST = 4.0, 90.0
"""And how much time, at least and at most [s]."""


@dataclass(frozen=True, slots=True)
class Gait:
    """What the gait node told.

    Attributes:
        legs: (l) names.
        time: (n) [s].
        down: (n, l) feet that are on the ground by the gait.
        touching: (n, l) feet that feel something; None: feet feel nothing.
        margin: (n) of stability, from above [m].
        tilt: (n) until it tips over, in space [rad].
        going: (n) it was on its way.
        walking: (n) its feet carried it, on its way or not.
        names: (n) of the gait.
    """

    legs: tuple[str, ...]
    time: Array
    down: Flags
    touching: Flags | None
    margin: Array
    tilt: Array
    going: Flags
    walking: Flags
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Efforts:
    """What the motors did: time (k) [s], efforts and speeds (k, 3 l) [N m, rad/s], leg after leg."""

    time: Array
    effort: Array
    speed: Array


@dataclass(frozen=True, slots=True)
class Body:
    """Where the body truly was: time (k) [s], height (k) [m], roll and pitch (k) [rad]."""

    time: Array
    height: Array
    roll: Array
    pitch: Array


def walking_part(source: Source) -> Section | None:
    """How a robot on legs walked; None for others."""
    gait = read_gait(source.recording, f"{source.namespace}/gait/state")
    if gait is None:
        return None
    drawn = [gait_figure(gait, window(gait)), margin_figure(gait)]
    body = read_body(source.recording, source.topics.truth)
    if body is not None:
        drawn.append(body_figure(body))
    note = (
        "Feet: bars, on the ground by the gait while it walks; line below, by their contacts. Margin: least distance "
        "of the body's middle to the edge of the feet that are down, while they carry it, from above; "
        "below, the angle by which it would turn about such an edge, with feet at their heights, until it tips over."
    )
    motors = Motors.from_dict(source.said["motors"]) if "motors" in source.said else None
    efforts = read_efforts(source.recording, f"{source.namespace}/joint_states", motors) if motors else None
    if motors is None or efforts is None:
        return Section("How it walked", tuple(drawn), note=note)
    drawn += [torque_figure(efforts, motors), power_figure(efforts, motors)]
    note += (
        " Torques: band, from the least to the greatest of all legs; line, their root mean square. Energy: what motors "
        "take, work τ ω and heat of their copper, τ² ω₀ / τ₀ by the torque-speed line from stall torque τ₀ to no-load "
        "speed ω₀; nothing is given back, so it is more than work and heat together where legs drive motors; "
        "idle electronics are left out. Cost of transport: energy by weight and way."
    )
    return Section("How it walked", tuple(drawn), table=motor_table(efforts, motors), note=note)


# -- reading -----------------------------------------------------------------------------------------------------------
def read_gait(recording: Recording, topic: str) -> Gait | None:
    """What a gait node told on a topic; None if there is none.

    Raises:
        RecordingError: it is damaged.
    """
    if topic not in recording.topics:
        return None
    told = [(item.time_ns * 1e-9, item.message) for item in recording.messages([topic])]
    if not told:
        return None
    states = [state for _, state in told]
    felt = [np.asarray(state.in_contact, bool) for state in states]
    legs = tuple(states[0].legs)
    # feet tell for the first time after the first state
    touching = [one if len(one) else np.zeros(len(legs), bool) for one in felt]
    twists = [state.twist for state in states]
    walking = np.array([state.phase == "walking" for state in states])
    moving = np.array([bool(t.linear.x or t.linear.y or t.angular.z) for t in twists])
    return Gait(
        legs,
        np.array([time for time, _ in told]),
        np.array([state.in_stance for state in states], bool),
        np.array(touching) if any(len(one) for one in felt) else None,
        np.array([state.margin for state in states]),
        np.array([state.tilt for state in states]),
        walking & moving,
        walking,
        tuple(str(state.gait) for state in states),
    )


def read_efforts(recording: Recording, topic: str, motors: Motors) -> Efforts | None:
    """Of the motors' joints; None if they were not told. Raises RecordingError."""
    if topic not in recording.topics:
        return None
    times, effort, speed = [], [], []
    where: list[int] = []
    names: list[str] = []
    for item in recording.messages([topic]):
        message = item.message
        if list(message.name) != names:
            names = list(message.name)
            where = [names.index(joint) for joint in motors.joints if joint in names]
        if len(where) == len(motors.joints):
            times.append(item.time_ns * 1e-9)
            effort.append(np.asarray(message.effort)[where])
            speed.append(np.asarray(message.velocity)[where])
    return Efforts(np.array(times), np.array(effort), np.array(speed)) if len(times) > 1 else None


def read_body(recording: Recording, topic: str) -> Body | None:
    """Where the body truly was; None if that was not recorded. Raises RecordingError."""
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
    return Body(time, height, roll, pitch)


# -- reckoning ---------------------------------------------------------------------------------------------------------
def window(gait: Gait) -> tuple[float, float]:
    """From when to when [s] the diagram shows the gait: some cycles in the middle of its way."""
    begin, end = float(gait.time[0]), float(gait.time[-1])
    going = gait.time[gait.going]
    if not len(going):
        return begin, end
    rises = [gait.time[1:][gait.down[:-1, k] & ~gait.down[1:, k] & gait.going[1:]] for k in range(len(gait.legs))]
    cycles = np.concatenate([np.diff(some) for some in rises])
    cycle = float(np.median(cycles)) if len(cycles) else _LONGEST
    length = min(max(_CYCLES * cycle, _SHORTEST), _LONGEST, end - begin)
    middle = 0.5 * float(going[0] + going[-1])
    first = min(max(middle - 0.5 * length, begin), end - length)
    return first, first + length


def motor_table(efforts: Efforts, motors: Motors) -> Table:
    """What each motor gave and took over the whole recording."""
    time = float(efforts.time[-1] - efforts.time[0])
    power = motors.power(efforts.effort, efforts.speed)
    energy: Array = np.asarray(np.trapezoid(power, efforts.time, axis=0))
    work: Array = np.asarray(np.trapezoid(efforts.effort * efforts.speed, efforts.time, axis=0))
    heat: Array = np.asarray(np.trapezoid(motors.heat(efforts.effort), efforts.time, axis=0))
    rms: Array = np.sqrt((efforts.effort**2).mean(axis=0))
    peak, fastest = np.abs(efforts.effort).max(axis=0), np.abs(efforts.speed).max(axis=0)
    full = motors.saturated(efforts.effort, efforts.speed).mean(axis=0)
    rows = [
        (
            motors.legs[k // 3], joint, f"{rms[k]:.2f}", f"{peak[k]:.2f}", f"{100 * full[k]:.1f}",
            f"{fastest[k]:.2f}", f"{energy[k] / time:.2f}", f"{energy[k]:.1f}",
            f"{round(work[k], 1) + 0.0:.1f}", f"{heat[k]:.1f}",
        )
        for k, joint in enumerate(motors.joints)
    ]  # fmt: skip
    rows.append(
        (
            "all", "", f"{np.sqrt((rms**2).mean()):.2f}", f"{peak.max():.2f}", f"{100 * full.mean():.1f}",
            f"{fastest.max():.2f}", f"{energy.sum() / time:.2f}", f"{energy.sum():.1f}", f"{work.sum():.1f}",
            f"{heat.sum():.1f}",
        )
    )  # fmt: skip
    head = (
        "leg", "joint", "torque rms [N m]", "peak [N m]", "saturated [%]", "fastest [rad/s]", "power [W]",
        "energy [J]", "work [J]", "heat [J]",
    )  # fmt: skip
    return Table(head, tuple(rows), frozenset(head[2:]))
