"""What depth cameras see at one moment: the truth, an ideal camera, and the one that errs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import DepthNoise, Noise
from roboyard.geometry import SE3, CameraModel
from roboyard.simulation import Simulation
from roboyard.simulation.sensors.cameras.camera import Camera, CameraReading, Shot, develop
from roboyard.simulation.sensors.cameras.studio import Studio

_MOST = 4
"""Cameras that are looked through."""
_WANTED = frozenset(("image", "depth"))


@dataclass(frozen=True, slots=True)
class Look:
    """What one depth camera saw at the end of a run.

    Attributes:
        robot: Whose.
        camera: Its name.
        colour: (h, w, 3); None: it has none.
        truth: (h, w) depth by exact rays [m], not a number where nothing is within its range.
        ideal: The same by the camera without its errors.
        measured: The same as it measures it.
        far: Its range [m].
    """

    robot: str
    camera: str
    colour: NDArray[np.uint8] | None
    truth: NDArray[np.float64]
    ideal: NDArray[np.float64]
    measured: NDArray[np.float64]
    far: float

    def error(self, depth: NDArray[np.float64]) -> float:
        """Median distance from the truth where both are known [m]; not a number if nowhere."""
        known = np.isfinite(depth) & np.isfinite(self.truth)
        return float(np.median(np.abs(depth - self.truth)[known])) if known.any() else float("nan")

    def share(self, depth: NDArray[np.float64]) -> float:
        """Share of the pixels with a true depth that have one."""
        known = np.isfinite(self.truth)
        return float(np.isfinite(depth)[known].mean()) if known.any() else 0.0

    @property
    def text(self) -> str:
        """Its figures, in a line."""
        ideal, measured = self.error(self.ideal), self.error(self.measured)
        return (
            f"{self.robot}, {self.camera}: median error {1e3 * ideal:.2f} mm ideal, {1e3 * measured:.1f} mm measured; "
            f"{self.share(self.measured):.1%} of the pixels within its range are"
        )


def depth_seen(simulation: Simulation, robot: str) -> tuple[float, float, float] | None:
    """Of a robot's first depth camera, see `roboyard.scenarios.metrics.depth.Sight`."""
    if not simulation.looks.used or robot not in simulation.models:
        return None
    for look in look_again(simulation, robot):
        return look.error(look.measured), look.error(look.ideal), look.share(look.measured)
    return None


def look_again(simulation: Simulation, robot: str | None = None) -> list[Look]:
    """Of each depth camera, or of one robot's, at this instant; at most a few."""
    found = [
        (sensor, sensor.spec.depth)
        for name in (simulation.models if robot is None else (robot,))
        for sensor in simulation.sensors(name)
        if isinstance(sensor, Camera) and sensor.spec.depth is not None
    ]
    if not found:
        return []
    exact = Studio("rays")
    try:
        return [_look(simulation, sensor, lens, exact) for sensor, lens in found[:_MOST]]
    finally:
        exact.close()


def _look(simulation: Simulation, sensor: Camera, lens: CameraModel, exact: Studio) -> Look:
    spec = sensor.spec
    shot: Shot = sensor.shoot()
    plain = replace(spec, depth_noise=DepthNoise(), noise=Noise())
    measured = sensor.develop(shot, _WANTED).result()
    ideal: CameraReading = simulation.studio.submit(develop, shot, plain, _WANTED).result()
    T = shot.T_world_optical @ (spec.T_color_depth if spec.color is not None else SE3.identity())
    truth = exact.submit(_depth, shot, lens, T, min(spec.near, spec.depth_near)).result()
    within = (truth >= spec.depth_near) & (truth <= spec.depth_far)
    return Look(
        sensor.robot, sensor.sensor.name, measured.colour, np.where(within, truth, np.nan).astype(np.float64),
        _known(ideal, lens), _known(measured, lens), spec.depth_far,
    )  # fmt: skip


def _depth(room: Any, shot: Shot, lens: CameraModel, T_world_optical: SE3, near: float) -> NDArray[np.float32]:
    room.enter(shot.scene, shot.posture)
    depth: NDArray[np.float32] = room.view(lens, T_world_optical, near, colour=False).depth
    return depth


def _known(reading: CameraReading, lens: CameraModel) -> NDArray[np.float64]:
    nothing = np.full((lens.height, lens.width), np.nan)
    values = nothing if reading.depth is None else np.asarray(reading.depth, dtype=np.float64)
    return np.where(np.isfinite(values) & (values > 0.0), values, np.nan)
