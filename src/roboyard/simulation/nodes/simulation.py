"""The simulation node: physics moves with the bus's clock, sensors and truth go out as messages."""

from __future__ import annotations

from typing import Any

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.simulation.engine import Simulation
from roboyard.simulation.nodes.camera_outlet import CameraOutlet, Frames
from roboyard.simulation.nodes.entities import Entities
from roboyard.simulation.nodes.outlets import Outlets


class SimulationNodeConfig(Config):
    """Configuration of `SimulationNode`."""

    truth_rate: float = parameter(50.0, unit="Hz", low=0.1, high=1000.0)
    record_cameras: float = parameter(
        0.0, unit="Hz", low=0.0, high=60.0, doc="compressed pictures of each camera, for a recording"
    )


class SimulationNode(Node[SimulationNodeConfig]):
    """Steps a `Simulation` and publishes what its sensors measure.

    out: each sensor on its topic in its model's namespace, a camera on several; /truth/<robot>/pose,
    /truth/<robot>/odom at ``truth_rate``, at most 10 Hz of a robot that is bolted down; /truth/<robot>/contacts
    whenever the set of touching pairs changes, the ground left out
    services: /spawn_entity, /delete_entity, /get_entities, /get_entity_state, /set_entity_state

    Between two events of the bus physics runs in one tight loop.  A message carries the time of the physics step it
    was measured at, which is at most one step before its event.
    """

    state_fields = ("_looked", "_touching")

    simulation: Simulation = resource(Simulation)

    def setup(self) -> None:
        """Follow the clock, the models that come and go, and serve requests."""
        self._outlets: dict[str, Outlets] = {}
        self._gone: dict[str, dict[str, Frames]] = {}
        self._touching = False
        self._looked = self.simulation.time_ns // self.simulation.timestep_ns
        self._unfollow = [
            self.bus.executor.on_advance(self._advance),
            self.simulation.on_models_changed(self._models_changed),
        ]
        self._models_changed()
        Entities(self.simulation).serve(self)

    def close(self) -> None:
        """Let go of the clock."""
        for unfollow in self._unfollow:
            unfollow()
        for name in list(self._outlets):
            self._forget(name)

    def _advance(self, time_ns: int) -> None:
        self.simulation.advance_to(time_ns)
        self._look_at_contacts()

    def _look_at_contacts(self) -> None:
        touched = self.simulation.watch.touched_since(self._looked)
        self._looked = self.simulation.time_ns // self.simulation.timestep_ns
        if touched or self._touching:
            self._touching = bool(touched)
            for name, outlets in self._outlets.items():
                outlets.look_at_contacts(touched.get(name, frozenset()))

    def save_state(self) -> dict[str, Any]:
        """The node's state and the whole simulation's."""
        pairs = {name: sorted(outlets.pairs) for name, outlets in self._outlets.items()}
        sequence = self.bus.executor.event_sequence()
        waiting = sorted(
            (place, name, sensor, due_ns, held_by, what)
            for name, outlets in self._outlets.items()
            for sensor, outlet in outlets.sensors.items()
            for place, due_ns, held_by, what in outlet.save_state(sequence)
        )
        return {
            **super().save_state(),
            "simulation": self.simulation.save_state(),
            "pairs": pairs,
            "waiting": [item[1:] for item in waiting],
            "frames": [(name, sensor, outlet.counts()) for name, sensor, outlet in self._cameras()],
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `save` gave; the simulation must hold the same models."""
        super().load_state(state)
        self.simulation.load_state(state["simulation"])
        for name, pairs in state["pairs"].items():
            self._outlets[name].pairs = frozenset((own, other) for own, other in pairs)
        for outlets in self._outlets.values():
            for outlet in outlets.sensors.values():
                outlet.close()
        for name, sensor, due_ns, held_by, what in state["waiting"]:
            self._outlets[name].sensors[sensor].load_state(due_ns, held_by, what)
        for name, sensor, counts in state.get("frames", ()):
            outlet = self._outlets[name].sensors[sensor]
            if isinstance(outlet, CameraOutlet):
                outlet.recount(counts)

    def frames(self) -> dict[str, dict[str, Frames]]:
        """What became of the pictures of each robot's cameras, also of those that are gone."""
        found: dict[str, dict[str, Frames]] = {name: dict(cameras) for name, cameras in self._gone.items()}
        for name, sensor, outlet in self._cameras():
            found.setdefault(name, {})[sensor] = outlet.frames
        return found

    def _cameras(self) -> list[tuple[str, str, CameraOutlet]]:
        return [
            (name, sensor, outlet)
            for name, outlets in self._outlets.items()
            for sensor, outlet in outlets.sensors.items()
            if isinstance(outlet, CameraOutlet)
        ]

    def _forget(self, name: str) -> None:
        """Close a model's outlets; what became of its pictures stays known."""
        for model, sensor, outlet in self._cameras():
            if model == name:
                self._gone.setdefault(model, {})[sensor] = outlet.frames
        self._outlets.pop(name).close()

    def _models_changed(self) -> None:
        handles = self.simulation.models
        for name in [name for name in self._outlets if name not in handles]:
            self._forget(name)
        for name, handle in handles.items():
            if name not in self._outlets:
                self._outlets[name] = Outlets(
                    self, self.simulation, handle, self.config.truth_rate, self.config.record_cameras
                )
