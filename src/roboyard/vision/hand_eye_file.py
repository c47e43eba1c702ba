"""The file that hand-eye calibration reads: poses of the arm, and of the target at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roboyard.config import load, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.vision.hand_eye import HandEye, Setup


@dataclass(frozen=True)
class PoseText:
    """A pose in the file.

    Attributes:
        xyz: Position [m].
        quaternion: w, x, y, z; or
        rpy: Roll, pitch, yaw about fixed axes [rad].
    """

    xyz: tuple[float, float, float]
    quaternion: tuple[float, float, float, float] | None = None
    rpy: tuple[float, float, float] | None = None

    def pose(self, where: str) -> SE3:
        """As a pose.

        Raises:
            ConfigError: neither or both of ``quaternion`` and ``rpy``, or no rotation.
        """
        if (self.quaternion is None) == (self.rpy is None):
            raise ConfigError(
                "a pose needs one rotation", location=where, valid="quaternion: [w, x, y, z] or rpy: [r, p, y]"
            )
        try:
            return (
                SE3(self.quaternion, self.xyz) if self.quaternion else SE3.from_xyz_rpy(self.xyz, self.rpy or (0, 0, 0))
            )
        except InputError as error:
            raise ConfigError(error.message, location=where, valid=error.valid) from error


@dataclass(frozen=True)
class Sighting:
    """One picture.

    Attributes:
        arm: Pose of the flange in the arm's base.
        target: Pose of the target in the camera's optical frame.
    """

    arm: PoseText
    target: PoseText


@dataclass(frozen=True)
class HandEyeFile:
    """All of it.

    Attributes:
        setup: ``eye-in-hand`` or ``eye-to-hand``.
        poses: One for each picture.
    """

    setup: Setup = parameter("eye-in-hand", doc="where the camera is")
    poses: tuple[Sighting, ...] = ()


def read_hand_eye(path: str | Path) -> tuple[Setup, list[SE3], list[SE3]]:
    """Setup, poses of the flange in the base, poses of the target in the camera.

    Raises:
        ConfigError: unreadable, or not of this form; names file, key and what would be right.
    """
    data = load(HandEyeFile, path)
    arm = [one.arm.pose(f"{path}: poses[{k}].arm") for k, one in enumerate(data.poses)]
    target = [one.target.pose(f"{path}: poses[{k}].target") for k, one in enumerate(data.poses)]
    return data.setup, arm, target


@dataclass(frozen=True)
class MountFile:
    """What `roboyard calibrate hand-eye` writes: where the camera sits, and how surely.

    Attributes:
        setup: ``eye-in-hand``: on the flange; ``eye-to-hand``: in the arm's base.
        xyz: Of its optical frame [m].
        quaternion: w, x, y, z.
        rpy: The same turn, for people; not read.
        sigma_xyz: Standard deviations [m]; not read.
        sigma_rotation: Standard deviations [rad]; not read.
        covariance: Of both; not read.
    """

    setup: Setup
    xyz: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    rpy: tuple[float, ...] = ()
    sigma_xyz: tuple[float, ...] = ()
    sigma_rotation: tuple[float, ...] = ()
    covariance: tuple[tuple[float, ...], ...] = ()


def read_mount(path: str | Path) -> SE3:
    """Pose of the camera's optical frame on the flange or in the base, as calibration found it.

    Raises:
        ConfigError: unreadable, or not of this form; names file, key and what would be right.
    """
    data = load(MountFile, path)
    return PoseText(data.xyz, data.quaternion).pose(str(path))


def sightings_text(setup: Setup, arm: Sequence[SE3], target: Sequence[SE3]) -> str:
    """The text of such a file."""
    lines = [f"setup: {setup}", "poses:"]
    for one, two in zip(arm, target, strict=True):
        lines += [f"  - arm: {_flow(one)}", f"    target: {_flow(two)}"]
    return "\n".join(lines) + "\n"


def result_text(result: HandEye) -> str:
    """YAML of the camera's pose, as URDF has it and as a quaternion, with standard deviations and covariance."""
    T, sigma = result.T_mount_camera, result.covariance.diagonal() ** 0.5
    rows = "\n".join(f"  - {_numbers(row)}" for row in result.covariance)
    return (
        f"# Pose of the camera's optical frame {'on the flange' if result.setup == 'eye-in-hand' else 'in the base'}.\n"
        f"setup: {result.setup}\nxyz: {_numbers(T.translation)}\nquaternion: {_numbers(T.rotation)}\n"
        f"rpy: {_numbers(T.rpy)}\nsigma_xyz: {_numbers(sigma[:3])}\nsigma_rotation: {_numbers(sigma[3:])}\n"
        f"covariance:\n{rows}\n"
    )


def _flow(T: SE3) -> str:
    return f"{{xyz: {_numbers(T.translation)}, quaternion: {_numbers(T.rotation)}}}"


def _numbers(values: Sequence[float] | NDArray[np.float64]) -> str:
    return "[" + ", ".join(f"{float(value):.9g}" for value in values) + "]"
