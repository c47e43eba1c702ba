"""Figures of walking: gait diagram, stability margin, body, torques and power over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roboyard.scenarios.metrics.motors import Motors
from roboyard.scenarios.report.story import thinned
from roboyard.scenarios.report.style import BAD, COMMAND, GOOD, MUTED, ODOMETRY, TRUTH, new_figure, styled, svg, widen

if TYPE_CHECKING:
    from roboyard.scenarios.report.walking import Body, Efforts, Gait

_WIDTH = 8.6
_JOINTS = ("first", "second", "third")


def gait_figure(gait: Gait, window: tuple[float, float]) -> str:
    """Bars for each foot while it is on the ground: by the gait, and by its contacts."""
    begin, end = window
    part = (gait.time >= begin) & (gait.time <= end)
    time = gait.time[part]
    with styled():
        rows = len(gait.legs)
        figure, axes = new_figure(_WIDTH, 0.9 + 0.32 * rows)
        for row in range(rows):
            _bars(
                axes,
                time,
                (gait.down[:, row] & gait.walking)[part],
                row - 0.14,
                0.44,
                TRUTH,
                "by the gait" if not row else None,
            )
            if gait.touching is not None:
                label = "by its contacts" if not row else None
                _bars(axes, time, gait.touching[part, row], row + 0.24, 0.12, GOOD, label)
            axes.axhline(row + 0.45, color=MUTED, lw=0.3)
        axes.set_yticks(range(rows), gait.legs)
        axes.set_ylim(rows - 0.5, -0.5)
        axes.set_xlim(begin, end)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("simulated time [s]")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, handlelength=1.4)
        return svg(figure, "When each foot was on the ground, by the gait and by its contacts")


def margin_figure(gait: Gait) -> str:
    """The stability margin while the feet carried the robot [mm], and the angle until it tips over [deg]."""
    with styled():
        figure, (above, below) = new_figure(_WIDTH, 3.4, rows=2)
        part = thinned(len(gait.time))
        drawn = ((above, 1e3 * gait.margin, "mm", "margin"), (below, np.degrees(gait.tilt), "°", "until it tips"))
        for axes, told, unit, label in drawn:
            values = np.where(gait.walking & np.isfinite(told), told, np.nan)
            axes.plot(gait.time[part], values[part], color=TRUTH, lw=1.1)
            axes.axhline(0.0, color=BAD, lw=1.0)
            if np.isfinite(values).any():
                least = int(np.nanargmin(values))
                said = f"least: {values[least]:.0f} {unit}"
                axes.plot(gait.time[least], values[least], "v", ms=6, color=ODOMETRY, label=said)
                axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
            axes.set_ylim(bottom=min(0.0, float(np.nanmin(values, initial=0.0))) - 5.0)
            axes.set_ylabel(f"{label} [{unit}]")
        _time(below, gait.time)
        return svg(figure, "Stability margin over time")


def body_figure(body: Body) -> str:
    """Height [mm] and tilt [deg] of the body."""
    with styled():
        figure, (above, below) = new_figure(_WIDTH, 3.2, rows=2)
        part = thinned(len(body.time))
        above.plot(body.time[part], 1e3 * body.height[part], color=TRUTH, lw=1.2)
        above.set_ylabel("height [mm]")
        below.plot(body.time[part], np.degrees(body.roll[part]), color=TRUTH, lw=1.1, label="roll")
        below.plot(body.time[part], np.degrees(body.pitch[part]), color=ODOMETRY, lw=1.1, label="pitch")
        widen(below, -0.1, 0.1)
        below.set_ylabel("tilt [°]")
        below.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=2, borderaxespad=0.1)
        _time(below, body.time)
        return svg(figure, "True height and tilt of the body over time")


def torque_figure(efforts: Efforts, motors: Motors) -> str:
    """Torques of all legs' first, second and third joints [N m]."""
    with styled():
        figure, parts = new_figure(_WIDTH, 4.6, rows=3)
        time, every = _blocks(efforts.time)
        for joint, (axes, name) in enumerate(zip(parts, _JOINTS, strict=True)):
            some = efforts.effort[:, joint::3]
            low, high = every(some.min(axis=1), np.min), every(some.max(axis=1), np.max)
            rms = np.sqrt(every((some**2).mean(axis=1), np.mean))
            axes.fill_between(time, low, high, color=TRUTH, alpha=0.22, lw=0)
            axes.plot(time, rms, color=TRUTH, lw=1.1)
            stall = float(motors.stall[joint::3].min())
            if np.isfinite(stall) and max(-low.min(), high.max()) > 0.6 * stall:
                for side in (-stall, stall):
                    axes.axhline(side, color=BAD, lw=0.9, ls=(0, (4, 2)))
            widen(axes, -0.1, 0.1)
            axes.set_ylabel(f"{name} [N m]")
        _time(parts[-1], efforts.time)
        return svg(figure, "Torques of the legs' joints over time")


def power_figure(efforts: Efforts, motors: Motors) -> str:
    """What all motors took [W], of it heat, and their energy so far [J]."""
    with styled():
        figure, (above, below) = new_figure(_WIDTH, 3.4, rows=2)
        power = motors.power(efforts.effort, efforts.speed).sum(axis=1)
        heat = np.minimum(motors.heat(efforts.effort).sum(axis=1), power)
        time, every = _blocks(efforts.time)
        all_of_it, warm = every(power, np.mean), every(heat, np.mean)
        above.fill_between(time, 0.0, warm, color=ODOMETRY, alpha=0.45, lw=0, label="heat")
        above.fill_between(time, warm, all_of_it, color=COMMAND, alpha=0.45, lw=0, label="work")
        above.set_ylabel("power [W]")
        above.set_ylim(bottom=0.0)
        above.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, handlelength=1.2, borderaxespad=0.1)
        steps = np.diff(efforts.time)
        energy = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * steps)])
        part = thinned(len(energy))
        below.plot(efforts.time[part], energy[part], color=TRUTH, lw=1.4)
        below.set_ylabel("energy [J]")
        below.set_ylim(bottom=0.0)
        _time(below, efforts.time)
        return svg(figure, "Power and energy of the motors over time")


def _bars(
    axes: Any, time: NDArray[np.float64], on: NDArray[np.bool_], middle: float, height: float, colour: str,
    label: str | None,
) -> None:  # fmt: skip
    """Bars where ``on`` holds, each up to the next sample."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(int)))
    last = len(time) - 1
    spans = [
        (time[begin], time[min(end, last)] - time[begin])
        for begin, end in zip(edges[::2], edges[1::2], strict=True)
        if begin < last
    ]
    axes.broken_barh(spans, (middle - 0.5 * height, height), facecolors=colour, lw=0, label=label)


def _blocks(time: NDArray[np.float64], most: int = 700) -> tuple[NDArray[np.float64], Any]:
    """Times of blocks of samples, and what gathers values in them: long runs stay small on the page."""
    size = max(1, -(-len(time) // most))
    starts = np.arange(0, len(time), size)

    def gather(values: NDArray[np.float64], how: Any) -> NDArray[np.float64]:
        return np.array([how(values[start : start + size]) for start in starts])

    return time[starts], gather


def _time(axes: Any, time: NDArray[np.float64]) -> None:
    axes.set_xlim(0.0, max(float(time[-1]), 1e-3))
    axes.set_xlabel("simulated time [s]")
