"""Faults of the world: models that appear or disappear, devices that get a command, teleported robots, low friction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from roboyard.bringup.catalog import find_file
from roboyard.config import ValueConstraint, did_you_mean, parameter
from roboyard.description import Box, Collision, Cylinder, Inertial, Link, Material, Model, Sphere, Visual, load_model
from roboyard.description.extent import POSE_FORMAT, Pose
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, SE3
from roboyard.physics.compiled_world import FrictionPatch
from roboyard.scenarios.faults.robot_faults import SimulatedFaultEffect
from roboyard.scenarios.faults.schema import (
    ActionEffect,
    FaultConfig,
    FaultContext,
    FaultEffect,
    FaultKeyError,
    LastingFault,
    RobotFault,
    TriggeredFault,
    unknown_value_error,
)
from roboyard.simulation.faults import GroundFault

_PlanarPose = Annotated[tuple[float, float, float], ValueConstraint(units=("m", "m", "rad"))]
_SHAPE_DENSITY = 150.0
"""Density of the named shapes [kg/m³], as of cardboard with something in it; a rover can push a small one."""


@dataclass(frozen=True, kw_only=True)
class SpawnFault(FaultConfig):
    """A model appears."""

    model: str = parameter("box", doc="a path to a description, or `box`, `cylinder`, `sphere`")
    pose: Pose = parameter((0.0, 0.0, 0.0), doc=f"{POSE_FORMAT} in m and rad")
    name: str | None = parameter(None, doc="name of the model in the run; default: the model's and the fault's number")
    size: tuple[float, float, float] = parameter((0.4, 0.4, 0.4), unit="m", low=1e-3, doc="size of the named shapes")
    pose_noise: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0), low=0.0, high=1000.0, doc="x, y, yaw: largest difference of the pose from seed to seed"
    )

    def added_models(self, number: int) -> tuple[str, ...]:
        """Return the name of the spawned model."""
        return (self.name or f"{Path(self.model).stem}_{number}",)

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect that adds the model at its pose of this run."""
        (name,) = self.added_models(context.number)
        model = replace(self.load_model(context.run.base_folder), name=name)
        noise = (context.random().uniform(-1.0, 1.0, 3) * self.pose_noise).tolist()
        pose = _shift_pose(self.pose, *noise)
        return ActionEffect(
            f"{name} appeared at {pose[0]:.3g}, {pose[1]:.3g}", lambda: context.run.add_object(model, name, pose=pose)
        )

    def load_model(self, base_folder: Path | None) -> Model:
        """Return the model that appears: a named shape, or that of a description.

        Raises:
            InputError: There is no such file.
            DescriptionError: The file cannot be read.
        """
        if self.model in _SHAPES:
            geometry, mass, moments = _SHAPES[self.model](self.size)
            return _solid_model(self.model, geometry, mass, moments)
        return load_model(find_file(self.model, base_folder))


def _shift_pose(pose: Pose, dx: float, dy: float, dyaw: float) -> Pose:
    if len(pose) == 3:
        x, y, yaw = pose
        return x + dx, y + dy, yaw + dyaw
    x, y, z, roll, pitch, yaw = pose
    return x + dx, y + dy, z, roll, pitch, yaw + dyaw


_Moments = tuple[float, float, float]


def _box(size: tuple[float, float, float]) -> tuple[Box, float, _Moments]:
    x, y, z = size
    mass = _SHAPE_DENSITY * x * y * z
    inertia = (y * y + z * z, x * x + z * z, x * x + y * y)
    return Box(size), mass, (mass * inertia[0] / 12.0, mass * inertia[1] / 12.0, mass * inertia[2] / 12.0)


def _cylinder(size: tuple[float, float, float]) -> tuple[Cylinder, float, _Moments]:
    diameter, _, height = size
    mass = _SHAPE_DENSITY * math.pi * diameter * diameter / 4.0 * height
    lateral_moment = mass * (3.0 * diameter * diameter / 4.0 + height * height) / 12.0
    return (
        Cylinder(diameter / 2.0, height), mass, (lateral_moment, lateral_moment, mass * diameter * diameter / 8.0)
    )  # fmt: skip


def _sphere(size: tuple[float, float, float]) -> tuple[Sphere, float, _Moments]:
    diameter = size[0]
    mass = _SHAPE_DENSITY * math.pi * diameter**3 / 6.0
    moment = mass * diameter * diameter / 10.0
    return Sphere(diameter / 2.0), mass, (moment, moment, moment)


_SHAPES: dict[str, Callable[[tuple[float, float, float]], tuple[Box | Cylinder | Sphere, float, _Moments]]] = {
    "box": _box,
    "cylinder": _cylinder,
    "sphere": _sphere,
}
"""Functions that give geometry, mass [kg] and principal moments of inertia [kg m²] of a homogeneous solid from length,
width, height (of round ones: diameter, any, height) [m]."""


def _solid_model(name: str, geometry: Box | Cylinder | Sphere, mass: float, moments: _Moments) -> Model:
    identity = SE3.identity()
    link = Link(
        "link",
        identity,
        Inertial(mass, identity, (*moments, 0.0, 0.0, 0.0)),
        (Collision("collision", geometry, identity),),
        (Visual("visual", geometry, identity, Material("cardboard", (0.76, 0.6, 0.42, 1.0))),),
    )
    return Model(name, (link,))


@dataclass(frozen=True, kw_only=True)
class RemoveFault(FaultConfig):
    """A model disappears."""

    name: str = parameter("", doc="name of a spawned model or a robot")

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("key 'name' is missing", valid="the name of a spawned model or a robot")

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect that removes the model."""
        if self.name not in context.model_names:
            raise FaultKeyError(
                f"no model {self.name!r}{did_you_mean(self.name, context.model_names)}", location="name",
                valid=f"there are: {', '.join(context.model_names) or 'none'}",
            )  # fmt: skip
        return ActionEffect(f"{self.name} vanished", lambda: context.run.remove(self.name))


@dataclass(frozen=True, kw_only=True)
class DeviceCommandFault(TriggeredFault):
    """A device gets a command: a conveyor belt runs, a door opens."""

    name: str = parameter(doc="name of the device")
    value: float = parameter(
        low=-100.0, high=100.0, doc="m/s of a belt, rad/s of a turntable, how far a door is open (0 to 1)"
    )

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect that sends the command."""
        devices = context.run.devices
        if self.name not in devices:
            raise unknown_value_error("device", "name", self.name, list(devices))

        def send_command() -> None:
            if self.name in devices:  # another fault may have removed it
                devices[self.name].set_command(self.value)

        return ActionEffect(f"{self.name} moves to {self.value:g}", send_command)


@dataclass(frozen=True, kw_only=True)
class TeleportFault(RobotFault):
    """A robot is put elsewhere, upright and at rest; its wheels measure nothing of it.

    The log and diagnostics treat it as a fault that lasts until the end of the run: nothing reverts it.
    """

    is_momentary: ClassVar[bool] = False
    pose: _PlanarPose = parameter(doc="[x, y, yaw] at which the robot is put")

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect that moves the robot."""
        simulation, robot, pose = context.run.simulation, self.find_model(context.run), SE2(*self.pose)
        simulation.world.free_joint(robot)

        def teleport() -> None:
            if robot in simulation.models:  # another fault may have removed it
                simulation.world.set_planar_pose(robot, pose)

        return ActionEffect(f"{robot} was carried to {pose.x:g}, {pose.y:g}", teleport)


@dataclass(frozen=True, kw_only=True)
class LowFrictionFault(LastingFault):
    """A rectangle of the ground has another friction; the smaller one of ground and wheel counts."""

    pose: _PlanarPose = parameter(doc="[x, y, yaw] of the middle of the rectangle")
    size: tuple[float, float] = parameter(unit="m", low=1e-3, high=1e4, doc="[length, width]")
    friction: float = parameter(0.1, low=0.0, high=10.0, doc="Coulomb's coefficient of the ground in it")

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect that changes the friction of the rectangle."""
        (x, y, yaw), (length, width) = self.pose, self.size
        description = f"slippery ground ({self.friction:g}) at {x:g}, {y:g}"
        return SimulatedFaultEffect(
            description, context, GroundFault(FrictionPatch(x, y, yaw, length, width, self.friction)), key=""
        )
