"""The simulation node: physics follows the clock of the bus, and sensor readings and ground truth are published.

Its services spawn and delete models in a running simulation (simulation_interfaces).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.description import load_model
from roboyard.errors import DescriptionError, InputError, MessageError
from roboyard.messages import srv
from roboyard.messages.convert import pose_to_msg, pose_to_se3, twist_to_msg
from roboyard.messages.time import time_to_msg
from roboyard.simulation.nodes.publishers import CameraPublisher, FrameCounts, ModelPublishers
from roboyard.simulation.nodes.sensor_messages import WORLD_FRAME
from roboyard.simulation.simulation import Simulation


class SimulationNodeConfig(Config):
    """Configuration of `SimulationNode`."""

    truth_rate: float = parameter(50.0, unit="Hz", low=0.1, high=1000.0)
    camera_record_rate: float = parameter(
        0.0, unit="Hz", low=0.0, high=60.0, doc="compressed images of each camera, for a recording"
    )


class SimulationNode(Node[SimulationNodeConfig]):
    """Steps a `Simulation` and publishes the readings of its sensors.

    out: each sensor on its topic in its model's namespace, a camera on several topics; /truth/<robot>/pose and
    /truth/<robot>/odom at ``truth_rate``, at most 10 Hz for a robot that is fixed to the world; /truth/<robot>/contacts
    when the set of touching shapes changes, without the ground
    services: /spawn_entity, /delete_entity, /get_entities, /get_entity_state, /set_entity_state

    Between two events of the bus all physics steps run in one compiled loop.  A message has the time of the physics
    step at which it was measured, which is at most one step before the event.
    """

    state_fields = ("_contacts_step", "_is_touching")

    simulation: Simulation = resource(Simulation)

    def setup(self) -> None:
        """Subscribe to the clock and to changes of the models, and offer the services."""
        self._publishers: dict[str, ModelPublishers] = {}
        self._removed_camera_frames: dict[str, dict[str, FrameCounts]] = {}
        self._is_touching = False
        self._contacts_step = self.simulation.time_ns // self.simulation.timestep_ns
        self._remove_listeners = [
            self.bus.executor.on_advance(self._advance),
            self.simulation.on_models_changed(self._models_changed),
        ]
        self._models_changed()
        EntityServices(self.simulation).serve(self)

    def close(self) -> None:
        """Unsubscribe from the clock, and close all publishers."""
        for remove_listener in self._remove_listeners:
            remove_listener()
        for name in list(self._publishers):
            self._remove_model(name)

    def _advance(self, time_ns: int) -> None:
        self.simulation.advance_to(time_ns)
        self._publish_contacts()

    def _publish_contacts(self) -> None:
        touching_pairs = self.simulation.world.contacts.pairs_since(self._contacts_step)
        self._contacts_step = self.simulation.time_ns // self.simulation.timestep_ns
        if touching_pairs or self._is_touching:
            self._is_touching = bool(touching_pairs)
            for name, publishers in self._publishers.items():
                publishers.publish_contacts_if_changed(touching_pairs.get(name, frozenset()))

    def save_state(self) -> dict[str, Any]:
        """Return the state of the node and of the simulation."""
        pairs = {name: sorted(publishers.contact_pairs) for name, publishers in self._publishers.items()}
        sequence = self.bus.executor.event_sequence()
        pending = sorted(
            (queue_position, name, sensor, due_ns, delayed_by, payload)
            for name, publishers in self._publishers.items()
            for sensor, publisher in publishers.sensors.items()
            for queue_position, due_ns, delayed_by, payload in publisher.save_state(sequence)
        )
        return {
            **super().save_state(),
            "simulation": self.simulation.save_state(),
            "pairs": pairs,
            "waiting": [item[1:] for item in pending],
            "frames": [
                (name, sensor, publisher.save_counts()) for name, sensor, publisher in self._camera_publishers()
            ],
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned; the simulation must have the same models."""
        super().load_state(state)
        self.simulation.load_state(state["simulation"])
        for name, pairs in state["pairs"].items():
            self._publishers[name].contact_pairs = frozenset((geom, other_geom) for geom, other_geom in pairs)
        for publishers in self._publishers.values():
            for publisher in publishers.sensors.values():
                publisher.close()
        for name, sensor, due_ns, delayed_by, payload in state["waiting"]:
            self._publishers[name].sensors[sensor].load_state(due_ns, delayed_by, payload)
        for name, sensor, counts in state.get("frames", ()):
            publisher = self._publishers[name].sensors[sensor]
            if isinstance(publisher, CameraPublisher):
                publisher.load_counts(counts)

    def camera_frames(self) -> dict[str, dict[str, FrameCounts]]:
        """Return the counts of images of each robot's cameras, also of removed robots."""
        frames: dict[str, dict[str, FrameCounts]] = {
            name: dict(cameras) for name, cameras in self._removed_camera_frames.items()
        }
        for name, sensor, publisher in self._camera_publishers():
            frames.setdefault(name, {})[sensor] = publisher.frames
        return frames

    def _camera_publishers(self) -> list[tuple[str, str, CameraPublisher]]:
        return [
            (name, sensor, publisher)
            for name, publishers in self._publishers.items()
            for sensor, publisher in publishers.sensors.items()
            if isinstance(publisher, CameraPublisher)
        ]

    def _remove_model(self, name: str) -> None:
        """Close the publishers of a model; the counts of its images are kept."""
        for model, sensor, publisher in self._camera_publishers():
            if model == name:
                self._removed_camera_frames.setdefault(model, {})[sensor] = publisher.frames
        self._publishers.pop(name).close()

    def _models_changed(self) -> None:
        handles = self.simulation.models
        for name in [name for name in self._publishers if name not in handles]:
            self._remove_model(name)
        for name, handle in handles.items():
            if name not in self._publishers:
                self._publishers[name] = ModelPublishers(
                    self, self.simulation, handle, self.config.truth_rate, self.config.camera_record_rate
                )


RESULT_NOT_FOUND, RESULT_OK, RESULT_OPERATION_FAILED = 2, 1, 4
(
    SPAWN_NAME_NOT_UNIQUE,
    SPAWN_NAME_INVALID,
    SPAWN_UNSUPPORTED_FORMAT,
    SPAWN_NO_RESOURCE,
    SPAWN_RESOURCE_PARSE_ERROR,
    SPAWN_INVALID_POSE,
) = 101, 102, 103, 104, 106, 109
_ENTITY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


@dataclass(slots=True)
class EntityServices:
    """Serves ``/spawn_entity``, ``/delete_entity``, ``/get_entities``, ``/get_entity_state``, ``/set_entity_state``."""

    simulation: Simulation
    search_paths: Sequence[Path] = ()

    def serve(self, node: Node) -> None:
        """Offer the services as ``node``."""
        node.service("/spawn_entity", srv.SpawnEntity, self.spawn)
        node.service("/delete_entity", srv.DeleteEntity, self.delete)
        node.service("/get_entities", srv.GetEntities, self.list_entities)
        node.service("/get_entity_state", srv.GetEntityState, self.get_state)
        node.service("/set_entity_state", srv.SetEntityState, self.set_state)

    def spawn(self, request: Any) -> Any:
        """Add a model from ``entity_resource.uri`` (a path or ``file://``) or from its text."""
        response = srv.SpawnEntity.Response()
        resource = request.entity_resource
        if not resource.uri and not resource.resource_string:
            return _reject(response, SPAWN_NO_RESOURCE, "neither entity_resource.uri nor resource_string is given")
        source = resource.resource_string
        if resource.uri:
            parts = urlparse(resource.uri)
            if parts.scheme not in ("", "file"):
                return _reject(
                    response, SPAWN_UNSUPPORTED_FORMAT, f"uri {resource.uri!r}: a path or file:// is expected"
                )
            source = unquote(parts.path)
        elif not source.lstrip().startswith("<"):
            return _reject(response, SPAWN_RESOURCE_PARSE_ERROR, "resource_string is not XML")
        try:
            model = load_model(source, search=self.search_paths)
            pose = pose_to_se3(request.initial_pose.pose)
        except DescriptionError as error:
            return _reject(response, SPAWN_RESOURCE_PARSE_ERROR, str(error))
        except (MessageError, ValueError) as error:
            return _reject(response, SPAWN_INVALID_POSE, str(error))
        name = request.name or model.name
        if not _ENTITY_NAME.match(name):
            return _reject(response, SPAWN_NAME_INVALID, f"name {name!r}: letters, digits and _ are expected")
        if name in self.simulation.models:
            if not request.allow_renaming:
                used_names = ", ".join(self.simulation.models)
                return _reject(
                    response, SPAWN_NAME_NOT_UNIQUE, f"there is already an entity {name!r} (in use: {used_names})"
                )
            name = next(f"{name}_{i}" for i in range(1, 10**9) if f"{name}_{i}" not in self.simulation.models)
        try:
            self.simulation.add(model, name, pose, request.entity_namespace)
        except InputError as error:
            return _reject(response, SPAWN_RESOURCE_PARSE_ERROR, str(error))
        response.result.result, response.entity_name = RESULT_OK, name
        return response

    def delete(self, request: Any) -> Any:
        """Remove a model."""
        response = srv.DeleteEntity.Response()
        if request.entity not in self.simulation.models:
            return _reject(response, RESULT_NOT_FOUND, self._unknown_entity(request.entity))
        self.simulation.remove(request.entity)
        response.result.result = RESULT_OK
        return response

    def list_entities(self, request: Any) -> Any:
        """Return the names of all models that match the filter's pattern."""
        response = srv.GetEntities.Response()
        try:
            pattern = re.compile(request.filters.filter)
        except re.error as error:
            return _reject(response, RESULT_OPERATION_FAILED, f"filter {request.filters.filter!r}: {error}")
        response.entities = [name for name in self.simulation.models if pattern.search(name)]
        response.result.result = RESULT_OK
        return response

    def get_state(self, request: Any) -> Any:
        """Return the true pose and velocity of a model in the world."""
        response = srv.GetEntityState.Response()
        if request.entity not in self.simulation.models:
            return _reject(response, RESULT_NOT_FOUND, self._unknown_entity(request.entity))
        truth = self.simulation.ground_truth(request.entity)
        rotation = truth.T_world_base.rotation_matrix()
        state = response.state
        state.header.stamp, state.header.frame_id = time_to_msg(truth.time_ns), WORLD_FRAME
        state.pose = pose_to_msg(truth.T_world_base)
        state.twist = twist_to_msg(rotation @ truth.linear_velocity, rotation @ truth.angular_velocity)
        response.result.result = RESULT_OK
        return response

    def set_state(self, request: Any) -> Any:
        """Move a model with a free root link to a pose in the world, at rest."""
        response = srv.SetEntityState.Response()
        if request.entity not in self.simulation.models:
            return _reject(response, RESULT_NOT_FOUND, self._unknown_entity(request.entity))
        if request.state.header.frame_id not in ("", WORLD_FRAME):
            return _reject(
                response,
                SPAWN_UNSUPPORTED_FORMAT,
                f"frame {request.state.header.frame_id!r}: '{WORLD_FRAME}' is expected",
            )
        if request.set_twist or request.set_acceleration or not request.set_pose:
            return _reject(response, SPAWN_UNSUPPORTED_FORMAT, "only poses are set: set_pose alone is expected")
        try:
            self.simulation.world.set_pose(request.entity, pose_to_se3(request.state.pose))
        except MessageError as error:
            return _reject(response, SPAWN_INVALID_POSE, str(error))
        except InputError as error:
            return _reject(response, SPAWN_UNSUPPORTED_FORMAT, str(error))
        response.result.result = RESULT_OK
        return response

    def _unknown_entity(self, name: str) -> str:
        return f"there is no entity {name!r} (there are: {', '.join(self.simulation.models) or 'none'})"


def _reject(response: Any, code: int, reason: str) -> Any:
    response.result.result, response.result.error_message = code, reason
    return response
