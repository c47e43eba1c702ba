"""How near a robot's arm came to people, whether it was too fast there, and how hard it touched them."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain_kernels import compute_all_frames
from roboyard.messages.convert import person_capsules_from_msg
from roboyard.safety.capsules import LinkCapsules
from roboyard.safety.contact_limits import TRANSIENT, limits_of, patch
from roboyard.safety.guiding import guide
from roboyard.safety.nearness import BodyCapsules, closeness, fill_closeness, fill_nearness, nearness
from roboyard.safety.separation import SeparationRules, stopping_time
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.metrics.least import LeastOverTime
from roboyard.scenarios.metrics.reaching import Arm
from roboyard.simulation.people.skeleton import segment

Lines = list[list[list[float]]]
NEAR = 0.5
"""Nearer than this is an approach, that ends `_APART` farther off [m]."""
_APART = 0.2
_TOUCH = 0.05
"""A force on somebody is the robot's if it is so near [m]."""
_LONGEST = 0.25
"""No judgement holds for longer [s]."""
_RELEASED = 0.2
"""Touches closer in time than this are one [s]."""
_LATE = 0.1
"""A robot that was told to move within this time is not told to stand [s]."""
_SWITCH_NS = 200_000_000
"""The switch of who guides the arm holds so long without another word [ns]."""
GROUPS: Mapping[str, str] = {
    "head": "head", "neck": "head", "chest": "trunk", "abdomen": "trunk", "pelvis": "trunk", "upper_arm": "arms",
    "forearm": "arms", "hand": "hands", "thigh": "legs", "shank": "legs", "foot": "legs",
}  # fmt: skip
"""Which of five each part of a body is of."""


@lru_cache(maxsize=64)
def _groups(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(GROUPS[segment(part)] for part in parts)


@dataclass(frozen=True, slots=True)
class Approach:
    """The nearest moment while somebody and the robot were near each other.

    Attributes:
        time: When [s].
        person: Who.
        body_part: Theirs.
        part: The robot's link.
        distance: Between them [m]; 0 or less where they touched.
        robot_speed: Of the robot's part [m/s].
        coming: How fast the person's part came towards it [m/s].
        protective: The distance that should have been kept [m].
        robot: (n) middle lines of the robot's parts then, two ends each, in the base of its arm [m].
        body: (b) middle lines of theirs, likewise.
        force: The largest force while they were near [N].
    """

    time: float
    person: str
    body_part: str
    part: str
    distance: float
    robot_speed: float
    coming: float
    protective: float
    robot: Lines
    body: Lines
    force: float = 0.0


@dataclass(slots=True)
class _Touch:
    """A touch of one part of somebody: since when, until when, whether the robot moved towards it, and too hard."""

    since_ns: int
    last_ns: int
    moved: bool
    exceeded: bool = False


class People(Collector):
    """Looks at the truth about people, as often as it is told, and at the truth about the arm at that moment.

    ``min_separation`` [m]: least distance between any part of a robot with an arm and anybody, 0 where they touch;
    ``min_separation_head``, ``_trunk``, ``_arms``, ``_hands``, ``_legs``: of parts of bodies. ``ssm_violation_s``
    [s]: time in which a part of the robot was faster than 20 mm/s and nearer than the protective separation distance
    to a part of somebody; left out are hand-overs, who guides the arm by hand, and an arm that is told to stand and
    pushed; ``handover_s`` [s]: these hand-overs. The distance is reckoned with what the guard says of itself, or the
    usual rules where there is none. ``protective_stops``: the guard's. ``max_force_n`` [N] and ``max_pressure``
    [N/m²]: largest by the robot on anybody, and ``person_touches``: how often it touched somebody.
    ``limit_share``: of touches by a robot that moved towards the person by itself the largest force or pressure, as a
    share of the limit of their region; ``limit_exceeded``: how many of them exceeded it. ``approaches`` counts how
    often somebody came near.

    Args:
        namespace: Of the robot, "" or "/name".
        arm: The truth about it; without, nothing is measured.
    """

    names = (
        "ssm_violation_s", "handover_s", "protective_stops", "max_force_n", "max_pressure", "limit_share",
        "limit_exceeded", "person_touches", "approaches",
        *(f"min_separation_{group}" for group in dict.fromkeys(GROUPS.values())),
    )  # fmt: skip

    def __init__(self, namespace: str, arm: Arm | None) -> None:
        self._namespace, self._arm = namespace, arm
        self._rules, self._deceleration = SeparationRules(), np.zeros(0)
        self._handover = self._handed_over = False
        self._guided_ns = -_SWITCH_NS - 1
        self._gaps: dict[str, float] = {}
        self._before: dict[str, tuple[int, Array]] = {}
        self._least: dict[str, float] = {}
        self._over_time = LeastOverTime()
        self._violation = self._handed = 0.0
        self._bad_until: dict[str, int] = {}
        self._counted_ns = 0
        self._stops: int | None = None
        self._touches: dict[tuple[str, str], _Touch] = {}
        self._force = self._pressure = self._share = 0.0
        self._touched = self._exceeded = 0
        self._nearing: dict[str, NDArray[np.bool_]] = {}
        self._told_ns: int | None = None
        self._near: dict[str, Approach] = {}
        self.approaches: list[Approach] = []

    def save_state(self) -> dict[str, Any]:
        """All but the arm, as plain data."""
        own = {key: value for key, value in vars(self).items() if key != "_arm"}
        rows = {
            "_rules": asdict(self._rules),
            "_touches": [(key, asdict(touch)) for key, touch in self._touches.items()],
            "_near": {name: asdict(one) for name, one in self._near.items()},
            "approaches": [asdict(one) for one in self.approaches],
            "_over_time": asdict(self._over_time),
        }
        return copy.deepcopy(own | rows)

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        own = copy.deepcopy(saved)
        self._rules = SeparationRules(**own.pop("_rules"))
        self._touches = {tuple(key): _Touch(**touch) for key, touch in own.pop("_touches")}
        self._near = {name: Approach(**one) for name, one in own.pop("_near").items()}
        self.approaches = [Approach(**one) for one in own.pop("approaches")]
        self._over_time = LeastOverTime(**own.pop("_over_time"))
        vars(self).update(own)

    def handlers(self) -> Mapping[str, Handler]:
        """The guard, and the flag of hand-overs; people come by `on_body`."""
        return {
            f"{self._namespace}/guard/state": self._on_guard,
            f"{self._namespace}/handover": self._on_handover,
            f"{self._namespace}/arm/controller_state": self._on_controller,
            f"{self._namespace}/servo/wanted": self._on_wanted,
            f"{self._namespace}/guiding/enable": self._on_guiding,
        }

    def meet_person(self, name: str) -> Mapping[str, Handler]:
        """Somebody's body, as it truly is."""
        if self._arm is not None and self._arm.joints():
            expect_kernels(fill_closeness, fill_nearness, compute_all_frames)
        return {f"/truth/{name}/body": self.on_body}

    def _on_controller(self, message: Any, time_ns: int) -> None:
        if any(message.reference.velocities):
            self._told_ns = time_ns

    def _on_wanted(self, message: Any, time_ns: int) -> None:
        if any(message.velocities):
            self._told_ns = time_ns

    def _on_guiding(self, message: Any, time_ns: int) -> None:
        self._guided_ns = time_ns if message.data else -_SWITCH_NS - 1

    def _on_handover(self, message: Any, time_ns: int) -> None:
        self._handover = bool(message.data)

    def _on_guard(self, message: Any, time_ns: int) -> None:
        self._stops = int(message.stop_count)
        # the truth sees every part, so that nothing intrudes unseen
        self._rules = SeparationRules(reaction_time=message.reaction_time, person_speed=message.person_speed)
        self._deceleration = np.array(message.deceleration, dtype=np.float64)

    # -- people --------------------------------------------------------------------------------------------------------
    def on_body(self, message: Any, time_ns: int) -> None:
        """Judge one person, a roboyard_msgs/PersonBody, as they and the robot are now."""
        motion = None if self._arm is None else self._arm.motion()
        if motion is None:
            return
        chain, capsules, T_base_world, q, velocity = motion
        parts, ends, radii = person_capsules_from_msg(message)
        R, t = T_base_world.rotation_matrix(), np.asarray(T_base_world.xyz)
        line, name = ends @ R.T + t, str(message.name)
        since_ns, earlier = self._before.get(name, (time_ns, line))
        seconds = (time_ns - since_ns) * 1e-9
        moving = (line - earlier) / seconds if seconds > 0.0 else np.zeros_like(line)
        self._before[name] = (time_ns, line)
        body = BodyCapsules((name,) * len(parts), parts, line, radii, moving)
        if self._rules.person_speed == 0.0:
            body = body.striding()
        now = nearness(chain, capsules, q[None], velocity[None], body)
        if len(self._deceleration) != len(q):
            self._deceleration = chain.max_acceleration
        found = closeness(now, self._rules, float(stopping_time(velocity, self._deceleration)))
        gap, coming, speed, protective = now.gap[0], now.coming[0], now.speed[0], found.protective
        self._measure_gaps(parts, found.least, time_ns)
        nearing = found.nearing
        before = self._nearing.get(name, nearing)
        self._nearing[name] = nearing
        own = nearing | before if before.shape == nearing.shape else nearing
        force = self._press(message, time_ns, gap, own & (not self._told_to_stand(time_ns)), capsules)
        i, j = found.nearest
        self._gaps[name] = float(gap[i, j])
        guides = time_ns - self._guided_ns <= _SWITCH_NS and guide(self._gaps) == name
        self._count(name, time_ns, found.intruding and not guides and not self._pushed(time_ns))
        nearest = self._near.get(name)
        if float(gap[i, j]) < (NEAR if nearest is None else nearest.distance):
            held = chain.frames(q)[capsules.frame]
            arm = np.einsum("nij,nkj->nki", held[:, :3, :3], capsules.ends) + held[:, None, :3, 3]
            self._near[name] = Approach(
                time_ns * 1e-9, name, parts[j], capsules.links[i], float(gap[i, j]), float(speed[i]),
                float(coming[i, j]), float(protective[i, j]), arm.round(3).tolist(), line.round(3).tolist(),
                max(force, 0.0 if nearest is None else nearest.force),
            )  # fmt: skip
        elif nearest is not None and float(gap[i, j]) > NEAR + _APART:
            self.approaches.append(self._near.pop(name))
        elif nearest is not None and force > nearest.force:
            self._near[name] = replace(nearest, force=force)

    def _pushed(self, time_ns: int) -> bool:
        """Whether somebody touches the arm while it is told to stand."""
        touched = any(time_ns - touch.last_ns <= _RELEASED * 1e9 for touch in self._touches.values())
        return touched and self._told_to_stand(time_ns)

    def _told_to_stand(self, time_ns: int) -> bool:
        return self._told_ns is not None and time_ns - self._told_ns > _LATE * 1e9

    def _measure_gaps(self, parts: tuple[str, ...], gaps: Array, time_ns: int) -> None:
        now: dict[str, float] = {}
        for group, least in zip(_groups(parts), gaps.tolist(), strict=True):
            now[group] = min(now.get(group, math.inf), max(least, 0.0))
        self._over_time.take(time_ns * 1e-9, now)
        for group, least in now.items():
            self._least[group] = min(self._least.get(group, math.inf), least)

    def _count(self, person: str, time_ns: int, bad: bool) -> None:
        """Add the time since the last judgement of anybody, as far as somebody was too near to a robot that moved."""
        since_ns = max(self._counted_ns, time_ns - round(_LONGEST * 1e9))
        if time_ns > since_ns:
            held = max(self._bad_until.values(), default=0)
            if self._handed_over:
                self._handed += (time_ns - since_ns) * 1e-9
            else:
                self._violation += max(min(held, time_ns) - since_ns, 0) * 1e-9
        self._counted_ns = max(self._counted_ns, time_ns)
        self._handed_over = self._handover  # from now until the next judgement, as the robot's motion is that of now
        self._bad_until[person] = time_ns + round(_LONGEST * 1e9) if bad else 0

    def _press(self, message: Any, time_ns: int, gap: Array, own: NDArray[np.bool_], capsules: LinkCapsules) -> float:
        """The largest force of the robot on somebody since the last message, counted and judged [N].

        Args:
            message: Their body.
            time_ns: When [ns].
            gap: (n, b) between the parts [m].
            own: (n, b) whether the robot's part moved towards theirs by itself.
            capsules: The robot's parts.
        """
        largest = 0.0
        if not any(message.contact_regions):
            return largest
        for j, (force, region) in enumerate(zip(message.peak_forces, message.contact_regions, strict=True)):
            size = math.sqrt(force.x**2 + force.y**2 + force.z**2)
            i = int(np.argmin(gap[:, j]))
            if size <= 0.0 or not region or gap[i, j] > _TOUCH:
                continue
            moved = bool(own[i, j])
            key = (str(message.name), str(message.parts[j]))
            touch = self._touches.get(key)
            if touch is None or time_ns - touch.last_ns > _RELEASED * 1e9:
                touch = self._touches[key] = _Touch(time_ns, time_ns, moved)
                self._touched += 1
            touch.last_ns, touch.moved = time_ns, touch.moved or moved
            limits, pressure = limits_of(region), size / float(patch(capsules.radii[i]))
            most = limits.impact if (time_ns - touch.since_ns) * 1e-9 <= TRANSIENT else limits.clamping
            share = max(size / most, pressure / limits.pressure)
            if touch.moved:
                self._share = max(self._share, share)
            if touch.moved and not touch.exceeded and share > 1.0:
                touch.exceeded = True
                self._exceeded += 1
            self._force, self._pressure = max(self._force, size), max(self._pressure, pressure)
            largest = max(largest, size)
        return largest

    def finish(self, time_ns: int) -> None:
        """Who is near at the end has come near too."""
        self.approaches += self._near.values()
        self._near = {}

    def story(self) -> dict[str, Any] | None:
        """What the report shows beside figures, as plain data; None where nobody was seen.

        ``separation``: least distance from each group of parts of bodies in spans of ``span`` [s].
        """
        if not self._least:
            return None
        return {"span": self._over_time.span, "separation": self._over_time.told()}

    # -- what it comes to ----------------------------------------------------------------------------------------------
    def result(self) -> dict[str, Value]:
        """None where nobody was seen; ``min_separation`` is left to others then."""
        parts: dict[str, Value] = {
            f"min_separation_{group}": self._least.get(group) for group in dict.fromkeys(GROUPS.values())
        }
        if not self._least:
            return {**dict.fromkeys(self.names), **parts, "protective_stops": self._stops}
        return {
            "min_separation": min(self._least.values()),
            "ssm_violation_s": self._violation,
            "handover_s": self._handed,
            "protective_stops": self._stops or 0,
            "max_force_n": self._force,
            "max_pressure": self._pressure,
            "limit_share": self._share,
            "limit_exceeded": self._exceeded,
            "person_touches": self._touched,
            "approaches": len(self.approaches) + len(self._near),
            **parts,
        }
