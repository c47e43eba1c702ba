"""Records of a description: models and worlds, their links, joints, actors, and a reader's warnings and repairs.

Readers (URDF, xacro, SDF, MJCF) produce these frozen records; simulation, control and planning use them. They are
independent of file formats. Lengths in m, angles in rad, masses in kg; poses are `SE3` named `T_a_b` (maps b
coordinates to a).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from roboyard.description.sensors import Sensor
from roboyard.description.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Heightmap,
    InlineArray,
    Mesh,
    Plane,
    Polyline,
    Rgba,
    Sphere,
)
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Vec3
from roboyard.geometry.constants import SDF_GRAVITY_VECTOR

__all__ = [
    "ActorClip",
    "ActorScript",
    "ActorTrajectory",
    "Axis",
    "AxisLimits",
    "Box",
    "Capsule",
    "Collision",
    "CommandMode",
    "Cone",
    "Cylinder",
    "Ellipsoid",
    "Frame",
    "GeodeticOrigin",
    "Geometry",
    "Heightmap",
    "Inertial",
    "InlineArray",
    "Joint",
    "JointDynamics",
    "JointInterface",
    "JointType",
    "Light",
    "Link",
    "Material",
    "Mesh",
    "Mimic",
    "Model",
    "PhysicsRequest",
    "PlacedModel",
    "Plane",
    "Plugin",
    "Polyline",
    "ReaderWarning",
    "Repair",
    "Rgba",
    "SafetyController",
    "Sphere",
    "Surface",
    "Visual",
    "World",
    "XmlElement",
]  # fmt: skip


CommandMode = Literal["position", "velocity", "effort"]


@dataclass(frozen=True, slots=True)
class ActorClip:
    """Animation of an actor.

    Attributes:
        name: Name that trajectories refer to.
        uri: URI as in the file.
        file: Resolved file; None if not found.
        by_distance: Whether the animation advances with distance instead of time (``<interpolate_x>``).
    """

    name: str
    uri: str
    file: Path | None
    by_distance: bool = False


@dataclass(frozen=True, slots=True)
class ActorTrajectory:
    """Trajectory of an actor.

    Attributes:
        clip: Name of the animation shown on it.
        waypoints: (time [s], pose in the world), by increasing time.
    """

    clip: str
    waypoints: tuple[tuple[float, SE3], ...]


@dataclass(frozen=True, slots=True)
class ActorScript:
    """Script of an actor.

    Attributes:
        clips: Animations.
        trajectories: Trajectories, one after the other.
        loop: Whether the script repeats.
        delay: Delay before each start [s].
        auto_start: Whether the script starts by itself.
    """

    clips: tuple[ActorClip, ...] = ()
    trajectories: tuple[ActorTrajectory, ...] = ()
    loop: bool = True
    delay: float = 0.0
    auto_start: bool = True


JointType = Literal[
    "fixed",
    "revolute",
    "continuous",
    "prismatic",
    "ball",
    "universal",
    "screw",
    "revolute2",
    "gearbox",
    "planar",
    "floating",
]


@dataclass(frozen=True, slots=True)
class AxisLimits:
    """Limits of position, velocity and effort of an axis; infinite if not specified [rad, rad/s, N m or m, m/s, N]."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf


@dataclass(frozen=True, slots=True)
class JointDynamics:
    """Passive dynamics of an axis: viscous damping, Coulomb friction, spring, rotor inertia (MJCF, URDF)."""

    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    reference: float = 0.0
    armature: float = 0.0


@dataclass(frozen=True, slots=True)
class Axis:
    """Joint axis, a unit vector in the joint frame."""

    xyz: Vec3 = (1.0, 0.0, 0.0)
    limits: AxisLimits = AxisLimits()
    dynamics: JointDynamics = JointDynamics()


@dataclass(frozen=True, slots=True)
class Mimic:
    """Mimic relation: position = multiplier · position(joint) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class SafetyController:
    """URDF's safety controller: soft limits inside the hard ones, and the gains that act towards them.

    Attributes:
        soft_lower: Lower soft limit [rad or m]; no effect if both limits are equal.
        soft_upper: Upper soft limit [rad or m].
        k_position: Allowed speed per distance to a soft limit [1/s]; 0 disables the soft range.
        k_velocity: Allowed effort per remaining speed [N m s/rad or N s/m]; 0 does not limit the effort.
    """

    soft_lower: float = 0.0
    soft_upper: float = 0.0
    k_position: float = 0.0
    k_velocity: float = 0.0


@dataclass(frozen=True, slots=True)
class Joint:
    """Joint between `parent` and `child` links (`parent` may be ``"world"``).

    `T_parent_child` is the child link's pose in the parent link at zero; `T_child_joint` is the pose of the joint frame
    in the child link (identity in URDF).  `axes` has one entry for revolute, continuous, prismatic and screw, two for
    universal, revolute2 and gearbox, none for fixed, ball and floating; planar has the plane's normal. `thread_pitch`
    of a screw: meters along the axis per positive revolution (SDF's ``screw_thread_pitch``). A gearbox enforces
    ``angle(axis 2) = -gear_ratio · angle(axis 1)`` relative to `gear_reference`. `ball_axis` of a ball joint:
    ``limits.upper`` bounds its rotation angle from zero, ``dynamics`` acts about every direction (MJCF only).
    """

    name: str
    type: JointType
    parent: str
    child: str
    T_parent_child: SE3
    T_child_joint: SE3
    axes: tuple[Axis, ...] = ()
    mimic: Mimic | None = None
    thread_pitch: float = 0.0
    gear_ratio: float = 1.0
    gear_reference: str | None = None
    safety: SafetyController | None = None
    ball_axis: Axis | None = None


@dataclass(frozen=True, slots=True)
class ReaderWarning:
    """Warning of a reader about something that it ignored or guessed, with its location."""

    message: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Repair:
    """Fault in a file, and its repair.

    Attributes:
        problem: The fault, with the link or joint.
        action: The repair.
        valid: Valid values.
        file: File with the fault.
        line: Line of the fault.
        is_required: Whether the file is rejected without the repair; other faults are only warnings.
    """

    problem: str
    action: str
    valid: str
    file: str
    line: int
    is_required: bool = True

    @property
    def error_text(self) -> str:
        """Text of the fault alone, as the error message states it."""
        return f"{self.file}:{self.line}: {self.problem}" + (f" ({self.valid})" if self.valid else "")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.problem}: {self.action}"


# -- links -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Material:
    """Appearance of a visual.

    Attributes:
        name: Name of the material; "" without one.
        rgba: Diffuse color.
        texture: Resolved image file.
        emissive: Color of the light that it emits; black = none.
        mirror: Whether it is polished metal, which reflects light beams.
        is_explicit: Whether the description itself defines the material; a mesh file's own materials are used only if
            not.
    """

    name: str = ""
    rgba: Rgba = (0.7, 0.7, 0.7, 1.0)
    texture: Path | None = None
    emissive: Vec3 = (0.0, 0.0, 0.0)
    mirror: bool = False
    is_explicit: bool = True


@dataclass(frozen=True, slots=True)
class Surface:
    """Contact properties.

    Attributes:
        friction: Coulomb coefficient along the first direction (ODE ``mu``, URDF ``mu1``).
        friction2: Coulomb coefficient along the second direction; None = same as ``friction``.
        friction_direction: First friction direction, a unit vector; None = not specified.
        friction_direction_frame: Link in whose frame the direction is expressed; None = the collision's own frame
            (``gz:expressed_in``).
        torsional: Torsional friction coefficient [m]; None = engine default.
        rolling: Rolling friction coefficient [m]; None = engine default.
        slip: ODE force-dependent slip 1/(N s/m) along both directions.
        stiffness: Contact stiffness [N/m]; None = engine default.
        damping: Contact damping [N s/m]; None = engine default.
        restitution: 0 inelastic … 1 elastic.
        collide: False when the description disables contacts (``collide_bitmask`` 0).
    """

    friction: float = 1.0
    friction2: float | None = None
    friction_direction: Vec3 | None = None
    friction_direction_frame: str | None = None
    torsional: float | None = None
    rolling: float | None = None
    slip: tuple[float, float] = (0.0, 0.0)
    stiffness: float | None = None
    damping: float | None = None
    restitution: float = 0.0
    collide: bool = True


@dataclass(frozen=True, slots=True)
class Collision:
    """Collision shape of a link."""

    name: str
    geometry: Geometry
    T_link_geom: SE3
    surface: Surface = Surface()


@dataclass(frozen=True, slots=True)
class Visual:
    """Visual shape of a link."""

    name: str
    geometry: Geometry
    T_link_geom: SE3
    material: Material = Material(is_explicit=False)
    cast_shadows: bool = True


MOMENT_NAMES = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
"""Names of the entries of `Inertial.inertia`, in order, as in URDF and SDF."""


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass [kg], center-of-mass frame, and inertia about it (ixx, iyy, izz, ixy, ixz, iyz) [kg m²]."""

    mass: float
    T_link_com: SE3
    inertia: tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Link:
    """Rigid body.  `T_model_link` is its pose in the model frame with every joint at zero.

    If `inertial` is None, the file has none; the link is massless (URDF) and moves with its parent.
    """

    name: str
    T_model_link: SE3
    inertial: Inertial | None = None
    collisions: tuple[Collision, ...] = ()
    visuals: tuple[Visual, ...] = ()
    gravity: bool = True
    self_collide: bool = False


# -- interfaces and plugins --------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class JointInterface:
    """Interface of a joint, from a ``<ros2_control>`` block or a ``<transmission>``.

    `commands` has (mode, min, max) for modes "position", "velocity", "effort"; `states` has the readable quantities;
    `initial` maps a state name to its initial value; `reduction` is the transmission's mechanical reduction.
    """

    joint: str
    commands: tuple[tuple[str, float, float], ...] = ()
    states: tuple[str, ...] = ()
    initial: tuple[tuple[str, float], ...] = ()
    reduction: float = 1.0
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class XmlElement:
    """Format-independent tree of an XML element, for example in a plugin: tag, text, attributes, children, location."""

    tag: str
    text: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[XmlElement, ...] = ()
    line: int = 0
    file: str = field(default="", compare=False)

    def find(self, tag: str) -> XmlElement | None:
        """Return the first child with this tag, or None."""
        return next((child for child in self.children if child.tag == tag), None)

    def find_all(self, tag: str) -> tuple[XmlElement, ...]:
        """Return all children with this tag."""
        return tuple(child for child in self.children if child.tag == tag)


@dataclass(frozen=True, slots=True)
class Plugin:
    """Simulator plugin as written in the file; bring-up maps it to nodes."""

    name: str
    filename: str
    element: XmlElement
    link: str | None = None


GROUND_PLUGIN = Plugin(
    "roboyard::Ground",
    "roboyard-ground",
    XmlElement("plugin", attributes=(("filename", "roboyard-ground"), ("name", "roboyard::Ground"))),
)
"""The plugin with which a static model declares that all its shapes are ground, such as a ramp or steps."""


# -- models, worlds ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Frame:
    """Named frame on a link: SDF's ``<frame>``, and the origin of each nested model (``nested::__model__``)."""

    name: str
    link: str
    T_link_frame: SE3


@dataclass(frozen=True, slots=True)
class Model:
    """Model of a robot or device: links connected by joints, with its sensors, interfaces and plugins.

    Invariants that the readers guarantee: names are unique within their kind; every joint's parent and child exist;
    each link is the child of at most one joint and there is no cycle (a forest); masses are positive; inertia matrices
    are positive definite and fulfill the triangle inequality.  A root link moves freely unless the model is static or a
    joint connects the root to ``"world"``.

    Attributes:
        loop_joints: Joints that close a kinematic loop (SDF only): both of their links are in the tree already, so
            engines implement them as constraints.
        frames: Named frames on links.
        repairs: Faults of the file that were repaired on request.
        disabled_collisions: Pairs of links whose collisions with each other are disabled.
        actor_script: Script of the actor, if the model represents an SDF actor.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    interfaces: tuple[JointInterface, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    static: bool = False
    canonical_link: str | None = None
    source: Path | None = None
    warnings: tuple[ReaderWarning, ...] = ()
    frames: tuple[Frame, ...] = ()
    loop_joints: tuple[Joint, ...] = ()
    repairs: tuple[Repair, ...] = ()
    disabled_collisions: tuple[tuple[str, str], ...] = ()
    actor_script: ActorScript | None = None

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return sum(link.inertial.mass for link in self.links if link.inertial)

    @property
    def roots(self) -> tuple[Link, ...]:
        """Root links, those that are not the child of a joint, in file order."""
        children = {joint.child for joint in self.joints}
        return tuple(link for link in self.links if link.name not in children)

    def fixed_to_world(self) -> Model:
        """Return the model with every root fixed to the world."""
        fixed_joints = (
            Joint(f"{root.name}_to_world", "fixed", "world", root.name, SE3.identity(), SE3.identity())
            for root in self.roots
        )
        return replace(self, joints=(*self.joints, *fixed_joints))

    def link(self, name: str) -> Link:
        """Return the link of this name. Raises KeyError."""
        for link in self.links:
            if link.name == name:
                return link
        raise KeyError(name)

    def joint(self, name: str) -> Joint:
        """Return the joint of this name. Raises KeyError."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class PlacedModel:
    """Model with its pose in a world."""

    name: str
    model: Model
    T_world_model: SE3


@dataclass(frozen=True, slots=True)
class Light:
    """Light source: directional, point or spot.

    Attributes:
        attenuation: Constant [1], linear [1/m] and quadratic [1/m²] coefficients of attenuation.
        range: Distance beyond which there is no light [m]; infinite if not specified.
        outer_angle: Half angle of a spot [rad].
        falloff: Rate at which a spot gets darker from its center to its rim, as in SDF.
    """

    name: str
    type: Literal["directional", "point", "spot"] = "directional"
    T_world_light: SE3 = field(default_factory=SE3.identity)
    direction: Vec3 = (0.0, 0.0, -1.0)
    diffuse: Rgba = (0.8, 0.8, 0.8, 1.0)
    specular: Rgba = (0.2, 0.2, 0.2, 1.0)
    cast_shadows: bool = True
    attenuation: Vec3 = (1.0, 0.0, 0.0)
    range: float = math.inf
    outer_angle: float = math.pi / 4.0
    falloff: float = 10.0


@dataclass(frozen=True, slots=True)
class PhysicsRequest:
    """Engine settings requested by the file; None = default."""

    max_step_size: float | None = None


@dataclass(frozen=True, slots=True)
class GeodeticOrigin:
    """Geodetic position of a world's origin in WGS 84.

    Attributes:
        latitude: Latitude [rad].
        longitude: Longitude [rad].
        elevation: Height above the ellipsoid [m].
        heading: Angle from east to the world's x axis, counter-clockwise [rad].
    """

    latitude: float = 0.0
    longitude: float = 0.0
    elevation: float = 0.0
    heading: float = 0.0


@dataclass(frozen=True, slots=True)
class World:
    """World: models, lights, gravity, the magnetic field [T] in world axes, and the geodetic origin.

    `joints` connect models to each other or to the world; their links are named ``model::link``.
    """

    name: str
    models: tuple[PlacedModel, ...] = ()
    lights: tuple[Light, ...] = ()
    joints: tuple[Joint, ...] = ()
    gravity: Vec3 = SDF_GRAVITY_VECTOR
    physics: PhysicsRequest = PhysicsRequest()
    ambient: Rgba = (0.4, 0.4, 0.4, 1.0)
    background: Rgba = (0.7, 0.8, 0.9, 1.0)
    magnetic_field: Vec3 = (5.5645e-6, 22.8758e-6, -42.3884e-6)
    origin: GeodeticOrigin = GeodeticOrigin()
    plugins: tuple[Plugin, ...] = ()
    source: Path | None = None
    warnings: tuple[ReaderWarning, ...] = ()
    repairs: tuple[Repair, ...] = ()
