"""From descriptions to a compiled physics model with tables that lead back to the names."""

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
