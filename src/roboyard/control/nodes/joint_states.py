"""The joint state node: what the joints' own sensors say, as a message."""

from __future__ import annotations

from roboyard.bus import SENSOR, Node, resource
from roboyard.config import Config, parameter
from roboyard.hardware.interface import Hardware
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg


class JointStateNodeConfig(Config):
    """Configuration of `JointStateNode`."""

    rate: float = parameter(50.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the published states.")


class JointStateNode(Node[JointStateNodeConfig]):
    """Reads the hardware at a fixed rate.

    out: joint_states (sensor_msgs/JointState; rad, rad/s, N m, or m, m/s, N; stamped with the measurement's time)
    """

    hardware: Hardware = resource(Hardware)

    def setup(self) -> None:
        """Start reading, at once."""
        self._names = list(self.hardware.joint_names)
        self._publisher = self.publisher("joint_states", msg.JointState)
        # before other nodes' timers of the instant, so that they act on fresh readings
        self.timer(rate=self.config.rate, callback=self._read, immediate=True, priority=SENSOR)

    def _read(self) -> None:
        readings = self.hardware.read()
        self._publisher.publish(
            msg.JointState(
                header=msg.Header(stamp=time_to_msg(readings.time_ns)),
                name=self._names,
                position=readings.position,
                velocity=readings.velocity,
                effort=readings.effort,
            )
        )
