"""Storage of drive calibrations: where a robot's calibration lies, whether it is valid, and how it changes the drive.

The calibration of a robot that is a user's file is stored beside it as ``NAME.calibration.yaml``; that of an installed
robot, or of one in a read-only folder, in the user's data folder. It is valid for one description: when the description
changes, it is ignored with a finding.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from roboyard.bringup.catalog import resolve_node_class
from roboyard.bringup.robot_config import RobotNodeConfig, RobotPackage
from roboyard.config import dumps, load, parameter, required_parameter, write_atomic
from roboyard.control.drive_config import DifferentialDriveConfig
from roboyard.errors import ConfigError, RunError


@dataclass(frozen=True)
class DriveCalibration:
    """Calibration of a differential drive, as `roboyard calibrate odometry` stores it."""

    robot: str = parameter(doc="name of its kind")
    description: str = parameter(doc="first 16 digits of the SHA-256 of what is described")
    wheel_radius: float = required_parameter(DifferentialDriveConfig, "wheel_radius", doc="mean of both sides")
    left_radius_scale: float = required_parameter(
        DifferentialDriveConfig, "left_radius_scale", doc="left over mean radius"
    )
    right_radius_scale: float = required_parameter(
        DifferentialDriveConfig, "right_radius_scale", doc="right over mean radius"
    )
    slip_factor: float = required_parameter(
        DifferentialDriveConfig, "slip_factor", doc="k: effective over nominal track"
    )
    track: float = required_parameter(DifferentialDriveConfig, "track", doc="nominal, which k belongs to")
    standard_errors: dict[str, float] = parameter(factory=dict, doc="of the numbers above, by name")
    intervals: dict[str, tuple[float, float]] = parameter(factory=dict, doc="that hold them at 95 %, by name")
    created_by: str = parameter("", doc="the command that made it")

    def drive_values(self) -> dict[str, float]:
        """Return the calibrated numbers by key of the robot's ``drive``."""
        return {
            "wheel_radius": self.wheel_radius,
            "track": self.track,
            "slip_factor": self.slip_factor,
            "left_radius_scale": self.left_radius_scale,
            "right_radius_scale": self.right_radius_scale,
        }


def calibration_folder() -> Path:
    """Return the folder of the calibrations of installed robots: `roboyard/calibrations` in the XDG data folder."""
    # An XDG path that is not absolute is to be ignored, says the XDG base directory specification.
    xdg = os.environ.get("XDG_DATA_HOME", "")
    home = Path(xdg) if xdg.startswith("/") else Path(os.path.expanduser("~")) / ".local" / "share"  # noqa: PTH111
    return home / "roboyard" / "calibrations"


def description_hash(package: RobotPackage) -> str:
    """Return a hash of what a package describes: links, joints, interfaces and sensors.

    Visual shapes, comments and folders do not change it.

    Raises:
        DescriptionError: The description cannot be read.
    """
    model = package.load_model(repair=True)
    links = tuple(replace(link, visuals=()) for link in model.links)
    described = repr(_to_plain_data((links, model.joints, model.interfaces, model.sensors)))
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def _to_plain_data(value: Any) -> Any:
    """Return a record as nested tuples; of a file only its name, since users may move the folder."""
    if isinstance(value, PurePath):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, *(_to_plain_data(getattr(value, item.name)) for item in fields(value))
    if isinstance(value, tuple | list):
        return tuple(map(_to_plain_data, value))
    return value


def calibration_paths(package: RobotPackage) -> tuple[Path, Path]:
    """Return the two paths of a robot's calibration: beside the robot's file, and in the user's data folder."""
    name = f"{package.name}.calibration.yaml"
    robot_path = package.source.with_name(f"{package.source.stem}.calibration.yaml")
    return robot_path, calibration_folder() / name


def save_calibration(package: RobotPackage, calibration: DriveCalibration) -> Path:
    """Store a calibration, so that the robot's next run uses it; return the path of its file.

    It replaces an older calibration in one step, or leaves that unchanged.

    Raises:
        RunError: No file can be written, or not the one of an older calibration that runs would continue to use.
    """
    robot_path, user_path = calibration_paths(package)
    for path in (user_path,) if package.is_installed else (robot_path, user_path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, dumps(calibration))
        except OSError as error:
            has_older = path.is_file()
            if path is user_path or has_older:  # an older file beside the robot hides a new one in the user's folder
                unchanged = "the older one is unchanged; " if has_older else ""
                raise RunError(
                    f"the calibration cannot be stored: {error.strerror or error}",
                    location=str(path),
                    valid=f"{unchanged}--out DIR, and --no-store",
                ) from error
        else:
            break
    return path


def load_calibration(package: RobotPackage) -> tuple[DriveCalibration | None, tuple[str, ...]]:
    """Load the robot's calibration if there is a valid one, and return it with findings about it.

    Raises:
        ConfigError: Its file is damaged or invalid; the error names the file and what to do.
    """
    for path in calibration_paths(package):
        if not path.is_file():
            continue
        try:
            calibration = load(DriveCalibration, path)
        except ConfigError as damage:
            robot = package.name if package.is_installed else shlex.quote(str(package.source))
            raise ConfigError(
                f"the stored calibration cannot be used: {damage}",
                location=str(path),
                valid=f"remove the file, or calibrate anew: roboyard calibrate odometry {robot}",
            ) from damage
        if calibration.description != description_hash(package):
            return None, (f"{path.name} is not used: the description has changed since the robot was calibrated",)
        error = calibration.standard_errors.get("slip_factor")
        slip_text = f"k {calibration.slip_factor:.4g}" + (f" ± {error:.2g}" if error is not None else "")
        return calibration, (
            f"drive as calibrated in {path.name}: {slip_text}, wheel radius {calibration.wheel_radius:.4g} m",
        )
    return None, ()


def apply_calibration(package: RobotPackage) -> RobotPackage:
    """Return the package with the numbers of its stored calibration in its drive, if there is a valid one.

    Raises:
        ConfigError: The file of the calibration is invalid.
    """
    if not package.description.is_file():
        return package
    calibration, findings = load_calibration(package)
    drive = package.config.drive
    if calibration is not None and isinstance(drive, DifferentialDriveConfig):
        package = replace(
            package,
            config=replace(package.config, drive=drive.replace(calibration.drive_values())),
            calibrated_parameters=calibrated_parameters(package, calibration),
        )
    elif calibration is not None:
        findings = ("the stored calibration is not used: the robot's file states no `drive` of type differential",)
    return replace(package, findings=(*package.findings, *findings)) if findings else package


def calibrated_parameters(package: RobotPackage, calibration: DriveCalibration) -> dict[str, dict[str, Any]]:
    """Return the numbers of a calibration as parameters, by name of each node that takes a differential drive."""
    values = calibration.drive_values()
    return {
        name: dict(values)
        for name, node_config in package.config.nodes.items()
        if _uses_differential_drive(package, node_config)
    }


def _uses_differential_drive(package: RobotPackage, node_config: RobotNodeConfig) -> bool:
    node_class = resolve_node_class(node_config.type, package.source.parent)
    geometry = node_class.resources_declared().get("drive_geometry")
    return geometry is not None and geometry.kind is DifferentialDriveConfig
