"""Mesh tools: a surface that somebody exported becomes links with light visuals, simple collisions and weighed inertia.

Everything works on a `Surface` of arrays; ``files`` reads and writes, ``robot`` puts a URDF together.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.description.mesh_tools.covering import Cover, cover
    from roboyard.description.mesh_tools.files import read_surface, write_stl
    from roboyard.description.mesh_tools.fitting import Fitted, fit, fits
    from roboyard.description.mesh_tools.inertia import MassProperties, combined, mass_properties
    from roboyard.description.mesh_tools.mending import closed_surface
    from roboyard.description.mesh_tools.nearness import Nearness, hausdorff
    from roboyard.description.mesh_tools.pieces import Decomposed, as_hull, decomposed
    from roboyard.description.mesh_tools.placing import T_new_old
    from roboyard.description.mesh_tools.reducing import Reduced, to_error, to_triangles
    from roboyard.description.mesh_tools.robot import Attached, make_robot, share_mass
    from roboyard.description.mesh_tools.splitting import by_boxes, by_components, by_planes
    from roboyard.description.mesh_tools.surface import Surface, joined, welded

__all__ = [
    "Attached", "Cover", "Decomposed", "Fitted", "MassProperties", "Nearness", "Reduced", "Surface", "T_new_old",
    "as_hull", "by_boxes", "by_components", "by_planes", "closed_surface", "combined", "cover", "decomposed", "fit",
    "fits", "hausdorff", "joined", "make_robot", "mass_properties", "read_surface", "share_mass", "to_error",
    "to_triangles", "welded", "write_stl",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(__name__, {
    "covering": ("Cover", "cover"),
    "files": ("read_surface", "write_stl"),
    "fitting": ("Fitted", "fit", "fits"),
    "inertia": ("MassProperties", "combined", "mass_properties"),
    "mending": ("closed_surface",),
    "nearness": ("Nearness", "hausdorff"),
    "pieces": ("Decomposed", "as_hull", "decomposed"),
    "placing": ("T_new_old",),
    "reducing": ("Reduced", "to_error", "to_triangles"),
    "robot": ("Attached", "make_robot", "share_mass"),
    "splitting": ("by_boxes", "by_components", "by_planes"),
    "surface": ("Surface", "joined", "welded"),
})  # fmt: skip
