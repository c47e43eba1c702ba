"""Conformance tests of gaits, of this package and of others: `check_gait`.

They test what `GaitPattern` promises, on robots with four, six and eight legs that this module generates.
"""

from __future__ import annotations

from functools import cache
from typing import NoReturn

import numpy as np

from roboyard.description import load_model
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.walking.gait import Gait, GaitPattern, LegLayout, compute_gait_speed, plan_gait, sample_cycle
from roboyard.walking.gait_comparison import can_walk, cycle_stability_margin
from roboyard.walking.gait_generator import GaitGenerator, SteppingConfig
from roboyard.walking.legged_robot import LeggedRobot
from roboyard.walking.statics import MIN_SUPPORT_FEET

N_ROWS_TESTED = (2, 3, 4)
"""Numbers of pairs of legs of the robots that gaits are tested on."""
_DUTY_FACTOR_STEPS = 4
"""Duty factors that are tested, from the smallest one to `_MAX_DUTY_FACTOR`."""
_MAX_DUTY_FACTOR = 0.95
_ROUNDING = 1e-9
_STRIDE, _LIFT = 0.06, 0.03
_PERIOD = 0.002
_N_CONTROL_STEPS = 3000
_SPEED_TOLERANCE = 1.1
"""Joints may exceed their speed by this factor in single control steps: it is computed for samples of a cycle."""
_MIN_ACHIEVED_FRACTION = 0.8
"""Smallest fraction of the feasible speed that a body must reach on average."""


def check_gait(pattern: type[GaitPattern] | GaitPattern) -> None:
    """Test a gait against the contract of `GaitPattern`.

    It is planned for four, six and eight legs with several duty factors.  Checked are the phases and duty factors, that
    the same arguments give the same phases, the symmetry that the gait declares, and the stability margin over a cycle.
    With six and eight legs `GaitGenerator` walks forward with it; checked are the number of stance feet, that feet move
    without jumps, that no joint exceeds its speed, and that the body reaches its speed.  Four legs do not walk, because
    no foot of a symmetric stance may lift off: the body's center would be on the edge of the support polygon.

    A number of legs with which the gait leaves fewer than three feet in stance counts as not supported; a gait must
    support one of the numbers.

    Args:
        pattern: Class of the gait, or an instance.

    Raises:
        InputError: The gait breaks its contract; the message says how.
    """
    gait_pattern = pattern() if isinstance(pattern, type) else pattern
    check = _GaitCheck(gait_pattern)
    for n_rows in N_ROWS_TESTED:
        check.check_phases(LegLayout.with_rows(n_rows))
    supported = [n_rows for n_rows in N_ROWS_TESTED if can_walk(gait_pattern, LegLayout.with_rows(n_rows))]
    if not supported:
        check.report("leaves fewer than three feet in stance with 4, 6 and 8 legs")
    for n_rows in supported:
        check.check_stability(_example_robot(n_rows))
        if n_rows > 2:
            check.check_walk(_example_robot(n_rows))


class _GaitCheck:
    def __init__(self, pattern: GaitPattern) -> None:
        self._pattern, self._name = pattern, type(pattern).__name__

    def check_phases(self, layout: LegLayout) -> None:
        """Check what can be checked without a robot."""
        legs = f"{layout.n_legs} legs"
        smallest = self._pattern.min_duty_factor(layout)
        if not 0.0 < smallest < 1.0:
            self.report(f"has a smallest duty factor of {smallest:g} with {legs}, which is not between 0 and 1")
        for duty_factor in _tested_duty_factors(smallest):
            phases = self._pattern.phases(layout, duty_factor)
            if len(phases) != layout.n_legs:
                self.report(f"has {len(phases)} phases for {legs}")
            if not all(0.0 <= phase < 1.0 for phase in phases):
                self.report(f"has phases {phases} with {legs}, which are not all from 0 to less than 1")
            if self._pattern.phases(layout, duty_factor) != phases:
                self.report("returns other phases for the same arguments")
            if self._pattern.is_symmetric and not _is_symmetric(layout, phases):
                self.report(f"is declared symmetric, but with {legs} a pair is not half a cycle apart")

    def check_stability(self, robot: LeggedRobot) -> None:
        """Check the support of the body over a cycle of steady walking."""
        layout = LegLayout.from_robot(robot)
        for duty_factor in _tested_duty_factors(self._pattern.min_duty_factor(layout)):
            gait = plan_gait(self._name, self._pattern, layout, duty_factor)
            margin = cycle_stability_margin(robot, gait, _STRIDE)
            if margin < -_ROUNDING:
                self.report(
                    f"has a stability margin of {margin:.3f} m with {layout.n_legs} legs and a duty factor of "
                    f"{duty_factor:g}: the body tips over"
                )

    def check_walk(self, robot: LeggedRobot) -> None:
        """Walk forward, and check feet and joints."""
        layout = LegLayout.from_robot(robot)
        gait = plan_gait(self._name, self._pattern, layout)
        self._check_joint_speeds(robot, gait)
        config = SteppingConfig(stride=_STRIDE, lift=_LIFT, min_stability_margin=0.0)
        generator = GaitGenerator(robot, gait, config)
        twist, _ = generator.feasible_twist((1.0, 0.0, 0.0))
        feet, speeds = [generator.feet.copy()], []
        for _ in range(_N_CONTROL_STEPS):
            feet.append(generator.advance(_PERIOD, twist).copy())
            speeds.append(float(generator.achieved_twist[0]))
            if generator.in_stance.sum() < MIN_SUPPORT_FEET:
                self.report(f"leaves {int(generator.in_stance.sum())} of {layout.n_legs} feet in stance")
        rates = _joint_rates(robot, np.array(feet), _PERIOD)
        if (rates > _SPEED_TOLERANCE * robot.max_joint_speeds).any():
            self.report(f"lets a foot jump: a joint turns at {rates.max():.1f} rad/s")
        achieved = float(np.mean(speeds[_N_CONTROL_STEPS // 2 :])) / max(float(twist[0]), 1e-12)
        if achieved < _MIN_ACHIEVED_FRACTION:
            self.report(f"reaches only {achieved:.0%} of the speed that the joints allow with {layout.n_legs} legs")

    def _check_joint_speeds(self, robot: LeggedRobot, gait: Gait) -> None:
        """Check the joint speeds of steady walking at the largest speed."""
        speed = compute_gait_speed(robot, gait, (1.0, 0.0, 0.0), _STRIDE, _LIFT)
        stance, swing = sample_cycle(robot, gait, (1.0, 0.0, 0.0), speed.stride, _LIFT)
        for feet, fraction in ((stance, gait.duty_factor), (swing, 1.0 - gait.duty_factor)):
            period = fraction * speed.cycle / (len(feet) - 1)
            if (_joint_rates(robot, feet, period) > robot.max_joint_speeds * (1.0 + _ROUNDING)).any():
                self.report("exceeds the speed of a joint at the speed that is computed for it")

    def report(self, violation: str) -> NoReturn:
        """Raise InputError for a broken promise."""
        raise InputError(violation, location=self._name, valid="the contract of GaitPattern")


def _tested_duty_factors(smallest: float) -> list[float]:
    return [float(value) for value in np.linspace(smallest, max(smallest, _MAX_DUTY_FACTOR), _DUTY_FACTOR_STEPS)]


def _is_symmetric(layout: LegLayout, phases: tuple[float, ...]) -> bool:
    by_leg = {(row, side): phase for row, side, phase in zip(layout.rows, layout.sides, phases, strict=True)}
    return all(abs((by_leg[row, 1] - by_leg[row, 0]) % 1.0 - 0.5) < _ROUNDING for row in range(layout.n_rows))


def _joint_rates(robot: LeggedRobot, feet: Array, period: float) -> Array:
    """Return (n - 1, l, 3) joint speeds between feet (n, l, 3) that follow each other in a period [rad/s]."""
    rates: Array = np.abs(np.diff(robot.solve_ik(feet), axis=0)) / period
    return rates


_PAIR_DISTANCE, _HALF_WIDTH, _THIGH, _SHANK = 0.16, 0.08, 0.10, 0.20
"""Lengths of the generated robots [m]: between pairs of hips, from the middle to a hip, and of the segments."""
_STANCE_POSE = (0.0, -0.3, 1.6)
_REST_POSE = (0.0, -1.2, 1.2)


@cache
def _example_robot(n_rows: int) -> LeggedRobot:
    """Return a robot with so many pairs of equal legs, from the front to the rear, left and right in turn."""
    parts, feet = ['<robot name="example"><link name="body"/>'], {}
    for row in range(n_rows):
        x = _PAIR_DISTANCE * (0.5 * (n_rows - 1) - row)
        for side, name in ((1.0, f"l{row + 1}"), (-1.0, f"r{row + 1}")):
            joints = (
                ("body", f"{x} {side * _HALF_WIDTH} 0", f"0 0 {side * 0.5 * np.pi}", "0 0 1"),
                (f"{name}_1", "0.05 0 0", "0 0 0", "0 1 0"),
                (f"{name}_2", f"{_THIGH} 0 0", "0 0 0", "0 1 0"),
            )
            for k, (parent, xyz, rpy, axis) in enumerate(joints, 1):
                parts.append(
                    f'<link name="{name}_{k}"/><joint name="{name}_j{k}" type="revolute"><parent link="{parent}"/>'
                    f'<child link="{name}_{k}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
                    '<limit lower="-2.5" upper="2.5" effort="5" velocity="5"/></joint>'
                )
            parts.append(
                f'<link name="{name}_foot"/><joint name="{name}_tip" type="fixed"><parent link="{name}_3"/>'
                f'<child link="{name}_foot"/><origin xyz="{_SHANK} 0 0"/></joint>'
            )
            feet[name] = f"{name}_foot"
    return LeggedRobot.from_model(load_model("".join(parts) + "</robot>"), "body", feet, _STANCE_POSE, _REST_POSE)
