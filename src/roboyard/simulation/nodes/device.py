"""The node of a moving device: a conveyor belt, a door or a turntable that follows a command."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import STATE_RATE, Node, resource
from roboyard.config import Config, parameter
from roboyard.hardware import JointCommand
from roboyard.messages import msg, service_type
from roboyard.simulation.moving_devices import MovingDevice
from roboyard.simulation.simulation import Simulation

_SETPOINT_RATE = 50.0
"""Rate at which the set-point moves towards the command [Hz]."""


class DeviceNodeConfig(Config):
    """Configuration of `DeviceNode`."""

    model: str = parameter("", doc="name of the model")
    initial_command: float = parameter(0.0, doc="command at the start")


class DeviceNode(Node[DeviceNodeConfig]):
    """Moves one device: its set-point follows the command with limited acceleration or speed.

    in: <name>/command (std_msgs/Float64): a belt's speed [m/s], a turntable's angular velocity [rad/s], a door's
    opening (0-1)
    out: <name>/state (std_msgs/Float64): the true value of the same quantity
    services: <name>/on (std_srvs/SetBool): run or open, stop or close
    """

    state_fields = ("command", "setpoint")

    simulation: Simulation = resource(Simulation)
    device: MovingDevice = resource(MovingDevice)

    def setup(self) -> None:
        """Subscribe to commands, offer the service, and start the timers."""
        self.command = self.device.clamp(self.config.initial_command)
        self.setpoint = 0.0
        topic_prefix = f"/{self.name}"
        self.subscribe(f"{topic_prefix}/command", msg.Float64, lambda message: self.set_command(message.data))
        self.service(f"{topic_prefix}/on", service_type("std_srvs/srv/SetBool"), self._on_switch)
        self._state = self.publisher(f"{topic_prefix}/state", msg.Float64)
        self.timer(rate=_SETPOINT_RATE, callback=self._update_setpoint, immediate=True)
        self.timer(rate=STATE_RATE, callback=self._publish_state)

    def set_command(self, command: float) -> None:
        """Set the command that the set-point follows; it is limited to the bounds of the device."""
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
