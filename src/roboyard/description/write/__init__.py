"""Writers: convert a `Model` or `World` to URDF, SDF or MJCF text, with a list of conversion losses."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.description.write.mjcf import write_mjcf
    from roboyard.description.write.result import FileNamer, WrittenDescription
    from roboyard.description.write.sdf import write_sdf
    from roboyard.description.write.urdf import write_urdf

__all__ = ["FileNamer", "WrittenDescription", "write_mjcf", "write_sdf", "write_urdf"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "mjcf": ("write_mjcf",),
    "result": ("FileNamer", "WrittenDescription"),
    "sdf": ("write_sdf",),
    "urdf": ("write_urdf",),
})  # fmt: skip
