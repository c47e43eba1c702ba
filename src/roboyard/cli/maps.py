"""Maps that are told on a topic, kept as files of ROS's map_server."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from roboyard.cli.lookup import Source

_TYPE: Final = "nav_msgs/msg/OccupancyGrid"
_PATIENCE: Final = 20.0
"""How long a live run may be silent on the topic [wall s]."""


@dataclass(frozen=True, slots=True)
class KeptMap:
    """A map in a file.

    Attributes:
        file: The YAML.
        topic: Where it was told.
        time: When [s].
        width: Cells.
        height: Cells.
        resolution: Side of a cell [m].
    """

    file: str
    topic: str
    time: float
    width: int
    height: int
    resolution: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        size = f"{self.width} x {self.height} cells of {self.resolution:g} m"
        return f"{self.file}: {size}, {self.topic} at {self.time:.3f} s"


def keep_map(source: Source, topic: str, file: Path, mode: str) -> KeptMap:
    """Write the map that a recording tells last, or a live run next, which a latched one is at once.

    Args:
        source: A live run or a recording.
        topic: Where maps are told.
        file: The YAML file to write.
        mode: "trinary", "scale" or "raw".

    Raises:
        UnknownNameError: there is no such topic.
        InputError: no map is told there, or the file cannot be written.
    """
    from roboyard.errors import InputError
    from roboyard.mapping import MapMode, save_map
    from roboyard.mapping.nodes.map_messages import map_from_msg

    view = source.topic(topic)
    if view.type != _TYPE:
        maps = sorted(other.name for other in source.topics() if other.type == _TYPE)
        raise InputError(
            f"{view.name} carries {view.type}",
            location=source.where,
            valid=f"maps: {', '.join(maps) or 'there are none'}",
        )
    last = None
    for heard in source.messages([view.name], _PATIENCE):
        last = heard
        if source.live:
            break
    if last is None:
        raise InputError(f"no map came on {view.name}", location=source.where, valid="a topic on which a map is told")
    grid = map_from_msg(last.message)
    path = save_map(file, grid, MapMode(mode))
    rows, columns = grid.cells.shape
    return KeptMap(str(path), view.name, last.time_ns * 1e-9, columns, rows, grid.geometry.resolution)
