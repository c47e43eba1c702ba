"""What a simulation hands out for a model that was added to it."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.description.model import Model


@dataclass(frozen=True, slots=True)
class Handle:
    """A model that was added: its name, its namespace on the bus, its description."""

    name: str
    namespace: str
    model: Model
    robot: bool | None = None

    @property
    def is_robot(self) -> bool:
        """Whether it counts as a robot: as said, else if it has sensors, or joints with an interface or a plugin."""
        if self.robot is not None:
            return self.robot
        return bool(self.model.sensors or self.model.interfaces or (self.model.joints and self.model.plugins))
