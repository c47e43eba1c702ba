"""A robot's stored calibration: where it lies, what it says, and how it becomes the nodes' parameters.

For a robot that is a file of the user's it lies beside that file, ``NAME.calibration.yaml``; for one that is installed,
or whose folder cannot be written, in the user's own folder.  It holds for what was described when it was made: once
that file, or one that it includes, describes another robot, it is not used, and that is said.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from roboyard.config import dumps, load, parameter, write_atomic
from roboyard.errors import ConfigError, RunError
from roboyard.scenarios.robot_package import RobotPackage

USES = ("drive", "odometry", "roboyard.control.nodes:DriveNode", "roboyard.localization.nodes:OdometryNode")
"""Nodes that take the numbers."""


@dataclass(frozen=True)
class DriveCalibration:
    """What `roboyard calibrate drive` found."""

    robot: str = parameter(doc="name of its kind")
    description: str = parameter(doc="first 16 digits of the SHA-256 of what is described")
    wheel_radius: float = parameter(unit="m", low=1e-3, high=10.0, doc="mean of both sides")
    left_radius_scale: float = parameter(low=0.5, high=2.0, doc="left over mean radius")
    right_radius_scale: float = parameter(low=0.5, high=2.0, doc="right over mean radius")
    slip_factor: float = parameter(low=0.1, high=10.0, doc="k: effective over nominal track")
    track: float = parameter(unit="m", low=1e-3, high=20.0, doc="nominal, which k belongs to")
    standard_errors: dict[str, float] = parameter(factory=dict, doc="of the numbers above, by name")
    intervals: dict[str, tuple[float, float]] = parameter(factory=dict, doc="that hold them at 95 %, by name")
    made: str = parameter("", doc="the command that made it")

    def parameters(self) -> dict[str, float]:
        """Of drive and odometry nodes."""
        return {
            "wheel_radius": self.wheel_radius,
            "track": self.track,
            "slip_factor": self.slip_factor,
            "left_radius_scale": self.left_radius_scale,
            "right_radius_scale": self.right_radius_scale,
        }


def user_folder() -> Path:
    """Where calibrations of installed robots are kept: `roboyard/calibrations` in the XDG data folder."""
    # An XDG path that is not absolute is to be ignored, says the XDG base directory specification.
    xdg = os.environ.get("XDG_DATA_HOME", "")
    home = Path(xdg) if xdg.startswith("/") else Path(os.path.expanduser("~")) / ".local" / "share"  # noqa: PTH111
    return home / "roboyard" / "calibrations"


def digest(package: RobotPackage) -> str:
    """Tells apart what is described: links, joints, interfaces, sensors, whatever files and arguments say so.

    Looks, texts and folders are left out.

    Raises:
        DescriptionError: the description cannot be read.
    """
    model = package.load_model(repair=True)
    links = tuple(replace(link, visuals=()) for link in model.links)
    told = repr(_plain((links, model.joints, model.interfaces, model.sensors)))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """A record as nested tuples; of files their names alone, since a folder may be moved."""
    if isinstance(value, PurePath):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, *(_plain(getattr(value, item.name)) for item in fields(value))
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return value


def places(package: RobotPackage) -> tuple[Path, Path]:
    """Beside the robot's file, and in the user's folder."""
    name = f"{package.name}.calibration.yaml"
    beside = package.source.with_name(f"{package.source.stem}.calibration.yaml")
    return beside, user_folder() / name


def may_exist(robot: str, base: Path) -> bool:
    """Whether a calibration could be kept for ``robot`` (a name or a path), told without reading any description."""
    beside = (base / robot).parent if "/" in robot or (base / robot).is_file() else None
    return user_folder().is_dir() or (beside is not None and any(beside.glob("*.calibration.yaml")))


def is_installed(package: RobotPackage) -> bool:
    """Whether the robot comes with a package, whose folder is not the user's to write into."""
    from roboyard.scenarios import catalog

    source = package.source.resolve()
    return any(entry.path.resolve() == source for entry in catalog.robots().values())


def store(package: RobotPackage, calibration: DriveCalibration) -> Path:
    """Keep a calibration, so that the robot's next run uses it; gives the file.

    A calibration that was kept before is replaced in one step, or stays as it was.

    Raises:
        RunError: it can be written nowhere, or not where an older one lies that runs would continue to use.
    """
    beside, own = places(package)
    for path in (own,) if is_installed(package) else (beside, own):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, dumps(calibration))
        except OSError as error:
            older = path.is_file()
            if path is own or older:  # an older file beside the robot hides a new one in the user's folder
                unchanged = "the older one is unchanged; " if older else ""
                raise RunError(
                    f"the calibration cannot be stored: {error.strerror or error}",
                    location=str(path),
                    valid=f"{unchanged}--out DIR, and --no-store",
                ) from error
        else:
            break
    return path


def stored(package: RobotPackage) -> tuple[DriveCalibration | None, tuple[str, ...]]:
    """The robot's calibration if one is kept and holds, and what is to be said about it.

    Raises:
        ConfigError: its file is damaged, or says something it may not; it names the file and what to do.
    """
    for path in places(package):
        if not path.is_file():
            continue
        try:
            found = load(DriveCalibration, path)
        except ConfigError as damage:
            robot = package.name if is_installed(package) else shlex.quote(str(package.source))
            raise ConfigError(
                f"the stored calibration cannot be used: {damage}",
                location=str(path),
                valid=f"remove the file, or calibrate anew: roboyard calibrate drive {robot}",
            ) from damage
        if found.description != digest(package):
            return None, (f"{path.name} is not used: the description has changed since the robot was calibrated",)
        error = found.standard_errors.get("slip_factor")
        shown = f"k {found.slip_factor:.4g}" + (f" ± {error:.2g}" if error is not None else "")
        return found, (f"drive as calibrated in {path.name}: {shown}, wheel radius {found.wheel_radius:.4g} m",)
    return None, ()


def with_calibration(package: RobotPackage) -> RobotPackage:
    """The package with its drive's calibration in its nodes, if one is kept.

    Raises:
        ConfigError: the calibration's file says something it may not.
    """
    if not package.description.is_file():
        return package
    found, findings = stored(package)
    if found is None:
        return replace(package, findings=(*package.findings, *findings)) if findings else package
    changed = package.customised(parameters_of(package, found), {})
    return replace(changed, findings=(*package.findings, *findings))


def parameters_of(package: RobotPackage, found: DriveCalibration) -> dict[str, dict[str, Any]]:
    """The calibration's numbers for each of the robot's nodes that takes them."""
    return {
        name: {**found.parameters()}
        for name, spec in package.file.nodes.items()
        if spec.use in USES and "left_joints" in spec.parameters
    }
