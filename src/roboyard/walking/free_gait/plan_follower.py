"""Plan follower: foot set-points that execute a step plan on the real ground, and the body height from the feet."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.geometry import SE3, wrap_angle
from roboyard.geometry.arrays import Array, Flags
from roboyard.grids.height_map import HeightMap
from roboyard.walking.free_gait.step_plan import StepPlan, Swing, SwingGeometry, swing_position


def fit_height_to_stance(T: SE3, foot_positions: Array, stance_positions: Array, in_stance: NDArray[np.bool_]) -> SE3:
    """Return a body pose with the height at which feet (l, 3) in stance (l,) are at their stance positions (l, 3)
    [m]."""
    rotated_feet = foot_positions @ T.matrix()[:3, :3].T
    return SE3(T.quaternion, (T.x, T.y, float((stance_positions[in_stance, 2] - rotated_feet[in_stance, 2]).mean())))


def fit_height_to_ground(T: SE3, foot_positions: Array, height_map: HeightMap | None) -> tuple[SE3, Array]:
    """Return a body pose with the height at which its feet (l, 3) are on the ground on average, and their positions (l,
    3).

    Without a map the ground is at height 0.
    """
    rotated_feet = foot_positions @ T.matrix()[:3, :3].T
    ground_height = 0.0 if height_map is None else height_map.mean_height(rotated_feet + np.array([T.x, T.y, 0.0]))
    z = ground_height - float(rotated_feet[:, 2].mean())
    return SE3(T.quaternion, (T.x, T.y, z)), rotated_feet + np.array([T.x, T.y, z])


_CONTACT_FRACTION: Final = 0.6
"""Fraction of a swing from which on a contact counts as touch-down."""
_BLEND_FRACTION: Final = 0.2
"""Fraction of a swing in which its reference changes from the desired to the actual pose of the body."""
_MAX_PLAN_OFFSET: Final = 0.01
"""Distance of the body from its position in the plan beyond which the plan waits [m]."""
_MAP_HEIGHT_TOLERANCE: Final = 0.015
"""Height difference up to which a foot counts as standing at the height of the map [m]."""
_CONTACT_RADIUS: Final = 0.01
"""Distance from its foothold up to which a contact of a foot counts; farther away the foot may touch an edge [m]."""
_SLIP_RATE: Final = 2.0
"""Rate at which the position of a stance foot follows its measurement [1/s]."""


class PlanFollowerConfig(Config):
    """Parameters of the execution of a step plan."""

    speed_scale: float = parameter(
        0.4, low=0.01, high=1.0, runtime=True, doc="Share of the plan's speed, which is that of the joints."
    )
    ground_search_depth: float = parameter(
        0.05, unit="m", low=0.0, high=1.0, runtime=True,
        doc="Depth below its place in the plan to which a foot searches for ground.",
    )  # fmt: skip
    ground_search_speed: float = parameter(
        0.15, unit="m/s", low=1e-3, high=10.0, runtime=True, doc="Speed with which a foot searches for ground."
    )
    position_correction_speed: float = parameter(
        0.05, unit="m/s", low=1e-3, high=10.0, runtime=True,
        doc="Speed with which the body comes back to its place in the plan.",
    )  # fmt: skip
    tilt_correction_rate: float = parameter(
        1.0, unit="1/s", low=0.0, high=100.0, runtime=True, doc="Rate at which the body comes back from a tilt."
    )
    actuation_delay: float = parameter(
        0.015, unit="s", low=0.0, high=1.0, runtime=True, doc="Time by which joints follow their set-points."
    )


@dataclass(frozen=True)
class Touchdown:
    """A foot that has touched down, or found no ground.

    Attributes:
        leg: Index of the leg.
        planned: (3) planned position [m].
        actual: (3) position measured by the joints [m].
        kind: "planned", "early", "late", or "none".
    """

    leg: int
    planned: tuple[float, float, float]
    actual: tuple[float, float, float]
    kind: str


class PlanFollower:
    """Executes a step plan; pure, with explicit state.

    The body follows the plan: stance feet move against it from where they really are.  Swing feet move to their
    positions in the world, independent of the body.  A foot with early contact stays there; for a foot without contact
    the plan waits while the foot searches for lower ground.

    Args:
        plan: The plan.
        body: T_world_body, the current desired pose of the body: the plan is joined from there.
        feet: (l, 3) stance positions [m].
        config: Parameters of the execution.

    Attributes:
        time: Current time of the plan [s].
        time_limit: Time beyond which the plan is not executed until another one takes over [s].
        stance_positions: (l, 3) current or last stance positions [m].
        in_stance: (l) feet in stance.
        ungrounded_leg: Leg whose foot found no ground.
    """

    def __init__(self, plan: StepPlan, body_pose: SE3, feet: Array, config: PlanFollowerConfig | None = None) -> None:
        self.config = config or PlanFollowerConfig()
        self.time = 0.0
        self.stance_positions = np.array(feet, dtype=np.float64)
        n_legs = len(self.stance_positions)
        self.in_stance = np.ones(n_legs, np.bool_)
        self.ungrounded_leg: int | None = None
        self._swing_index = np.full(n_legs, -1, np.int64)
        self._lift_off_offset, self._search_depth = np.zeros((n_legs, 3)), np.zeros(n_legs)
        self._tilt_correction = np.zeros(2)
        self.time_limit = math.inf
        self._set_plan(plan)
        self._plan_offset = np.array([*(np.asarray(body_pose.translation) - plan.body_positions([0.0])[0]), 0.0])
        self._plan_offset[3] = wrap_angle(body_pose.yaw - plan.heading)

    def _set_plan(self, plan: StepPlan) -> None:
        self.plan = plan
        self._swings_by_leg = [
            [swing for swing in plan.swings if swing.leg == leg] for leg in range(len(plan.start_feet))
        ]
        self._lift_off_times = [[swing.lift_off_time for swing in swings] for swings in self._swings_by_leg]

    def switch_plan(self, plan: StepPlan) -> None:
        """Continue with a plan that is the same until now, and until the current swing feet touch down."""
        self._set_plan(plan)
        self.time_limit = math.inf

    @property
    def is_done(self) -> bool:
        """Whether the plan has ended with all feet in stance."""
        return self.time >= self.plan.duration and bool(self.in_stance.all()) and not self._is_far_from_plan()

    def _is_far_from_plan(self) -> bool:
        return bool(np.abs(self._plan_offset[:3]).max() > _MAX_PLAN_OFFSET)

    def desired_body_pose(self) -> SE3:
        """Return T_world_body of the current time."""
        x, y, z = (self.plan.body_positions([self.time])[0] + self._plan_offset[:3]).tolist()
        return SE3.from_xyz_rpy(
            (x, y, z), (*self._tilt_correction.tolist(), self.plan.heading + float(self._plan_offset[3]))
        )

    def advance(
        self, dt: float, T_world_body: SE3, measured_feet: Array, contacts: Flags | None, joint_lag: float = 0.0
    ) -> tuple[Array, list[Touchdown]]:
        """Return foot set-points (l, 3) in the body frame [m] after a control step, and the feet that have touched
        down.

        Args:
            dt: Duration of the step [s].
            T_world_body: Pose of the body.
            measured_feet: (l, 3) measured foot positions in the body frame [m].
            contacts: (l) feet in contact; None: contacts are not measured.
            joint_lag: Position error of the joints as a fraction of the allowed one: the plan waits for them.
        """
        R, p = T_world_body.matrix()[:3, :3], np.asarray(T_world_body.translation)
        foot_positions = measured_feet @ R.T + p
        is_waiting = self._is_far_from_plan() or bool((self._search_depth > 0.0).any())
        if not is_waiting:
            time_step = dt * self.config.speed_scale * min(max(2.0 - joint_lag, 0.0), 1.0)
            self.time = max(min(self.time + time_step, self.plan.duration, self.time_limit), self.time)
        max_correction = self.config.position_correction_speed * dt
        self._plan_offset[:3] -= np.clip(self._plan_offset[:3], -max_correction, max_correction)
        self._plan_offset[3] -= min(max(self._plan_offset[3], -4.0 * max_correction), 4.0 * max_correction)
        roll, pitch, _ = T_world_body.rpy
        self._tilt_correction = np.clip(
            self._tilt_correction - self.config.tilt_correction_rate * dt * np.array([roll, pitch]), -0.15, 0.15
        )
        target = self.desired_body_pose()
        W, w = target.matrix()[:3, :3], np.asarray(target.translation)
        touchdowns = []
        in_stance = self.in_stance
        self.stance_positions[in_stance, :2] += (
            min(_SLIP_RATE * dt, 1.0) * (foot_positions - self.stance_positions)[in_stance, :2]
        )
        for leg in np.flatnonzero(~self.in_stance).tolist():
            touchdown = self._check_touch_down(leg, *self._current_swing(leg), foot_positions[leg], contacts, dt)
            if touchdown is not None:
                touchdowns.append(touchdown)
        # no foot is lifted before all feet that should stand do
        if all(self._current_swing(leg)[1] < 1.0 for leg in np.flatnonzero(~self.in_stance).tolist()):
            for leg in np.flatnonzero(self.in_stance).tolist():
                self._start_swing(leg)
        # position of the body when the swing feet reach the set-points of this moment
        command_time = min(self.time + self.config.actuation_delay * self.config.speed_scale, self.time_limit)
        predicted_position = (
            p
            if is_waiting
            else p + self.plan.body_positions([command_time])[0] - self.plan.body_positions([self.time])[0]
        )
        foot_targets = (self.stance_positions - w) @ W
        for leg in np.flatnonzero(~self.in_stance).tolist():
            swing, u = self._current_swing(leg)
            foot_position = self._swing_foot_position(leg, swing, u)
            blend = min(u / _BLEND_FRACTION, 1.0)
            foot_targets[leg] = (1.0 - blend) * ((foot_position - w) @ W) + blend * (
                (foot_position - predicted_position) @ R
            )
        return foot_targets, touchdowns

    def _current_swing(self, leg: int) -> tuple[Swing, float]:
        """Return the swing of a swing foot, and the fraction of it that is over."""
        swing = self._swings_by_leg[leg][self._swing_index[leg]]
        return swing, (self.time - swing.lift_off_time) / (swing.touch_down_time - swing.lift_off_time)

    def _start_swing(self, leg: int) -> None:
        """Lift a foot that is due."""
        k = bisect_right(self._lift_off_times[leg], self.time) - 1
        if k <= self._swing_index[leg]:
            return
        self._swing_index[leg] = k
        swing = self._swings_by_leg[leg][k]
        self.in_stance[leg] = False
        self._lift_off_offset[leg] = self.stance_positions[leg] - np.array(swing.source)
        self._search_depth[leg] = 0.0

    def _check_touch_down(
        self, leg: int, swing: Swing, u: float, foot_position: Array, contacts: Flags | None, dt: float
    ) -> Touchdown | None:
        """Return the touchdown of a foot that has touched down."""
        is_near_height = abs(float(foot_position[2]) - swing.target[2]) < _MAP_HEIGHT_TOLERANCE
        is_at_foothold = is_near_height and math.dist(foot_position[:2], swing.target[:2]) < _CONTACT_RADIUS
        has_contact = contacts is not None and bool(contacts[leg]) and (is_at_foothold or u >= 1.0)
        if u < 1.0 and not (has_contact and u > _CONTACT_FRACTION):
            return None
        if contacts is not None and not has_contact:
            self._search_depth[leg] += self.config.ground_search_speed * dt
            if self._search_depth[leg] < self.config.ground_search_depth:
                return None
            self.ungrounded_leg = leg
        kind = (
            "none"
            if self.ungrounded_leg == leg
            else "early"
            if u < 1.0
            else "late"
            if self._search_depth[leg] > 0.02
            else "planned"
        )
        self._search_depth[leg] = 0.0
        self.in_stance[leg] = True
        foothold = np.array(swing.target)
        z = (
            float(foothold[2])
            if abs(float(foot_position[2] - foothold[2])) < _MAP_HEIGHT_TOLERANCE
            else float(foot_position[2])
        )
        self.stance_positions[leg] = (foot_position[0], foot_position[1], z)
        return Touchdown(
            leg, swing.target, (float(foot_position[0]), float(foot_position[1]), float(foot_position[2])), kind
        )

    def _swing_foot_position(self, leg: int, swing: Swing, u: float) -> Array:
        """Return the desired position of a swing foot in the world."""
        out = np.empty(3)
        first, last, now = self.plan.body_positions([swing.lift_off_time, swing.touch_down_time, self.time])
        geometry = SwingGeometry(
            np.array(swing.source), np.array(swing.target), swing.apex_height, swing.vertical_scale
        )
        swing_position(geometry, min(u, 1.0), now, first, last, out)
        out += max(1.0 - u / _CONTACT_FRACTION, 0.0) * self._lift_off_offset[leg]
        out[2] -= self._search_depth[leg]
        return out

    @property
    def planned_position(self) -> tuple[float, float]:
        """Position of the body in the plan [m]."""
        x, y, _ = self.plan.body_positions([self.time])[0].tolist()
        return x, y

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, without the plan."""
        state_names = (
            "time",
            "time_limit",
            "stance_positions",
            "in_stance",
            "ungrounded_leg",
            "_swing_index",
            "_lift_off_offset",
            "_search_depth",
            "_tilt_correction",
            "_plan_offset",
        )
        return {
            name: np.copy(value) if isinstance(value := getattr(self, name), np.ndarray) else value
            for name in state_names
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        for name, value in saved.items():
            setattr(self, name, np.array(value) if isinstance(value, np.ndarray) else value)

    def to_dict(self) -> dict[str, Any]:
        """Return the follower with its plan as plain data."""
        return {"plan": self.plan.to_dict(), "follower": self.save_state()}

    @classmethod
    def from_dict(cls, data: dict[str, Any], config: PlanFollowerConfig) -> PlanFollower:
        """Return the follower that `to_dict` converted."""
        plan = StepPlan.from_dict(data["plan"])
        follower = cls(plan, SE3.identity(), plan.start_feet, config)
        follower.load_state(data["follower"])
        return follower
