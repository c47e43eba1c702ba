"""Mesh tools: a surface that somebody exported becomes links with light visuals, simple collisions and weighed inertia.

Everything works on a `TriangleMesh` of arrays; ``files`` reads and writes, ``robot`` puts a URDF together.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.description.mesh_tools.covering import CollisionApproximation, approximate_collision
    from roboyard.description.mesh_tools.files import read_mesh, write_stl
    from roboyard.description.mesh_tools.fitting import FittedPrimitive, fit_primitive, fit_primitives
    from roboyard.description.mesh_tools.inertia import MassProperties, combine_mass_properties, compute_mass_properties
    from roboyard.description.mesh_tools.mending import repair_mesh
    from roboyard.description.mesh_tools.nearness import MeshDistance, hausdorff_distance
    from roboyard.description.mesh_tools.pieces import ConvexDecomposition, decompose_convex, hull_decomposition
    from roboyard.description.mesh_tools.placing import compute_origin_transform
    from roboyard.description.mesh_tools.reducing import SimplifiedMesh, simplify_to_count, simplify_to_error
    from roboyard.description.mesh_tools.robot import LinkAttachment, distribute_mass, write_robot_urdf
    from roboyard.description.mesh_tools.splitting import split_by_boxes, split_by_planes, split_components
    from roboyard.description.mesh_tools.surface import TriangleMesh, concatenate_meshes, merge_vertices

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
    "covering": ("CollisionApproximation", "approximate_collision"),
    "files": ("read_mesh", "write_stl"),
    "fitting": ("FittedPrimitive", "fit_primitive", "fit_primitives"),
    "inertia": ("MassProperties", "combine_mass_properties", "compute_mass_properties"),
    "mending": ("repair_mesh",),
    "nearness": ("MeshDistance", "hausdorff_distance"),
    "pieces": ("ConvexDecomposition", "hull_decomposition", "decompose_convex"),
    "placing": ("compute_origin_transform",),
    "reducing": ("SimplifiedMesh", "simplify_to_error", "simplify_to_count"),
    "robot": ("LinkAttachment", "write_robot_urdf", "distribute_mass"),
    "splitting": ("split_by_boxes", "split_components", "split_by_planes"),
    "surface": ("TriangleMesh", "concatenate_meshes", "merge_vertices"),
})  # fmt: skip
