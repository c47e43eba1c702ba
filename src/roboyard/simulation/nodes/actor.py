"""A world's own actor on the bus: it follows its script, and takes no goals."""

from __future__ import annotations

from typing import Any

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.simulation.engine import Simulation
from roboyard.simulation.people.scripted import Scripted


class ActorNodeConfig(Config):
    """Configuration of `ActorNode`."""

    model: str = parameter("", doc="name of the body in the simulation")
    rate: float = parameter(50.0, unit="Hz", low=5.0, high=1000.0, doc="of steps")


class ActorNode(Node[ActorNodeConfig]):
    """Leads the body of an actor of an SDF world.

    out: /truth/<name>/pose (geometry_msgs/PoseStamped) of the place between the feet
    """

    simulation: Simulation = resource(Simulation)
    scripted: Scripted = resource(Scripted)

    def setup(self) -> None:
        """Begin the script."""
        self._pose = self.publisher(f"/truth/{self.name}/pose", msg.PoseStamped)
        self.timer(rate=self.config.rate, callback=self._step, immediate=True)

    def _step(self) -> None:
        places, turns = self.scripted.step(1.0 / self.config.rate)
        self.simulation.flesh.lead(self.config.model, places, turns, 1.0 / self.config.rate)
        pose = pose_to_msg(SE2(*self.scripted.performer.place))
        self._pose.publish(msg.PoseStamped(header=make_header("world", self.now_ns), pose=pose))

    def save_state(self) -> dict[str, Any]:
        """The node's state and the script's."""
        return {**super().save_state(), "script": self.scripted.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what `save` gave."""
        self.scripted.load_state(saved["script"])
        super().load_state(saved)
