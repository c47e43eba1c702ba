"""Types of costmap layers by name: the configuration from which a layer is made, and the registry of all types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

from roboyard.config import RegisteredType, parameter
from roboyard.config.registry import Registry
from roboyard.navigation.costmap.layered_costmap import Layer
from roboyard.navigation.footprint import Footprint


@dataclass(frozen=True, slots=True)
class LayerContext:
    """What a layer may know of the costmap that it is made for.

    Attributes:
        name: Name of the layer in the configuration of the costmaps.
        footprint: Padded footprint of the robot.
        resolution: Edge of a cell of the local costmap [m].
    """

    name: str
    footprint: Footprint
    resolution: float


@dataclass(frozen=True, kw_only=True)
class LayerConfig(ABC):
    """Configuration of a costmap layer; each type of layer has a subclass of it.

    A subclass is a frozen dataclass whose fields are declared with `roboyard.config.parameter`. It is registered as an
    entry point of the group ``roboyard.costmap_layers`` under the name that configurations give as ``type``.
    """

    type: str = parameter(doc="Type of the layer.")
    enabled: bool = parameter(True, doc="Use the layer; false: the navigator subscribes to none of its topics.")

    @abstractmethod
    def make_layer(self, context: LayerContext) -> Layer:
        """Return a new layer; the global and the local costmap get one each.

        Raises:
            ConfigError: The values contradict each other.
        """


COSTMAP_LAYERS: Registry[type[LayerConfig]] = Registry(
    "costmap layer", group="roboyard.costmap_layers", base=lambda: LayerConfig
)
"""Types of costmap layers by the name that configurations give as ``type``."""

LayerEntry = Annotated[LayerConfig, RegisteredType(COSTMAP_LAYERS)]
"""Annotation of a layer in a configuration: a mapping whose key ``type`` names its class."""
