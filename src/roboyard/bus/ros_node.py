"""Base class of nodes that also read the parameter file of the ROS node that they replace.

The parameter file may be that of ROS 1 or ROS 2; `RosNodeConfig` maps its names to those of this package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import TypeVar

from roboyard.bus import Node
from roboyard.config.ros_parameters import RosNodeConfig

RosNodeConfigT = TypeVar("RosNodeConfigT", bound=RosNodeConfig, default=RosNodeConfig, covariant=True)


class RosNode(Node[RosNodeConfigT]):
    """Node that takes its configuration from keyword arguments and from the ROS parameter file ``params_file``.

    Keyword arguments have priority over the file. ``setup`` warns of the file's parameters that this node does not
    have.
    """

    config_class: ClassVar[type[RosNodeConfig]]

    def __init__(self, **arguments: Any) -> None:
        self._unknown_parameters: tuple[str, ...] = ()
        path, section = arguments.get("params_file"), arguments.get("params_section")
        if isinstance(path, str) and path:
            name = section if isinstance(section, str) else ""
            values, self._unknown_parameters = self.config_class.read_ros_file(Path(path), name)
            arguments = values | arguments
        super().__init__(**arguments)

    def setup(self) -> None:
        """Warn of parameters that the file has and this node does not."""
        if self._unknown_parameters:
            self.log.warn(f"{self.config.params_file}: ignored parameters: {', '.join(self._unknown_parameters)}")
