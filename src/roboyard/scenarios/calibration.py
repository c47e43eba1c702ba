"""Calibration of a drive in simulation: maneuvers, the fit of its parameters, and a report."""

from __future__ import annotations

import base64
import csv
import html
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bringup.calibration_store import DriveCalibration, description_hash
from roboyard.bringup.robot_config import RobotPackage
from roboyard.config import dumps, write_atomic
from roboyard.control import DifferentialDrive
from roboyard.control.drive_config import DifferentialDriveConfig
from roboyard.description.extent import bounding_radius
from roboyard.errors import InputError, RunError
from roboyard.geometry import wrap_angle
from roboyard.localization import DriveFit, ParameterEstimate, fit_drive
from roboyard.scenarios.robot_handle import RobotHandle
from roboyard.scenarios.run import Run
from roboyard.scenarios.run_folder import make_write_error

MIN_ROTATIONS = 4
_SPEED_FRACTIONS = (0.3, 0.9)
"""Smallest and largest fraction of the drive's speed limits that maneuvers use."""


@dataclass(frozen=True, slots=True)
class Maneuver:
    """A motion at one twist, from rest to rest.

    Attributes:
        kind: "straight", "spot" or "arc".
        v: Linear velocity [m/s].
        w: Angular velocity [rad/s].
        seconds: How long the twist is held.
    """

    kind: str
    linear: float
    angular: float
    duration: float

    def reversed_maneuver(self) -> Maneuver:
        """Return the maneuver in the opposite direction."""
        return Maneuver(self.kind, -self.linear, -self.angular, self.duration)


def plan_maneuvers(
    n_rotations: int, max_speed: float, max_angular_speed: float, max_distance: float, seed: int
) -> tuple[Maneuver, ...]:
    """Plan rotations, half of them in place, and as many straight lines; every second maneuver reverses the one before.

    Args:
        n_rotations: Number of rotations, at least four; made even.
        max_speed: Largest linear velocity [m/s].
        max_angular_speed: Largest angular velocity [rad/s].
        max_distance: Largest distance of maneuvers from the start [m].
        seed: Seed of the speeds, which differ between maneuvers.

    Raises:
        InputError: There are too few rotations for the fit.
    """
    if n_rotations < MIN_ROTATIONS:
        raise InputError(f"{n_rotations} rotations", valid=f"at least {MIN_ROTATIONS}")
    random = np.random.default_rng(seed)

    def sample_speed(maximum: float) -> float:
        return float(random.uniform(*_SPEED_FRACTIONS)) * maximum

    maneuvers: list[Maneuver] = []
    for k in range((n_rotations + 1) // 2):
        sign = 1.0 if k % 4 < 2 else -1.0
        angular_speed = sign * sample_speed(max_angular_speed)
        if k % 2 == 0:
            rotation = Maneuver(
                "spot", 0.0, angular_speed, min(float(random.uniform(1.5, 5.0)) / abs(angular_speed), 8.0)
            )
        else:
            speed = sample_speed(max_speed)
            rotation = Maneuver(
                "arc",
                speed,
                angular_speed,
                min(float(random.uniform(1.5, 4.0)) / abs(angular_speed), 2.0 * max_distance / speed, 8.0),
            )
        speed = sample_speed(max_speed)
        straight = Maneuver("straight", speed, 0.0, min(max_distance / speed, 6.0))
        maneuvers += [rotation, rotation.reversed_maneuver(), straight, straight.reversed_maneuver()]
    return tuple(maneuvers)


_SAMPLE_PERIOD = 0.05
"""Period of the ground truth samples [s]; the path between two samples counts as an arc."""
_CLEARANCE_FACTOR = 1.5
"""Largest distance of maneuvers from the start, in bounding radii of the robot, and its least value [m]."""
_MAX_SPEED_AT_REST, _STOP_TIMEOUT = 2e-3, 10.0
"""Speed below which the robot is at rest [m/s, rad/s], and how long this is waited for [s]."""
_MIN_MANEUVERS = 6


@dataclass(frozen=True, slots=True)
class ManeuverData:
    """Maneuvers as they were executed, arrays of (n,).

    Attributes:
        moves: Commanded maneuvers.
        left: Rotation of the left wheels by their encoders [rad].
        right: Rotation of the right wheels by their encoders [rad].
        way: True distance of the axle's middle along its heading [m].
        turn: True rotation [rad].
        dropped: Number of maneuvers that were excluded because the robot touched something.
    """

    maneuvers: tuple[Maneuver, ...]
    left_angles: NDArray[np.float64]
    right_angles: NDArray[np.float64]
    distances: NDArray[np.float64]
    rotations: NDArray[np.float64]
    dropped_count: int


@dataclass(frozen=True, slots=True)
class DriveCalibrationResult:
    """A calibration and its data.

    Attributes:
        package: The robot, uncalibrated.
        nominal: Its drive as described, with k = 1.
        driven: Executed maneuvers.
        fit: Regression.
        world: World of the maneuvers.
        seed: Seed of maneuvers and noise.
    """

    package: RobotPackage
    nominal_drive: DifferentialDrive
    data: ManeuverData
    fit: DriveFit
    world: str
    seed: int

    @property
    def estimates(self) -> dict[str, ParameterEstimate]:
        """Return the estimated parameters by name."""
        fit = self.fit
        return {
            "wheel_radius": fit.wheel_radius,
            "left_radius_scale": fit.left_radius_scale,
            "right_radius_scale": fit.right_radius_scale,
            "slip_factor": fit.slip_factor,
            "effective_track": fit.effective_track,
        }

    @property
    def calibration(self) -> DriveCalibration:
        """Return the calibration as it is stored."""
        drive = self.fit.drive
        return DriveCalibration(
            robot=self.package.name,
            description=description_hash(self.package),
            wheel_radius=drive.wheel_radius,
            left_radius_scale=drive.left_radius_scale,
            right_radius_scale=drive.right_radius_scale,
            slip_factor=drive.slip_factor,
            track=drive.track,
            standard_errors={name: found.standard_error for name, found in self.estimates.items()},
            intervals={name: found.confidence_interval for name, found in self.estimates.items()},
            created_by=f"roboyard calibrate odometry {self.package.name} --world {self.world} --seed {self.seed}, "
            f"{len(self.data.maneuvers)} moves",
        )

    def rotation_errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (n,) rotations by odometry minus true ones [rad], uncalibrated and calibrated."""
        data, nominal = self.data, self.nominal_drive
        pairs = zip(data.left_angles.tolist(), data.right_angles.tolist(), strict=True)
        odometry_rotations = np.array([nominal.travel(left, right)[1] for left, right in pairs])
        return odometry_rotations - data.rotations, -self.fit.rotation_residuals


def calibrate_drive(
    package: RobotPackage,
    *,
    world: str = "empty",
    seed: int = 0,
    n_rotations: int = 24,
    progress: Callable[[int, int], None] | None = None,
) -> DriveCalibrationResult:
    """Calibrate the differential drive of a robot in simulation.

    Args:
        package: The robot.
        world: World of the maneuvers: a flat floor with free space.
        seed: Seed of the maneuvers' speeds and of the encoders' noise.
        n_rotations: Number of rotations; as many straight lines are driven, too.
        progress: Function that receives the number of finished maneuvers and of all.

    Raises:
        InputError and its kinds: The robot has no differential drive, or the world has no free space.
        RunError: The robot does not follow the commands, or touches something most of the time.
    """
    drive = find_differential_drive(package)
    nominal = DifferentialDrive(wheel_radius=drive.wheel_radius, track=drive.track, axle_x=drive.axle_x)
    with Run(world, seed=seed, record=False) as run:
        robot = _spawn_robot(run, package)
        max_distance = max(_CLEARANCE_FACTOR, _CLEARANCE_FACTOR * bounding_radius(robot.model))
        limits = package.config.limits
        # narrow robots tip and slide at speeds that wide ones take easily
        speed = min(limits.speed or math.inf, 3.0 * nominal.track, 1.0)
        maneuvers = plan_maneuvers(n_rotations, speed, min(limits.angular_speed or math.inf, 1.5), max_distance, seed)
        data = _execute_maneuvers(run, robot, maneuvers, drive, progress)
    if len(data.maneuvers) < _MIN_MANEUVERS:
        raise RunError(
            f"the robot touched something in {data.dropped_count} of {len(maneuvers)} moves",
            valid="a world with more room",
        )
    if np.abs(data.rotations).max() < 0.1 or np.abs(data.distances).max() < 0.5 * nominal.wheel_radius:
        raise RunError(
            f"{package.name} hardly moves: {np.degrees(np.abs(data.rotations).max()):.1f}° and "
            f"{np.abs(data.distances).max():.3f} m at most",
            valid="a drive that can move it; `roboyard check robot` shows its limits",
        )
    fit = fit_drive(nominal, data.left_angles, data.right_angles, data.distances, data.rotations)
    return DriveCalibrationResult(package, nominal, data, fit, world, seed)


def find_differential_drive(package: RobotPackage) -> DifferentialDriveConfig:
    """Return the drive of a robot that has a left and a right side.

    Raises:
        InputError: The robot has no such drive, or no node that drives it.
    """
    drive = package.config.drive
    if isinstance(drive, DifferentialDriveConfig) and "drive" in package.config.nodes:
        return drive
    valid = "a robot that drives"
    if drive is not None:
        valid = f"differential or skid-steer robots; its drive is of type {drive.values()['type']}"
    elif "drive" in package.config.nodes:
        valid = "a robot whose file states its `drive` with `type: differential`"
    raise InputError(
        f"{package.name} has no drive with a left and a right side", location=str(package.source), valid=valid
    )


def _spawn_robot(run: Run, package: RobotPackage) -> RobotHandle:
    """Add the robot at a free pose, and wait until it is at rest."""
    from roboyard.scenarios.world.free_space import top_down_map

    model = package.load_model()
    x, y = top_down_map(run.simulation).find_free_position(
        2.0 * max(_CLEARANCE_FACTOR, _CLEARANCE_FACTOR * bounding_radius(model))
    )
    unused_types = ("odometry", "robot_state")
    nodes = [name for name in package.config.autostart if package.config.nodes[name].type not in unused_types]
    robot = run.add_robot(package, package.name, pose=(x, y, 0.0), nodes=nodes)
    run.run_for(1.0)
    return robot


def _execute_maneuvers(
    run: Run,
    robot: RobotHandle,
    maneuvers: tuple[Maneuver, ...],
    drive: DifferentialDriveConfig,
    progress: Callable[[int, int], None] | None,
) -> ManeuverData:
    names = robot.hardware.joint_names
    sides = [np.array([names.index(joint) for joint in side]) for side in (drive.left_joints, drive.right_joints)]
    rows: list[tuple[float, float, float, float]] = []
    executed: list[Maneuver] = []
    for number, maneuver in enumerate(maneuvers):
        contacts_before = _contact_count(run, robot)
        before = robot.hardware.read().position
        distance, rotation = _execute_maneuver(run, robot, maneuver, drive.axle_x)
        angles = robot.hardware.read().position - before
        if _contact_count(run, robot) == contacts_before:
            rows.append((float(angles[sides[0]].mean()), float(angles[sides[1]].mean()), distance, rotation))
            executed.append(maneuver)
        if progress is not None:
            progress(number + 1, len(maneuvers))
    left, right, distances, rotations = np.array(rows).reshape(-1, 4).T
    return ManeuverData(tuple(executed), left, right, distances, rotations, len(maneuvers) - len(executed))


def _execute_maneuver(run: Run, robot: RobotHandle, maneuver: Maneuver, axle_x: float) -> tuple[float, float]:
    """Execute a maneuver from rest to rest; return the true distance [m] and rotation [rad]."""
    x, y, yaw = _axle_pose(robot, axle_x)
    distance = rotation = 0.0
    end, deadline = run.time + maneuver.duration, run.time + maneuver.duration + _STOP_TIMEOUT
    robot.drive(maneuver.linear, maneuver.angular)
    n_samples_at_rest = 0
    while n_samples_at_rest < 4:
        run.run_for(_SAMPLE_PERIOD)
        if run.time >= end - 1e-9:
            robot.drive(0.0, 0.0)
        now_x, now_y, now_yaw = _axle_pose(robot, axle_x)
        step = wrap_angle(now_yaw - yaw)
        mean_yaw = yaw + 0.5 * step
        along = (now_x - x) * math.cos(mean_yaw) + (now_y - y) * math.sin(mean_yaw)
        half_step = 0.5 * step
        distance += along * (
            half_step / math.sin(half_step) if abs(half_step) > 1e-6 else 1.0
        )  # the arc over its chord
        rotation += step
        x, y, yaw = now_x, now_y, now_yaw
        is_slow = abs(along) < _MAX_SPEED_AT_REST * _SAMPLE_PERIOD and abs(step) < _MAX_SPEED_AT_REST * _SAMPLE_PERIOD
        n_samples_at_rest = n_samples_at_rest + 1 if is_slow and run.time >= end else 0
        if run.time > deadline:
            raise RunError(f"{robot.name} does not come to rest after {maneuver.kind} moves", valid="a flat floor")
    return distance, rotation


def _axle_pose(robot: RobotHandle, axle_x: float) -> tuple[float, float, float]:
    """Return the true position and heading of the axle's middle."""
    pose = robot.truth.pose
    return pose.x + axle_x * math.cos(pose.yaw), pose.y + axle_x * math.sin(pose.yaw), pose.yaw


def _contact_count(run: Run, robot: RobotHandle) -> int:
    contacts = run.evaluation.metrics_by_robot()[robot.name].get("contacts")
    return int(contacts) if isinstance(contacts, int | float) else 0


_UNITS = {"wheel_radius": "m", "effective_track": "m"}
_NAMES = {
    "wheel_radius": "wheel radius, mean of both sides",
    "left_radius_scale": "left over mean radius",
    "right_radius_scale": "right over mean radius",
    "slip_factor": "slip factor k",
    "effective_track": "effective track k·c",
}
_COLORS = {"spot": "#0072b2", "arc": "#d55e00", "straight": "#009e73"}  # safe for colour-blind eyes


def write_calibration(result: DriveCalibrationResult, folder: Path) -> dict[str, Path]:
    """Write page, figure, table of the maneuvers and the calibration; return their paths by name.

    Raises:
        RunError: The folder cannot be written.
    """
    image = draw_fit(result)
    contents = {
        "report": ("report.html", calibration_page(result, image).encode()),
        "figure": ("fit.png", image),
        "maneuvers": ("maneuvers.csv", _maneuver_table(result).encode()),
        "calibration": ("calibration.yaml", dumps(result.calibration).encode()),
    }
    paths: dict[str, Path] = {}
    for name, (file, data) in contents.items():
        paths[name] = folder / file
        try:
            write_atomic(paths[name], data)
        except OSError as error:
            raise make_write_error(paths[name], error) from error
    return paths


def draw_fit(result: DriveCalibrationResult) -> bytes:
    """Return a PNG image of odometry over true rotations and distances with the fit, and of its residuals."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data, fit, nominal = result.data, result.fit, result.nominal_drive
    kinds = np.array([move.kind for move in data.maneuvers])
    pairs = list(zip(data.left_angles.tolist(), data.right_angles.tolist(), strict=True))
    distances, rotations = np.array([nominal.travel(left, right) for left, right in pairs]).T
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    (rotation_axes, distance_axes), (rotation_residual_axes, distance_residual_axes) = figure.subplots(2, 2)
    for kind, color in _COLORS.items():
        mask = kinds == kind
        dots = {"color": color, "s": 18, "label": kind, "zorder": 3}
        rotation_axes.scatter(data.rotations[mask], rotations[mask], **dots)
        distance_axes.scatter(data.distances[mask], distances[mask], **dots)
        rotation_residual_axes.scatter(data.rotations[mask], np.degrees(fit.rotation_residuals[mask]), **dots)
        distance_residual_axes.scatter(data.distances[mask], 1e3 * fit.distance_residuals[mask], **dots)
    for axes, measured, slope, name in (
        (
            rotation_axes,
            data.rotations,
            fit.slip_factor.value * nominal.wheel_radius / fit.wheel_radius.value,
            "turn [rad]",
        ),
        (distance_axes, data.distances, nominal.wheel_radius / fit.wheel_radius.value, "way [m]"),
    ):
        ends = np.array([measured.min(), measured.max()])
        axes.plot(ends, slope * ends, color="#333333", lw=1.0, label=f"fit, slope {slope:.3f}")
        axes.plot(ends, ends, color="#aaaaaa", lw=1.0, ls="--", label="no slip")
        axes.set_ylabel(f"{name} by the wheels, uncalibrated")
        axes.legend(frameon=False, fontsize=8)
    for axes, unit in ((rotation_residual_axes, "real turn [rad]"), (distance_residual_axes, "real way [m]")):
        axes.axhline(0.0, color="#333333", lw=0.8)
        axes.set_xlabel(unit)
    rotation_residual_axes.set_ylabel("left by the fit [°]")
    distance_residual_axes.set_ylabel("left by the fit [mm]")
    k = fit.slip_factor
    figure.suptitle(f"{result.package.name}: k = {k.value:.4f} ± {k.standard_error:.4f}")
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def calibration_page(result: DriveCalibrationResult, image: bytes) -> str:
    """Return an HTML page without references to other files."""
    rows = "\n".join(
        f"<tr><td>{_NAMES[name]}</td><td>{estimate.value:.5g} {_UNITS.get(name, '')}</td>"
        f"<td>{estimate.standard_error:.2g}</td><td>{estimate.confidence_interval[0]:.5g} to "
        f"{estimate.confidence_interval[1]:.5g}</td></tr>"
        for name, estimate in result.estimates.items()
    )
    before, after = result.rotation_errors()
    data, name = result.data, html.escape(result.package.name)
    rms_errors = [float(np.degrees(np.sqrt(np.mean(errors**2)))) for errors in (before, after)]
    dropped = f" {data.dropped_count} were left out, since the robot touched something." if data.dropped_count else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{name}: calibration of the drive</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; color: #222 }}
table {{ border-collapse: collapse }} td, th {{ padding: .25rem .9rem .25rem 0; text-align: left;
border-bottom: 1px solid #ddd }} img {{ max-width: 100%; height: auto }}</style></head><body>
<h1>{name}: calibration of the drive</h1>
<p>{len(data.maneuvers)} moves from rest to rest in world {html.escape(result.world)}, seed {result.seed}.{dropped}
A turn by the wheels is off by {rms_errors[0]:.2f}° uncalibrated (k = 1) and by {rms_errors[1]:.2f}° calibrated
(root mean square).</p>
<table><tr><th>what</th><th>value</th><th>standard error</th><th>{100 * result.fit.confidence:.0f} % interval</th></tr>
{rows}</table>
<p><img alt="Turns and ways by the wheels against the real ones, and what the fit leaves"
src="data:image/png;base64,{base64.b64encode(image).decode()}"></p>
</body></html>
"""


def _maneuver_table(result: DriveCalibrationResult) -> str:
    """Return the maneuvers as CSV in SI units."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "kind",
            "linear",
            "angular",
            "duration",
            "left",
            "right",
            "distance",
            "rotation",
            "distance_residual",
            "rotation_residual",
        ]
    )
    data, fit = result.data, result.fit
    columns = (
        data.left_angles,
        data.right_angles,
        data.distances,
        data.rotations,
        fit.distance_residuals,
        fit.rotation_residuals,
    )
    for maneuver, *values in zip(data.maneuvers, *(column.tolist() for column in columns), strict=True):
        writer.writerow(
            [
                maneuver.kind,
                *(f"{value:.9g}" for value in (maneuver.linear, maneuver.angular, maneuver.duration, *values)),
            ]
        )
    return text.getvalue()


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """A calibration with its files.

    Attributes:
        result: The calibration.
        files: Report, figure, table of maneuvers and calibration, by name.
        stored_file: The file from which later runs of the robot take it; None: it was not stored.
    """

    result: DriveCalibrationResult
    files: dict[str, Path]
    stored_file: Path | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: estimates with their intervals, errors of turns [rad], and files."""
        result = self.result
        uncalibrated, calibrated = (float((errors**2).mean() ** 0.5) for errors in result.rotation_errors())
        return {
            "ok": True,
            "robot": result.package.name,
            "world": result.world,
            "seed": result.seed,
            "maneuvers": len(result.data.maneuvers),
            "dropped_maneuvers": result.data.dropped_count,
            "confidence": result.fit.confidence,
            "estimates": {
                name: {
                    "value": one.value,
                    "standard_error": one.standard_error,
                    "interval": list(one.confidence_interval),
                }
                for name, one in result.estimates.items()
            },
            "turn_error_uncalibrated": uncalibrated,
            "turn_error_calibrated": calibrated,
            "files": {name: str(path) for name, path in self.files.items()},
            "stored_file": None if self.stored_file is None else str(self.stored_file),
        }


def calibrate_robot(
    robot: str, *, world: str, seed: int, n_rotations: int, out: Path | None, store: bool,
    progress: Callable[[int, int], None],
) -> StoredCalibration:  # fmt: skip
    """Calibrate the drive of a robot, write a report, and store the result.

    Args:
        robot: Its name or file.
        world: Name or file of the world; it needs a flat, free floor.
        seed: Seed of the maneuvers and of the sensor noise.
        n_rotations: Number of rotations, and of straight moves.
        out: New folder for the report; None: a numbered folder in ``runs``.
        store: Whether later runs of the robot use the result.
        progress: Called with the number of finished maneuvers and of all.

    Raises:
        InputError: The robot or the world does not exist, the robot has no differential drive, or the folder exists.
        RunError: The robot cannot drive the maneuvers, or a file cannot be written.
    """
    from roboyard.bringup.calibration_store import save_calibration
    from roboyard.bringup.catalog import WORLDS
    from roboyard.bringup.robot_loader import load_robot
    from roboyard.scenarios.run_folder import create_numbered_folder, prepare_folder

    package = load_robot(robot, use_calibration=False)
    find_differential_drive(package)
    WORLDS.resolve(world)
    folder = prepare_folder(out) if out is not None else create_numbered_folder(f"calibrate-{package.name}", "runs")
    try:
        result = calibrate_drive(package, world=world, seed=seed, n_rotations=n_rotations, progress=progress)
        files = write_calibration(result, folder.path)
    except BaseException:
        folder.discard()
        raise
    return StoredCalibration(result, files, save_calibration(package, result.calibration) if store else None)
