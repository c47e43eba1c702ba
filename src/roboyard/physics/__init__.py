"""Physics: a world compiled to MuJoCo and stepped exactly; servos, contacts, compliant bodies and ground truth.

`compile_world` makes a `CompiledWorld` of descriptions.  `roboyard.simulation` adds sensors, people, faults and nodes.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.physics.compiled_world import CompiledWorld, FrictionPatch, LinkCompliance, ModelAddresses, ModelEntry
    from roboyard.physics.compiler.world import compile_world
    from roboyard.physics.compliant_bodies import CompliantBodyTable
    from roboyard.physics.contacts import ContactEpisode, ContactMonitor, ContactPoint
    from roboyard.physics.grasps import GraspConstraint, GraspConstraints
    from roboyard.physics.servos import JointServo, ServoBank, ServoGains
    from roboyard.physics.settings import PhysicsSettings
    from roboyard.physics.visual_scene import SceneState, VisualScene
    from roboyard.physics.world import GroundTruth, PhysicsWorld

__all__ = [
    "CompiledWorld",
    "CompliantBodyTable",
    "ContactEpisode",
    "ContactMonitor",
    "ContactPoint",
    "FrictionPatch",
    "GraspConstraint",
    "GraspConstraints",
    "GroundTruth",
    "JointServo",
    "LinkCompliance",
    "ModelAddresses",
    "ModelEntry",
    "PhysicsSettings",
    "PhysicsWorld",
    "SceneState",
    "ServoBank",
    "ServoGains",
    "VisualScene",
    "compile_world",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "compiled_world": ("CompiledWorld", "LinkCompliance", "FrictionPatch", "ModelAddresses", "ModelEntry"),
    "compiler.world": ("compile_world",),
    "compliant_bodies": ("CompliantBodyTable",),
    "contacts": ("ContactEpisode", "ContactMonitor", "ContactPoint"),
    "grasps": ("GraspConstraint", "GraspConstraints"),
    "servos": ("JointServo", "ServoBank", "ServoGains"),
    "settings": ("PhysicsSettings",),
    "visual_scene": ("SceneState", "VisualScene"),
    "world": ("GroundTruth", "PhysicsWorld"),
})  # fmt: skip
