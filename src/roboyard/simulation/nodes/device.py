"""The node of a moving device: a conveyor belt, a door or a turntable that follows a command."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.hardware import JointCommand
from roboyard.messages import msg, service_type
from roboyard.simulation.moving_devices import MovingDevice
from roboyard.simulation.simulation import Simulation

_SETPOINT_RATE, _STATE_RATE = 50.0, 10.0
"""How often the set-point moves on, and how often it is told [Hz]."""


class DeviceNodeConfig(Config):
    """Configuration of `FurnitureNode`."""

    model: str = parameter("", doc="name of the model")
    initial_command: float = parameter(0.0, doc="command at the start")


class DeviceNode(Node[DeviceNodeConfig]):
    """Moves one device.

    in: <name>/command (std_msgs/Float64): a belt's speed [m/s], a turntable's rate [rad/s], how open a door is (0-1)
    out: <name>/state, what it really is at present, likewise
    services: <name>/on (std_srvs/SetBool): run or open, stop or close
    """

    state_fields = ("command", "setpoint")

    simulation: Simulation = resource(Simulation)
    device: MovingDevice = resource(MovingDevice)

    def setup(self) -> None:
        """Start with the initial command."""
        self.command = self.device.clamp(self.config.initial_command)
        self.setpoint = 0.0
        topic_prefix = f"/{self.name}"
        self.subscribe(f"{topic_prefix}/command", msg.Float64, lambda message: self.set_command(message.data))
        self.service(f"{topic_prefix}/on", service_type("std_srvs/srv/SetBool"), self._on_switch)
        self._state = self.publisher(f"{topic_prefix}/state", msg.Float64)
        self.timer(rate=_SETPOINT_RATE, callback=self._update_setpoint, immediate=True)
        self.timer(rate=_STATE_RATE, callback=self._publish_state)

    def set_command(self, command: float) -> None:
        """Move to a command, as fast as the device allows."""
        self.command = self.device.clamp(command)

    def _on_switch(self, request: Any) -> Any:
        self.set_command(self.device.on_command if request.data else 0.0)
        return service_type("std_srvs/srv/SetBool").Response(
            success=True, message=f"{self.config.model}: {self.command:g}"
        )

    def _update_setpoint(self) -> None:
        previous_setpoint, device = self.setpoint, self.device
        self.setpoint = device.ramp(previous_setpoint, self.command, 1.0 / _SETPOINT_RATE)
        if device.kind == "conveyor":
            if self.setpoint != previous_setpoint:
                x, y, z = (self.setpoint * component for component in device.direction)
                self.simulation.set_surface_velocity(self.config.model, device.element, (x, y, z))
            return
        hardware = self.simulation.hardware(self.config.model)
        if device.kind == "door":
            hardware.write(JointCommand("position", (device.element,), np.array([device.position(self.setpoint)])))
        else:
            hardware.write(JointCommand("velocity", (device.element,), np.array([self.setpoint])))

    def _publish_state(self) -> None:
        value = self.setpoint
        if self.device.kind != "conveyor":
            hardware = self.simulation.hardware(self.config.model)
            readings, index = hardware.read(), hardware.joint_names.index(self.device.element)
            is_door = self.device.kind == "door"
            value = self.device.opening(readings.position[index]) if is_door else readings.velocity[index]
        self._state.publish(msg.Float64(data=float(value)))
