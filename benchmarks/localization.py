"""Accuracy of localization against ground truth: tracking, global localization, kidnapping, standing, Kalman filter.

Drives over many seeds run without physics: the rover is placed along a collision-free path, its lidar measures the true
world from there (exact shapes, not the map) with its own noise, and `FaultyEncoders` simulates the wheel encoders.
The whole simulation runs as well, with fewer seeds.  Maps are true floor plans of 5 cm, the usual resolution, at the
lidar's height, without objects that can move.
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
from roboyard.bringup.robot_loader import load_robot
from roboyard.description import load_world
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
ROVER = load_robot("rover", use_calibration=False)
DRIVE = ROVER.config.drive
ERRORS = OdometryErrorModel(
    radius_scale=1.01, diameter_ratio=1.005, track_scale=1.03, encoder_resolution=4096, slip_std=0.01
)
"""Wheels are 1 % too large and differ by 0.5 %, and the track is 3 % too wide."""
MOUNT = SE2(0.1, 0.0, 0.0)
STEP_NS = 100_000_000
MAX_POSITION_ERROR, MAX_HEADING_ERROR = 0.25, 0.15
"""Largest errors [m], [rad] of a robot that counts as localized."""


class LidarWorld:
    """A world with the rover's lidar in it, its map and its free space."""

    def __init__(self, world: str, resolution: float = 0.05) -> None:
        self.simulation = Simulation(load_world(HERE / "worlds" / f"{world}.sdf"))
        self.simulation.add(ROVER.load_model(), "rover", SE3.identity())
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
        self.clearances = distance_transform(solid, 0.05)
        from scipy.ndimage import label

        components, _ = label(self.clearances > 0.35)
        start_component = components[tuple(self.frame.cells_of_points([0.0, 0.0]))]
        self.reachable_cells = np.argwhere(components == start_component)

    def sample_pose(self, rng: np.random.Generator) -> SE2:
        """Return a random pose that the rover can reach from the origin, with any heading."""
        cell = self.reachable_cells[rng.integers(len(self.reachable_cells))]
        return SE2(*self.frame.cell_centers(cell), rng.uniform(-math.pi, math.pi))

    def ranges(self, pose: SE2) -> np.ndarray:
        """Return the ranges that the lidar measures from a pose of the rover, without noise [m]."""
        self.simulation.world.set_planar_pose("rover", pose)
        return self.lidar.cast().copy()

    def scan(self, pose: SE2, odometry: SE2, time_ns: int, rng: np.random.Generator) -> LaserScan:
        """Return a scan from a pose of the rover, with the lidar's noise and resolution."""
        spec, true = self.lidar.spec, self.ranges(pose)
        noisy = np.clip(true + spec.noise.stddev * rng.standard_normal(len(true)), spec.range_min, spec.range_max)
        ranges = np.where(np.isfinite(true), np.round(noisy, 2), np.inf).astype(np.float32)
        increment = (spec.angle_max - spec.angle_min) / (spec.samples - 1)
        limits = (spec.angle_min, increment, spec.range_min, spec.range_max)
        return LaserScan(time_ns, ranges, *limits, T_base_laser=MOUNT, odometry=odometry)

    def sample_drive(self, start: SE2, seconds: float, rng: np.random.Generator, speed: float = 0.5) -> list[SE2]:
        """Return the poses of a drive at 10 Hz along collision-free arcs.

        Where there is none, the rover turns in place.
        """
        poses, rate, n_turning_steps, preferred_rate = [start], 0.0, 0, 0.0
        rates, times = np.linspace(-1.2, 1.2, 13), np.arange(0.2, 2.6, 0.2)
        for k in range(int(seconds * 10)):
            preferred_rate = rng.uniform(-0.4, 0.4) if k % 30 == 0 else preferred_rate
            pose = poses[-1]
            heading = pose.theta + np.outer(rates, times)
            x = pose.x + np.cumsum(np.cos(heading) * speed * 0.2, axis=1)
            y = pose.y + np.cumsum(np.sin(heading) * speed * 0.2, axis=1)
            clearance = self.clearance(np.stack([x, y], axis=-1)).min(axis=1)
            is_free = clearance > 0.32
            if n_turning_steps == 0 and is_free.any():
                score = (
                    2 * np.minimum(clearance, 0.6) - 0.5 * np.abs(rates - rate) - 0.5 * np.abs(rates - preferred_rate)
                )
                rate, forward_speed = float(rates[np.argmax(np.where(is_free, score, -9.0))]), speed
            else:
                if n_turning_steps == 0:
                    n_turning_steps, rate = int(rng.integers(8, 25)), 0.9 * rng.choice([-1.0, 1.0])
                n_turning_steps, forward_speed = n_turning_steps - 1, 0.0
            poses.append(pose @ SE2.exp([forward_speed / 10, 0.0, rate / 10]))
        return poses

    def clearance(self, points: np.ndarray) -> np.ndarray:
        """Return the distances of points (…, 2) to the nearest obstacle [m]; 0 outside the world."""
        cells = self.frame.cells_of_points(points)
        inside = self.frame.contains(cells)
        cells = np.where(inside[..., None], cells, 0)
        return np.where(inside, self.clearances[cells[..., 0], cells[..., 1]], 0.0)

    def is_ambiguous(self, pose: SE2, model: LaserModel, free_space: FreeSpace) -> bool:
        """Return whether the true world gives the same scan at a pose more than half a meter away.

        Scans are the same if 95 % of the beams agree within 10 cm.
        """
        true_ranges = self.ranges(pose)
        scan = self.scan(pose, SE2.identity(), 0, np.random.default_rng(0))
        hypotheses = search_poses(model, free_space, prepare_scan(scan, model.config), np.random.default_rng(0))
        for other in (SE2(*row) for row in hypotheses.poses[:20]):
            is_elsewhere = other.distance(pose) > 0.5 or abs(wrap_angle(other.theta - pose.theta)) > 0.3
            if is_elsewhere and np.mean(np.abs(self.ranges(other) - true_ranges) < 0.1) > 0.95:
                return True
        return False


def simulate_scans_of_drive(
    world: LidarWorld, poses: list[SE2], rng: np.random.Generator, kidnapped_at: int = -1
) -> Iterator[tuple[SE2, LaserScan]]:
    """Yield true poses and the scans at them, with odometry; before pose ``kidnapped_at`` the wheels stand still."""
    encoders, odometry, previous = FaultyEncoders(DRIVE, ERRORS, rng), WheelOdometry(DRIVE), poses[0]
    for k, pose in enumerate(poses):
        if k not in (0, kidnapped_at):
            distance, _, rotation = (previous.inverse() @ pose).log().tolist()
            encoders.advance(distance, rotation)
        previous = pose
        reading = encoders.read(k * STEP_NS)
        if reading is not None:
            odometry.update(k * STEP_NS, *reading)
        yield pose, world.scan(pose, odometry.T_odom_base, k * STEP_NS, rng)


@dataclass
class DriveResult:
    """Result of localization along a drive.

    Attributes:
        errors: Position error at every scan [m]; infinite before the first estimate.
        localized_since: Index of the scan since which the robot is localized to the end; None: it is not.
    """

    errors: np.ndarray
    localized_since: int | None


def localize_drive(
    world: LidarWorld, poses: list[SE2], rng: np.random.Generator, *, is_global: bool = False, kidnapped_at: int = -1,
    config: AmclConfig | None = None,
) -> DriveResult:  # fmt: skip
    """Localize the rover along a drive, from a known start or, with ``is_global``, from none."""
    amcl = Amcl(config, np.random.default_rng(int(rng.integers(2**32))))
    amcl.set_map(world.grid)
    if is_global:
        amcl.start_global_localization()
    else:
        amcl.set_initial_pose(poses[0], np.diag([0.05, 0.05, 0.01]))
    errors, localized_since, T_map_odom = [], None, None
    for k, (pose, scan) in enumerate(simulate_scans_of_drive(world, poses, rng, kidnapped_at)):
        estimate = amcl.process(scan)
        T_map_odom = estimate.T_map_odom if estimate is not None else T_map_odom
        if T_map_odom is None:
            errors.append(math.inf)
            continue
        T_map_base = T_map_odom @ scan.odometry
        errors.append(T_map_base.distance(pose))
        heading_error = abs(wrap_angle(T_map_base.theta - pose.theta))
        is_localized = errors[-1] < MAX_POSITION_ERROR and heading_error < MAX_HEADING_ERROR
        localized_since = (k if localized_since is None else localized_since) if is_localized else None
    return DriveResult(np.array(errors), localized_since)


# -- figures -----------------------------------------------------------------------------------------------------------
def kernel(nightly: bool) -> list[dict[str, Any]]:
    """Return the time of weighting particles."""
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


def tracking(nightly: bool) -> dict[str, Any]:
    """Return the errors of drives of a minute from a known start."""
    figures, details, seeds = [], [], 30 if nightly else 6
    for name in WORLDS:
        world, medians, all_errors = LidarWorld(name), [], []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            result = localize_drive(world, world.sample_drive(world.sample_pose(rng), 60.0, rng), rng)
            medians.append(float(np.median(result.errors)))
            all_errors.append(result.errors)
        pooled = np.concatenate(all_errors)
        figures.append(
            {
                "name": f"tracking in the {name}, median position error over {seeds} drives",
                "value": round(100 * float(np.median(pooled)), 2), "unit": "cm", "target": "<= 3",
                "peer": "amcl on a comparable drive", "peer_value": 8.7,
            }
        )  # fmt: skip
        details.append(
            f"{name}: worst drive's median {100 * max(medians):.1f} cm, 95 % of all below "
            f"{100 * np.quantile(pooled, 0.95):.1f} cm, largest {100 * pooled.max():.1f} cm"
        )
    return {"figures": figures, "details": details}


def _success_rate(
    name: str, is_localized: list[bool], target: float, details: list[str], description: str
) -> dict[str, Any]:
    interval = wilson_interval(sum(is_localized), len(is_localized))
    details.append(
        f"{description}: {sum(is_localized)} of {len(is_localized)}, 95 % (Wilson): "
        f"{interval.low:.1%} to {interval.high:.1%}"
    )
    rate = round(100.0 * sum(is_localized) / len(is_localized), 2)
    return {"name": name, "value": rate, "unit": "%", "target": f">= {target:g}"}


def global_localization(nightly: bool) -> dict[str, Any]:
    """Return how often the rover is localized within 20 s of driving from an unknown start."""
    figures, details = [], []
    for name in WORLDS:
        world, is_localized, times = LidarWorld(name), [], []
        for seed in range(100 if nightly else 20):
            rng = np.random.default_rng(1000 + seed)
            poses = world.sample_drive(world.sample_pose(rng), 20.0, rng)
            result = localize_drive(world, poses, rng, is_global=True)
            is_localized.append(result.localized_since is not None)
            times.append(math.inf if result.localized_since is None else result.localized_since / 10)
        figure = f"global localization in the {name}, localized within 20 s"
        figures.append(_success_rate(figure, is_localized, 95, details, f"{name}, global localization"))
        details.append(f"{name}: median time {np.median(times):.1f} s, 95 % within {np.quantile(times, 0.95):.1f} s")
    return {"figures": figures, "details": details}


def kidnapping(nightly: bool) -> dict[str, Any]:
    """Return how often the rover recovers within 30 s after it was carried to an unambiguous pose."""
    figures, details = [], []
    for name in WORLDS:
        world, is_localized, times, n_ambiguous, n_sampled = LidarWorld(name), [], [], 0, 0
        model, free_space = make_laser_model(world.grid, AmclConfig()), FreeSpace(world.grid)
        for seed in range(100 if nightly else 20):
            rng = np.random.default_rng(2000 + seed)
            first_poses = world.sample_drive(world.sample_pose(rng), 10.0, rng)
            while True:
                new_start, n_sampled = world.sample_pose(rng), n_sampled + 1
                if not world.is_ambiguous(new_start, model, free_space):
                    break
                n_ambiguous += 1
            poses = first_poses + world.sample_drive(new_start, 30.0, rng)
            result = localize_drive(world, poses, rng, kidnapped_at=len(first_poses))
            is_localized.append(result.localized_since is not None)
            times.append(
                math.inf if result.localized_since is None else (result.localized_since - len(first_poses)) / 10
            )
        figure = f"kidnapped in the {name}, localized again"
        figures.append(_success_rate(figure, is_localized, 99, details, f"{name}, kidnapped"))
        details.append(
            f"{name}: {n_ambiguous} of {n_sampled} random poses are ambiguous and were not taken; "
            f"median time {np.median(times):.1f} s, 95 % within {np.quantile(times, 0.95):.1f} s"
        )
    return {"figures": figures, "details": details}


def standing(nightly: bool) -> dict[str, Any]:
    """Return how far the estimate drifts while the rover stands and an update is requested every second."""
    drifts, details = [], []
    for name in WORLDS:
        world, rng = LidarWorld(name), np.random.default_rng(5)
        pose = world.sample_pose(rng)
        amcl = Amcl(rng=np.random.default_rng(5))
        amcl.set_map(world.grid)
        amcl.set_initial_pose(pose, np.diag([0.01, 0.01, 0.01]))
        positions = []
        for k in range(3600 if nightly else 900):
            amcl.request_update()
            estimate = amcl.process(world.scan(pose, SE2.identity(), (k + 1) * STEP_NS, rng))
            positions.append((estimate.T_map_base.x, estimate.T_map_base.y))
        settled = np.array(positions[10:])
        drifts.append(100 * float(np.linalg.norm(settled - settled[0], axis=1).max()))
        details.append(f"{name}: {len(positions)} updates at one pose drifted {drifts[-1]:.2f} cm at most")
    duration = "an hour" if nightly else "a quarter of an hour"
    figure = {"name": f"drift while standing for {duration}", "value": round(max(drifts), 2), "unit": "cm",
              "target": "< 2"}  # fmt: skip
    return {"figures": [figure], "details": details}


def simulated(nightly: bool) -> dict[str, Any]:
    """Return the errors of complete simulated runs, with physics and all nodes."""
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
    """Return the heading error of the rover's Kalman filter of wheels and gyroscope, and of wheel odometry alone."""
    rows, details = [], []
    nodes = "robots.rover.nodes=[joint_states, robot_state, arbiter, drive, odometry, ekf]"
    for seed in range(10 if nightly else 3):
        spec, errors, last = load_scenario("rover-drive", overrides=[nodes]).with_seed(seed), [], {}
        with build_run(resolve_scenario(spec), record=False) as run:
            rover = run.robots["rover"]

            def on_message(
                topic: Any, message: Any, node: str, time_ns: int, rover=rover, errors=errors, last=last
            ) -> None:
                if topic.name == "/odom":
                    last["odom"] = pose_to_se2(message.pose.pose).theta
                elif topic.name == "/odometry/filtered" and "odom" in last:
                    truth = rover.truth.pose.yaw
                    fused = pose_to_se2(message.pose.pose).theta
                    errors.append((wrap_angle(fused - truth), wrap_angle(last["odom"] - truth)))

            run.bus.add_message_observer(on_message)
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
    """Return the NEES of pose and velocity in the plane over runs of a base that obeys the process model."""
    return [nees(kind, 1000 if nightly else 50) for kind in ("ekf", "ukf")]


def nees(kind: str, runs: int) -> dict[str, Any]:
    """Return the mean normalized estimation error squared (NEES), with the 95 % bounds of a consistent filter."""
    noise = np.zeros(15)
    noise[[6, 11]] = 0.05, 0.08
    indices, values_of_runs = np.array([0, 1, 5, 6, 11]), []
    stds = {"vx": 0.05, "vyaw": 0.02, "yaw": 0.05}
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
                std = 1e-4 if k == 0 and name in ("x", "y", "yaw") else stds[name]
                values = np.zeros(15)
                values[STATE_NAMES.index(name)] = truth[STATE_NAMES.index(name)] + rng.normal(0, std)
                used = np.array([other == name for other in STATE_NAMES])
                filter_.add(Measurement(k * 50_000_000, name, values, used, std**2 * np.eye(15)))
            filter_.advance(k * 50_000_000)
        now = filter_.estimate
        error = (now.state - truth)[indices]
        error[2] = wrap_angle(float(error[2]))
        values_of_runs.append(float(error @ np.linalg.inv(now.covariance[np.ix_(indices, indices)]) @ error))
    low, high = chi2.ppf([0.025, 0.975], runs * len(indices)) / runs
    return {
        "name": f"NEES of the {kind} over {runs} runs (95 %: {low:.2f} to {high:.2f})",
        "value": round(float(np.mean(values_of_runs)), 3), "target": f">= {low:.3f}, <= {high:.3f}",
    }  # fmt: skip


PARTS = (kernel, tracking, global_localization, kidnapping, standing, simulated, fusion, consistency)
"""Parts of the benchmark, measured one after the other."""


if __name__ == "__main__":
    for part in PARTS:
        print(part(False))
