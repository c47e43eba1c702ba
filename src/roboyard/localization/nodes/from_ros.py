"""Nodes that also take the parameter files of the ROS node they stand in for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from roboyard.bus import Node, param
from roboyard.localization.ros_parameters import ros_parameters


class FromRosFile(Node):
    """Base of such nodes.

    What is given to the node itself counts more than what the file says.  Parameters of the ROS node that this one does
    not have are named in a warning.

    Attributes:
        ros_names: Names of the node in such files.
        renamed: Names of parameters there that are called otherwise here.
        needless: Names there that say nothing about the result; no warning.
    """

    ros_names: ClassVar[tuple[str, ...]] = ()
    renamed: ClassVar[dict[str, str]] = {}
    needless: ClassVar[frozenset[str]] = frozenset({"use_sim_time", "save_pose_rate", "print_diagnostics", "debug"})

    params_file: str = param(
        "", doc="ROS parameter file with this node's section; path from where the run starts", fixed=True
    )

    def __init__(self, **given: Any) -> None:
        self._unknown: tuple[str, ...] = ()
        path = given.get("params_file")
        if isinstance(path, str) and path:
            said = {
                self.renamed.get(key, key): value for key, value in ros_parameters(Path(path), self.ros_names).items()
            }
            known = self.parameters_declared()
            self._unknown = tuple(sorted(key for key in said if key not in known and key not in self.needless))
            given = {key: value for key, value in said.items() if key in known} | given
        super().__init__(**given)

    def warn_of_unknown(self) -> None:
        """Say what the file has that is not followed; for ``setup``."""
        if self._unknown:
            self.log.warn(f"{self.params_file}: not followed: {', '.join(self._unknown)}")
