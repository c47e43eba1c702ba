"""Furniture that moves, on the bus: belts, doors and turntables that listen to a command."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.hardware import JointCommand
from roboyard.messages import msg, service_type
from roboyard.simulation.engine import Simulation
from roboyard.simulation.furniture import Furniture

_RATE, _TOLD = 50.0, 10.0
"""How often the set-point moves on, and how often it is told [Hz]."""


class FurnitureNodeConfig(Config):
    """Configuration of `FurnitureNode`."""

    model: str = parameter("", doc="name of the model")
    start: float = parameter(0.0, doc="command at the start")


class FurnitureNode(Node[FurnitureNodeConfig]):
    """Moves one piece of furniture.

    in: <name>/command (std_msgs/Float64): a belt's speed [m/s], a turntable's rate [rad/s], how open a door is (0-1)
    out: <name>/state, what it really is at present, likewise
    services: <name>/on (std_srvs/SetBool): run or open, stop or close
    """

    state_fields = ("command", "setpoint")

    simulation: Simulation = resource(Simulation)
    furniture: Furniture = resource(Furniture)

    def setup(self) -> None:
        """Stand where the start says."""
        self.command = self.furniture.clipped(self.config.start)
        self.setpoint = 0.0
        base = f"/{self.name}"
        self.subscribe(f"{base}/command", msg.Float64, lambda message: self.move(message.data))
        self.service(f"{base}/on", service_type("std_srvs/srv/SetBool"), self._on)
        self._state = self.publisher(f"{base}/state", msg.Float64)
        self.timer(rate=_RATE, callback=self._tick, immediate=True)
        self.timer(rate=_TOLD, callback=self._tell)

    def move(self, command: float) -> None:
        """Move to a command, as fast as the furniture does."""
        self.command = self.furniture.clipped(command)

    def _on(self, request: Any) -> Any:
        self.move(self.furniture.on if request.data else 0.0)
        return service_type("std_srvs/srv/SetBool").Response(
            success=True, message=f"{self.config.model}: {self.command:g}"
        )

    def _tick(self) -> None:
        before, thing = self.setpoint, self.furniture
        self.setpoint = thing.ramped(before, self.command, 1.0 / _RATE)
        if thing.kind == "conveyor":
            if self.setpoint != before:
                x, y, z = (self.setpoint * part for part in thing.direction)
                self.simulation.move_surface(self.config.model, thing.part, (x, y, z))
            return
        hardware = self.simulation.hardware(self.config.model)
        if thing.kind == "door":
            hardware.write(JointCommand("position", (thing.part,), np.array([thing.position(self.setpoint)])))
        else:
            hardware.write(JointCommand("velocity", (thing.part,), np.array([self.setpoint])))

    def _tell(self) -> None:
        value = self.setpoint
        if self.furniture.kind != "conveyor":
            hardware = self.simulation.hardware(self.config.model)
            readings, index = hardware.read(), hardware.joint_names.index(self.furniture.part)
            door = self.furniture.kind == "door"
            value = self.furniture.opening(readings.position[index]) if door else readings.velocity[index]
        self._state.publish(msg.Float64(data=float(value)))
