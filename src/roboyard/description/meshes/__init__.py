"""Meshes: files, geometry, collision approximation, mass properties, and generation of a URDF from meshes.

All functions work on `TriangleMesh`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.description.meshes.convex import ConvexDecomposition, decompose_convex, hull_decomposition
    from roboyard.description.meshes.distance import (
        MeshDistance,
        SimplifiedMesh,
        hausdorff_distance,
        simplify_to_count,
        simplify_to_error,
    )
    from roboyard.description.meshes.files import read_mesh, write_stl
    from roboyard.description.meshes.mass_properties import (
        MassProperties,
        combine_mass_properties,
        compute_mass_properties,
        compute_origin_transform,
    )
    from roboyard.description.meshes.mesh import TriangleMesh, concatenate_meshes, merge_vertices
    from roboyard.description.meshes.primitives import (
        CollisionApproximation,
        FittedPrimitive,
        approximate_collision,
        fit_primitive,
        fit_primitives,
    )
    from roboyard.description.meshes.repair import repair_mesh
    from roboyard.description.meshes.robot_from_meshes import LinkAttachment, distribute_mass, write_robot_urdf
    from roboyard.description.meshes.splitting import split_by_boxes, split_by_planes, split_components

__all__ = [
    "CollisionApproximation",
    "ConvexDecomposition",
    "FittedPrimitive",
    "LinkAttachment",
    "MassProperties",
    "MeshDistance",
    "SimplifiedMesh",
    "TriangleMesh",
    "approximate_collision",
    "combine_mass_properties",
    "compute_mass_properties",
    "compute_origin_transform",
    "concatenate_meshes",
    "decompose_convex",
    "distribute_mass",
    "fit_primitive",
    "fit_primitives",
    "hausdorff_distance",
    "hull_decomposition",
    "merge_vertices",
    "read_mesh",
    "repair_mesh",
    "simplify_to_count",
    "simplify_to_error",
    "split_by_boxes",
    "split_by_planes",
    "split_components",
    "write_robot_urdf",
    "write_stl",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(__name__, {
    "convex": ("ConvexDecomposition", "decompose_convex", "hull_decomposition"),
    "distance": ("MeshDistance", "SimplifiedMesh", "hausdorff_distance", "simplify_to_count", "simplify_to_error"),
    "files": ("read_mesh", "write_stl"),
    "mass_properties": (
        "MassProperties", "combine_mass_properties", "compute_mass_properties", "compute_origin_transform",
    ),
    "mesh": ("TriangleMesh", "concatenate_meshes", "merge_vertices"),
    "primitives": (
        "CollisionApproximation", "FittedPrimitive", "approximate_collision", "fit_primitive", "fit_primitives",
    ),
    "repair": ("repair_mesh",),
    "robot_from_meshes": ("LinkAttachment", "distribute_mass", "write_robot_urdf"),
    "splitting": ("split_by_boxes", "split_by_planes", "split_components"),
})  # fmt: skip
