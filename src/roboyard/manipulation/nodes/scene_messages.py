"""Shapes and scenes as moveit_msgs have them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from roboyard.description import Box, Capsule, Cone, Cylinder, Geometry, Plane, Sphere
from roboyard.description.shapes import InlineArray, Mesh
from roboyard.geometry import SE3
from roboyard.manipulation.collision import Attached, Obstacle, Voxels
from roboyard.manipulation.collision.building import PART
from roboyard.manipulation.nodes.move_codes import MoveError
from roboyard.manipulation.scene import PlanningScene
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg, pose_to_se3

_LARGEST: Final = 1e4
"""Of a shape's sizes [m]."""
_MOST_SHAPES: Final = 10_000
_MOST_TRIANGLES: Final = 100_000


def shapes_of(message: Any) -> list[tuple[Geometry, SE3]]:
    """Shapes of a moveit_msgs/CollisionObject, with poses in its header's frame. Raises MoveError, MessageError."""
    name = message.id
    T = pose_to_se3(message.pose)
    found: list[tuple[Geometry, SE3]] = []
    kinds = (
        ("primitives", "primitive_poses", _primitive),
        ("meshes", "mesh_poses", _mesh),
        ("planes", "plane_poses", _plane),
    )
    for key, poses_key, make in kinds:
        shapes, poses = getattr(message, key), getattr(message, poses_key)
        if len(poses) not in (len(shapes), 0) or (len(shapes) > 1 and not poses):
            raise MoveError(f"{len(shapes)} {key} and {len(poses)} poses of {name!r}", "bad_goal", valid="one each")
        for k, shape in enumerate(shapes):
            geometry, T_shape = make(shape, name)
            found.append((geometry, T @ (pose_to_se3(poses[k]) if poses else SE3.identity()) @ T_shape))
    if len(found) > _MOST_SHAPES:
        raise MoveError(f"{len(found)} shapes of {name!r}", "bad_goal", valid=f"at most {_MOST_SHAPES}")
    return found


def part_names(name: str, count: int) -> list[str]:
    """Names of the shapes of an object."""
    return [name if k == 0 else f"{name}{PART}{k}" for k in range(count)]


def parts_named(name: str, names: Sequence[str]) -> list[str]:
    """Those of the names that are shapes of an object."""
    return [one for one in names if one == name or one.startswith(name + PART)]


def _size(value: float, name: str) -> float:
    if not (0.0 < value <= _LARGEST):
        raise MoveError(f"a size of {value} m of {name!r}", "bad_goal", valid=f"more than 0, at most {_LARGEST:g}")
    return float(value)


def _primitive(shape: Any, name: str) -> tuple[Geometry, SE3]:
    kinds = msg.SolidPrimitive
    wanted = {kinds.BOX: 3, kinds.SPHERE: 1, kinds.CYLINDER: 2, kinds.CONE: 2}.get(shape.type)
    if wanted is None or len(shape.dimensions) < wanted:
        what = f"a primitive of kind {shape.type} with {len(shape.dimensions)} dimensions"
        raise MoveError(f"{what} of {name!r}", "bad_goal", valid="box 3, sphere 1, cylinder 2, cone 2")
    sizes = [_size(float(value), name) for value in shape.dimensions[:wanted]]
    if shape.type == kinds.BOX:
        return Box((sizes[0], sizes[1], sizes[2])), SE3.identity()
    if shape.type == kinds.SPHERE:
        return Sphere(sizes[0]), SE3.identity()
    if shape.type == kinds.CYLINDER:
        return Cylinder(sizes[1], sizes[0]), SE3.identity()
    return Cone(sizes[1], sizes[0]), SE3.identity()


def _mesh(shape: Any, name: str) -> tuple[Geometry, SE3]:
    vertices = np.array([(point.x, point.y, point.z) for point in shape.vertices], dtype=np.float64).reshape(-1, 3)
    triangles = np.array([one.vertex_indices for one in shape.triangles], dtype=np.int64).reshape(-1, 3)
    good = len(vertices) and len(triangles) and np.isfinite(vertices).all() and len(triangles) <= _MOST_TRIANGLES
    if not good or triangles.min() < 0 or triangles.max() >= len(vertices) or np.abs(vertices).max() > _LARGEST:
        raise MoveError(f"a mesh of {name!r} that is none", "bad_goal", valid="finite points, triangles between them")
    inline = InlineArray(vertices.astype(np.float32).tobytes(), triangles.astype(np.int32).tobytes())
    return Mesh(name, None, inline=inline), SE3.identity()


def _plane(shape: Any, name: str) -> tuple[Geometry, SE3]:
    a, b, c, d = (float(value) for value in shape.coef)
    length = math.hypot(a, b, c)
    if not (math.isfinite(length) and math.isfinite(d) and length > 1e-9):
        raise MoveError(f"a plane {a:g} {b:g} {c:g} {d:g} of {name!r}", "bad_goal", valid="finite, with a normal")
    normal = np.array([a, b, c]) / length
    x = np.cross((0.0, 1.0, 0.0) if abs(normal[1]) < 0.9 else (1.0, 0.0, 0.0), normal)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, :3] = np.stack([x, np.cross(normal, x), normal], axis=1)
    T[:3, 3] = -d / length * normal
    return Plane((0.0, 0.0, 1.0)), SE3.from_matrix(T)


def object_to_msg(one: Obstacle | Attached, frame: str, time_ns: int) -> Any:
    """moveit_msgs/CollisionObject of a shape, or None where there is no message for it."""
    T = one.T_world if isinstance(one, Obstacle) else one.T_link
    found = msg.moveit_msgs.CollisionObject(header=make_header(frame, time_ns), id=one.name, pose=pose_to_msg(T))
    kinds = msg.SolidPrimitive
    match one.geometry:
        case Box(size):
            shape = kinds(type=kinds.BOX, dimensions=np.array(size))
        case Sphere(radius):
            shape = kinds(type=kinds.SPHERE, dimensions=np.array([radius]))
        case Cylinder(radius, length):
            shape = kinds(type=kinds.CYLINDER, dimensions=np.array([length, radius]))
        case Cone(radius, length):
            shape = kinds(type=kinds.CONE, dimensions=np.array([length, radius]))
        case Capsule(radius, length):
            shape = kinds(type=kinds.CYLINDER, dimensions=np.array([length + 2.0 * radius, radius]))
        case Plane():
            found.planes, found.plane_poses = [msg.Plane(coef=np.array([0.0, 0.0, 1.0, 0.0]))], [msg.Pose()]
            return found
        case _:
            return None
    found.primitives, found.primitive_poses = [shape], [msg.Pose()]
    return found


def scene_to_msg(scene: PlanningScene, frame: str, time_ns: int, state: Any) -> Any:
    """moveit_msgs/PlanningScene of obstacles and of what is carried; voxels and meshes of files are left out."""
    world = [object_to_msg(one, frame, time_ns) for one in scene.obstacles.values() if not isinstance(one, Voxels)]
    state.attached_collision_objects = [
        msg.moveit_msgs.AttachedCollisionObject(
            link_name=one.link, object=shape, touch_links=list(one.touches)
        )
        for one in scene.attached.values()
        if (shape := object_to_msg(one, one.link, time_ns)) is not None
    ]  # fmt: skip
    return msg.moveit_msgs.PlanningScene(
        name="roboyard", robot_model_name=scene.groups.model.name, robot_state=state,
        world=msg.moveit_msgs.PlanningSceneWorld(collision_objects=[one for one in world if one is not None]),
    )  # fmt: skip
