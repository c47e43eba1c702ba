"""Where the rover believes to be, against the truth: driving, from nothing, carried off, standing; its Kalman filter.

Drives over many seeds run without physics: the rover is put along a way that keeps clear of things, its lidar looks at
the true world from there (exact shapes, not the map), with its own noise, and `FaultyEncoders` tells what wheels would.
The whole simulation runs as well, with fewer seeds. Maps are true floor plans of 5 cm, the usual resolution, at the
lidar's height; what can move is not in them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2

import roboyard
from roboyard.control import DifferentialDrive
from roboyard.description import load_model, load_world
from roboyard.geometry import SE2, SE3, wrap_angle
from roboyard.grids import GridGeometry, LikelihoodField, OccupancyGrid, distance_transform
from roboyard.localization import FaultyEncoders, OdometryErrorModel, WheelOdometry
from roboyard.localization.amcl import (
    Amcl,
    AmclConfig,
    FreeSpace,
    LaserModel,
    make_laser_model,
    prepare_scan,
    search_poses,
)
from roboyard.localization.kalman import STATE_NAMES, FusionConfig, Measurement, SensorFusion, propagate_state
from roboyard.mapping import LaserScan
from roboyard.messages.convert import pose_to_se2
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.batch.statistics import wilson_interval
from roboyard.scenarios.ground_truth import ground_truth_map
from roboyard.scenarios.resolve import resolve_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.sensors.lidar import Lidar
from roboyard.simulation import Simulation
from roboyard.simulation.ground_truth_maps import make_floor_plan

HERE = Path(roboyard.__file__).parent
WORLDS = ("corridor", "arena")
DRIVE = DifferentialDrive(wheel_radius=0.1, track=0.35, slip_factor=1.749)
ERRORS = OdometryErrorModel(
    radius_scale=1.01, diameter_ratio=1.005, track_scale=1.03, encoder_resolution=4096, slip_std=0.01
)
"""Wheels one percent too large, half a percent unequal, turning three percent off."""
MOUNT = SE2(0.1, 0.0, 0.0)
STEP_NS = 100_000_000
NEAR, TURNED = 0.25, 0.15
"""So near [m], [rad] it counts as found."""


class Place:
    """A world with the rover's lidar in it."""

    def __init__(self, world: str, resolution: float = 0.05) -> None:
        self.simulation = Simulation(load_world(HERE / "worlds" / f"{world}.sdf"))
        rover = load_model(HERE / "robots" / "rover" / "rover.urdf.xacro")
        self.simulation.add(rover, "rover", SE3.identity())
        self.lidar = next(s for s in self.simulation.sensors("rover") if isinstance(s, Lidar))
        self.grid = ground_truth_map(
            self.simulation, height=0.24375, resolution=resolution, interior_points=[(0.0, 0.0)]
        )
        plans = [
            make_floor_plan(self.simulation.world.model, height=h, include_moving=True, excluded_models=("rover",))
            for h in (0.1, 0.24)
        ]
        low = np.min([plan.origin for plan in plans], axis=0)
        high = np.max([(plan.extent[1], plan.extent[3]) for plan in plans], axis=0)
        bounds = (low[0], high[0], low[1], high[1])
        solid = np.logical_or(
            *(
                make_floor_plan(
                    self.simulation.world.model,
                    height=h,
                    include_moving=True,
                    excluded_models=("rover",),
                    bounds=bounds,
                ).occupied
                for h in (0.1, 0.24)
            )
        )
        self.frame = GridGeometry(0.05, solid.shape, SE2(low[0], low[1], 0.0))
        self.clear = distance_transform(solid, 0.05)
        from scipy.ndimage import label

        rooms, _ = label(self.clear > 0.35)
        self.rooms = np.argwhere(rooms == rooms[tuple(self.frame.cells_of_points([0.0, 0.0]))])

    def pose(self, rng: np.random.Generator) -> SE2:
        """Somewhere the rover can be driven to from the origin, heading anywhere."""
        return SE2(*self.frame.cell_centers(self.rooms[rng.integers(len(self.rooms))]), rng.uniform(-math.pi, math.pi))

    def ranges(self, pose: SE2) -> np.ndarray:
        """What the lidar sees, without noise."""
        self.simulation.world.set_planar_pose("rover", pose)
        return self.lidar.cast().copy()

    def scan(self, pose: SE2, odometry: SE2, time_ns: int, rng: np.random.Generator) -> LaserScan:
        """What it says."""
        spec, true = self.lidar.spec, self.ranges(pose)
        noisy = np.clip(true + spec.noise.stddev * rng.standard_normal(len(true)), spec.range_min, spec.range_max)
        told = np.where(np.isfinite(true), np.round(noisy, 2), np.inf).astype(np.float32)
        increment = (spec.angle_max - spec.angle_min) / (spec.samples - 1)
        limits = (spec.angle_min, increment, spec.range_min, spec.range_max)
        return LaserScan(time_ns, told, *limits, T_base_laser=MOUNT, odometry=odometry)

    def way(self, start: SE2, seconds: float, rng: np.random.Generator, speed: float = 0.5) -> list[SE2]:
        """A drive at 10 Hz along arcs that keep clear of everything; where there is none it turns on the spot."""
        poses, turn, spin, bias = [start], 0.0, 0, 0.0
        turns, ahead = np.linspace(-1.2, 1.2, 13), np.arange(0.2, 2.6, 0.2)
        for k in range(int(seconds * 10)):
            bias = rng.uniform(-0.4, 0.4) if k % 30 == 0 else bias
            pose = poses[-1]
            heading = pose.theta + np.outer(turns, ahead)
            x = pose.x + np.cumsum(np.cos(heading) * speed * 0.2, axis=1)
            y = pose.y + np.cumsum(np.sin(heading) * speed * 0.2, axis=1)
            room = self.clearance(np.stack([x, y], axis=-1)).min(axis=1)
            open_ = room > 0.32
            if spin == 0 and open_.any():
                score = 2 * np.minimum(room, 0.6) - 0.5 * np.abs(turns - turn) - 0.5 * np.abs(turns - bias)
                turn, forward = float(turns[np.argmax(np.where(open_, score, -9.0))]), speed
            else:
                if spin == 0:
                    spin, turn = int(rng.integers(8, 25)), 0.9 * rng.choice([-1.0, 1.0])
                spin, forward = spin - 1, 0.0
            poses.append(pose @ SE2.exp([forward / 10, 0.0, turn / 10]))
        return poses

    def clearance(self, points: np.ndarray) -> np.ndarray:
        """From things [m]; 0 outside."""
        cells = self.frame.cells_of_points(points)
        inside = self.frame.contains(cells)
        cells = np.where(inside[..., None], cells, 0)
        return np.where(inside, self.clear[cells[..., 0], cells[..., 1]], 0.0)

    def ambiguous(self, pose: SE2, model: LaserModel, space: FreeSpace) -> bool:
        """Whether the truth looks the same from over half a metre off: 95 % of the beams within 10 cm."""
        true = self.ranges(pose)
        scan = self.scan(pose, SE2.identity(), 0, np.random.default_rng(0))
        found = search_poses(model, space, prepare_scan(scan, model.config), np.random.default_rng(0))
        for other in (SE2(*row) for row in found.poses[:20]):
            apart = other.distance(pose) > 0.5 or abs(wrap_angle(other.theta - pose.theta)) > 0.3
            if apart and np.mean(np.abs(self.ranges(other) - true) < 0.1) > 0.95:
                return True
        return False


def told(place: Place, poses: list[SE2], rng: np.random.Generator, jump: int = -1) -> Iterator[tuple[SE2, LaserScan]]:
    """True poses and what the rover hears; before pose ``jump`` it is carried."""
    wheels, odometry, before = FaultyEncoders(DRIVE, ERRORS, rng), WheelOdometry(DRIVE), poses[0]
    for k, pose in enumerate(poses):
        if k not in (0, jump):
            way, _, turn = (before.inverse() @ pose).log().tolist()
            wheels.advance(way, turn)
        before = pose
        reading = wheels.read(k * STEP_NS)
        if reading is not None:
            odometry.update(k * STEP_NS, *reading)
        yield pose, place.scan(pose, odometry.T_odom_base, k * STEP_NS, rng)


@dataclass
class Drive:
    """Errors [m] at every scan (infinite before the first estimate), and since which scan it was found; None: not."""

    errors: np.ndarray
    found: int | None


def drive(
    place: Place, poses: list[SE2], rng: np.random.Generator, *, anywhere: bool = False, jump: int = -1,
    config: AmclConfig | None = None,
) -> Drive:  # fmt: skip
    localisation = Amcl(config, np.random.default_rng(int(rng.integers(2**32))))
    localisation.set_map(place.grid)
    if anywhere:
        localisation.start_global_localization()
    else:
        localisation.set_initial_pose(poses[0], np.diag([0.05, 0.05, 0.01]))
    errors, found, correction = [], None, None
    for k, (pose, scan) in enumerate(told(place, poses, rng, jump)):
        estimate = localisation.process(scan)
        correction = estimate.T_map_odom if estimate is not None else correction
        if correction is None:
            errors.append(math.inf)
            continue
        now = correction @ scan.odometry
        errors.append(now.distance(pose))
        right = errors[-1] < NEAR and abs(wrap_angle(now.theta - pose.theta)) < TURNED
        found = (k if found is None else found) if right else None
    return Drive(np.array(errors), found)


# -- figures -----------------------------------------------------------------------------------------------------------
def kernel(nightly: bool) -> list[dict[str, Any]]:
    """The weighing of particles."""
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((220, 620)) < 0.01, 100, 0).astype(np.int8)
    field = LikelihoodField.from_grid(OccupancyGrid(cells, GridGeometry(0.05, cells.shape)))
    table = field.score_table(lambda d: np.log(0.5 * np.exp(-(d**2) / 0.08) + 0.005))
    poses = np.column_stack([rng.normal(15, 0.2, 1000), rng.normal(5, 0.2, 1000), rng.normal(0, 0.1, 1000)])
    points = rng.uniform(-4, 8, (60, 2))
    least = math.inf
    for _ in range(2000 if nightly else 500):
        start = time.perf_counter()
        field.score_poses(table, poses, points)
        least = min(least, time.perf_counter() - start)
    return [{"name": "1000 particles × 60 beams", "value": round(1e3 * least, 4), "unit": "ms", "target": "<= 0.1"}]


def driving(nightly: bool) -> dict[str, Any]:
    """From a known start, a minute each."""
    figures, details, seeds = [], [], 30 if nightly else 6
    for world in WORLDS:
        place, medians, everything = Place(world), [], []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            run = drive(place, place.way(place.pose(rng), 60.0, rng), rng)
            medians.append(float(np.median(run.errors)))
            everything.append(run.errors)
        pooled = np.concatenate(everything)
        figures.append(
            {
                "name": f"driving in the {world}, median position error over {seeds} drives",
                "value": round(100 * float(np.median(pooled)), 2), "unit": "cm", "target": "<= 3",
                "peer": "amcl on a comparable drive", "peer_value": 8.7,
            }
        )  # fmt: skip
        details.append(
            f"{world}: worst drive's median {100 * max(medians):.1f} cm, 95 % of all below "
            f"{100 * np.quantile(pooled, 0.95):.1f} cm, largest {100 * pooled.max():.1f} cm"
        )
    return {"figures": figures, "details": details}


def _rate(name: str, found: list[bool], target: float, details: list[str], what: str) -> dict[str, Any]:
    rate = wilson_interval(sum(found), len(found))
    details.append(f"{what}: {sum(found)} of {len(found)}, 95 % (Wilson): {rate.low:.1%} to {rate.high:.1%}")
    return {"name": name, "value": round(100.0 * sum(found) / len(found), 2), "unit": "%", "target": f">= {target:g}"}


def from_nothing(nightly: bool) -> dict[str, Any]:
    """The start may be anywhere; 20 s of driving."""
    figures, details = [], []
    for world in WORLDS:
        place, found, times = Place(world), [], []
        for seed in range(100 if nightly else 20):
            rng = np.random.default_rng(1000 + seed)
            run = drive(place, place.way(place.pose(rng), 20.0, rng), rng, anywhere=True)
            found.append(run.found is not None)
            times.append(math.inf if run.found is None else run.found / 10)
        name = f"from nothing in the {world}, found within 20 s"
        figures.append(_rate(name, found, 95, details, f"{world}, from nothing"))
        details.append(f"{world}: median time {np.median(times):.1f} s, 95 % within {np.quantile(times, 0.95):.1f} s")
    return {"figures": figures, "details": details}


def carried_off(nightly: bool) -> dict[str, Any]:
    """Ten seconds of driving, then carried to a place that the truth can tell from all others, then half a minute."""
    figures, details = [], []
    for world in WORLDS:
        place, found, times, alike, tried = Place(world), [], [], 0, 0
        model, space = make_laser_model(place.grid, AmclConfig()), FreeSpace(place.grid)
        for seed in range(100 if nightly else 20):
            rng = np.random.default_rng(2000 + seed)
            before = place.way(place.pose(rng), 10.0, rng)
            while True:
                to, tried = place.pose(rng), tried + 1
                if not place.ambiguous(to, model, space):
                    break
                alike += 1
            run = drive(place, before + place.way(to, 30.0, rng), rng, jump=len(before))
            found.append(run.found is not None)
            times.append(math.inf if run.found is None else (run.found - len(before)) / 10)
        figures.append(_rate(f"carried off in the {world}, found", found, 99, details, f"{world}, carried off"))
        details.append(
            f"{world}: {alike} of {tried} random places look like another one to the truth and were not taken; "
            f"median time {np.median(times):.1f} s, 95 % within {np.quantile(times, 0.95):.1f} s"
        )
    return {"figures": figures, "details": details}


def standing(nightly: bool) -> dict[str, Any]:
    """An hour on the spot, the next scan weighed every second (which nobody would ask for)."""
    drifts, details = [], []
    for world in WORLDS:
        place, rng = Place(world), np.random.default_rng(5)
        pose = place.pose(rng)
        localisation = Amcl(rng=np.random.default_rng(5))
        localisation.set_map(place.grid)
        localisation.set_initial_pose(pose, np.diag([0.01, 0.01, 0.01]))
        where = []
        for k in range(3600 if nightly else 900):
            localisation.request_update()
            estimate = localisation.process(place.scan(pose, SE2.identity(), (k + 1) * STEP_NS, rng))
            where.append((estimate.T_map_base.x, estimate.T_map_base.y))
        settled = np.array(where[10:])
        drifts.append(100 * float(np.linalg.norm(settled - settled[0], axis=1).max()))
        details.append(f"{world}: {len(where)} updates on the spot strayed {drifts[-1]:.2f} cm at most")
    seconds = "hour" if nightly else "quarter of an hour"
    return {
        "figures": [{"name": f"standing still for an {seconds}".replace("an quarter", "a quarter"),
                     "value": round(max(drifts), 2), "unit": "cm", "target": "< 2"}],
        "details": details,
    }  # fmt: skip


def simulated(nightly: bool) -> dict[str, Any]:
    """Whole simulated runs, with physics and all nodes."""
    figures, details = [], []
    arena = ["criteria={}", "variants.smoke={}"]
    for world in WORLDS:
        medians, largest = [], []
        for seed in range(5 if nightly else 1):
            more = {"world": "arena", "overrides": [*arena, "robots.rover.pose=[0, 0, 0]"]} if world == "arena" else {}
            outcome = run_scenario(
                load_scenario("corridor-localization", **more).with_seed(seed),
                RunOptions(write_files=False, serve=False),
            )
            medians.append(100 * outcome.metrics["localization_median_error"])
            largest.append(100 * outcome.metrics["localization_max_error"])
        figures.append({"name": f"simulated run in the {world}, median position error, worst of {len(medians)}",
                        "value": round(max(medians), 2), "unit": "cm", "target": "<= 3"})  # fmt: skip
        details.append(f"{world}: medians {', '.join(f'{m:.2f}' for m in medians)} cm, largest {max(largest):.1f} cm")
    return {"figures": figures, "details": details}


def fusion(nightly: bool) -> dict[str, Any]:
    """The rover's Kalman filter of wheels and gyroscope on the arena's course, beside wheel odometry alone."""
    rows, details = [], []
    nodes = "robots.rover.nodes=[joint_states, robot_state, arbiter, drive, odometry, ekf]"
    for seed in range(10 if nightly else 3):
        spec, errors, last = load_scenario("rover-drive", overrides=[nodes]).with_seed(seed), [], {}
        with build_run(resolve_scenario(spec), record=False) as run:
            rover = run.robots["rover"]

            def see(topic: Any, message: Any, node: str, time_ns: int, rover=rover, errors=errors, last=last) -> None:
                if topic.name == "/odom":
                    last["odom"] = pose_to_se2(message.pose.pose).theta
                elif topic.name == "/odometry/filtered" and "odom" in last:
                    truth = rover.truth.pose.yaw
                    fused = pose_to_se2(message.pose.pose).theta
                    errors.append((wrap_angle(fused - truth), wrap_angle(last["odom"] - truth)))

            run.bus.add_message_observer(see)
            run.run_for(spec.config.duration)
        fused, wheels = np.sqrt(np.mean(np.square(errors), axis=0))
        rows.append((fused, wheels))
        details.append(
            f"seed {seed}: heading rms {math.degrees(fused):.2f}° fused, {math.degrees(wheels):.2f}° by wheels"
        )
    fused, wheels = np.sqrt(np.mean(np.square(rows), axis=0))
    return {
        "figures": [
            {
                "name": f"rover-drive, heading error over {len(rows)} seeds", "value": round(math.degrees(fused), 3),
                "unit": "° rms", "peer": "wheel odometry", "peer_value": round(math.degrees(wheels), 3),
                "ratio": round(wheels / fused, 2), "target": "ratio >= 2",
            }
        ],
        "details": details,
    }  # fmt: skip


def consistency(nightly: bool) -> list[dict[str, Any]]:
    """NEES of pose and velocity in the plane over 50 runs of a base that moves as the filter's model says."""
    return [nees(kind, 1000 if nightly else 50) for kind in ("ekf", "ukf")]


def nees(kind: str, runs: int) -> dict[str, Any]:
    """Mean normalised estimation error squared, and the bounds within which a consistent filter's lies."""
    noise = np.zeros(15)
    noise[[6, 11]] = 0.05, 0.08
    where, found = np.array([0, 1, 5, 6, 11]), []
    spreads = {"vx": 0.05, "vyaw": 0.02, "yaw": 0.05}
    for run in range(runs):
        rng, truth = np.random.default_rng(run), np.zeros(15)
        filter_ = SensorFusion(FusionConfig(two_d_mode=True, process_noise_covariance=tuple(noise.tolist())), kind)
        for k in range(61):
            if k:
                truth = propagate_state(truth, 0.05) + rng.standard_normal(15) * np.sqrt(noise * 0.05)
            names = (
                ("x", "y", "yaw", "vx", "vyaw") if k == 0 else ("vx", "vyaw", "yaw") if k % 10 == 0 else ("vx", "vyaw")
            )
            for name in names:
                spread = 1e-4 if k == 0 and name in ("x", "y", "yaw") else spreads[name]
                values = np.zeros(15)
                values[STATE_NAMES.index(name)] = truth[STATE_NAMES.index(name)] + rng.normal(0, spread)
                used = np.array([other == name for other in STATE_NAMES])
                filter_.add(Measurement(k * 50_000_000, name, values, used, spread**2 * np.eye(15)))
            filter_.advance(k * 50_000_000)
        now = filter_.estimate
        error = (now.state - truth)[where]
        error[2] = wrap_angle(float(error[2]))
        found.append(float(error @ np.linalg.inv(now.covariance[np.ix_(where, where)]) @ error))
    low, high = chi2.ppf([0.025, 0.975], runs * len(where)) / runs
    return {
        "name": f"NEES of the {kind} over {runs} runs (95 %: {low:.2f} to {high:.2f})",
        "value": round(float(np.mean(found)), 3), "target": f">= {low:.3f}, <= {high:.3f}",
    }  # fmt: skip


PARTS = (kernel, driving, from_nothing, carried_off, standing, simulated, fusion, consistency)
"""Measured one after the other; each without what it misses."""


if __name__ == "__main__":
    for part in PARTS:
        print(part(False))
