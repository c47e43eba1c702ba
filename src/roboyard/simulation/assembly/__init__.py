"""From descriptions to a compiled physics model with tables that lead back to the names."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.assembly.records import (
        Assembled,
        Entry,
        Flesh,
        GeomTables,
        JointPlace,
        LinkPlace,
        Placement,
    )
    from roboyard.simulation.assembly.world import assemble

__all__ = ["Assembled", "Entry", "Flesh", "GeomTables", "JointPlace", "LinkPlace", "Placement", "assemble"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "records": ("Assembled", "Entry", "Flesh", "GeomTables", "JointPlace", "LinkPlace", "Placement"),
    "world": ("assemble",),
})  # fmt: skip
