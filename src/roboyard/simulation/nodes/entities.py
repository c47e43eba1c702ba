"""The services that put models into a running simulation and take them out (simulation_interfaces)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from roboyard.bus import Node
from roboyard.description import load_model
from roboyard.errors import DescriptionError, InputError, MessageError
from roboyard.messages import srv
from roboyard.messages.convert import pose_to_msg, pose_to_se3, twist_to_msg
from roboyard.messages.time import time_to_msg
from roboyard.simulation.carrying import put
from roboyard.simulation.engine import Simulation
from roboyard.simulation.nodes.to_messages import WORLD

NOT_FOUND, OK, FAILED = 2, 1, 4
NAME_NOT_UNIQUE, NAME_INVALID, UNSUPPORTED, NO_RESOURCE, PARSE_ERROR, INVALID_POSE = 101, 102, 103, 104, 106, 109
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


@dataclass(slots=True)
class Entities:
    """Serves ``/spawn_entity``, ``/delete_entity``, ``/get_entities``, ``/get_entity_state``, ``/set_entity_state``."""

    simulation: Simulation
    search: Sequence[Path] = ()

    def serve(self, node: Node) -> None:
        """Offer the services in the name of ``node``."""
        node.service("/spawn_entity", srv.SpawnEntity, self.spawn)
        node.service("/delete_entity", srv.DeleteEntity, self.delete)
        node.service("/get_entities", srv.GetEntities, self.list)
        node.service("/get_entity_state", srv.GetEntityState, self.state)
        node.service("/set_entity_state", srv.SetEntityState, self.set_state)

    def spawn(self, request: Any) -> Any:
        """Put a model in: from ``entity_resource.uri`` (a path or ``file://``) or from its text."""
        response = srv.SpawnEntity.Response()
        resource = request.entity_resource
        if not resource.uri and not resource.resource_string:
            return _refuse(response, NO_RESOURCE, "neither entity_resource.uri nor resource_string is given")
        source = resource.resource_string
        if resource.uri:
            parts = urlparse(resource.uri)
            if parts.scheme not in ("", "file"):
                return _refuse(response, UNSUPPORTED, f"uri {resource.uri!r}: a path or file:// is expected")
            source = unquote(parts.path)
        elif not source.lstrip().startswith("<"):
            return _refuse(response, PARSE_ERROR, "resource_string is not XML")
        try:
            model = load_model(source, search=self.search)
            pose = pose_to_se3(request.initial_pose.pose)
        except DescriptionError as error:
            return _refuse(response, PARSE_ERROR, str(error))
        except (MessageError, ValueError) as error:
            return _refuse(response, INVALID_POSE, str(error))
        name = request.name or model.name
        if not _NAME.match(name):
            return _refuse(response, NAME_INVALID, f"name {name!r}: letters, digits and _ are expected")
        if name in self.simulation.models:
            if not request.allow_renaming:
                taken = ", ".join(self.simulation.models)
                return _refuse(response, NAME_NOT_UNIQUE, f"there is already an entity {name!r} (taken: {taken})")
            name = next(f"{name}_{i}" for i in range(1, 10**9) if f"{name}_{i}" not in self.simulation.models)
        try:
            self.simulation.add(model, name, pose, request.entity_namespace)
        except InputError as error:
            return _refuse(response, PARSE_ERROR, str(error))
        response.result.result, response.entity_name = OK, name
        return response

    def delete(self, request: Any) -> Any:
        """Take a model out."""
        response = srv.DeleteEntity.Response()
        if request.entity not in self.simulation.models:
            return _refuse(response, NOT_FOUND, self._unknown(request.entity))
        self.simulation.remove(request.entity)
        response.result.result = OK
        return response

    def list(self, request: Any) -> Any:
        """Names of all models, those whose name holds the filter's pattern."""
        response = srv.GetEntities.Response()
        try:
            pattern = re.compile(request.filters.filter)
        except re.error as error:
            return _refuse(response, FAILED, f"filter {request.filters.filter!r}: {error}")
        response.entities = [name for name in self.simulation.models if pattern.search(name)]
        response.result.result = OK
        return response

    def state(self, request: Any) -> Any:
        """True pose and velocity of a model, in the world."""
        response = srv.GetEntityState.Response()
        if request.entity not in self.simulation.models:
            return _refuse(response, NOT_FOUND, self._unknown(request.entity))
        truth = self.simulation.truth(request.entity)
        turn = truth.T_world_base.rotation_matrix()
        state = response.state
        state.header.stamp, state.header.frame_id = time_to_msg(truth.time_ns), WORLD
        state.pose = pose_to_msg(truth.T_world_base)
        state.twist = twist_to_msg(turn @ truth.linear_velocity, turn @ truth.angular_velocity)
        response.result.result = OK
        return response

    def set_state(self, request: Any) -> Any:
        """Put a model that nothing holds at a pose in the world, at rest."""
        response = srv.SetEntityState.Response()
        if request.entity not in self.simulation.models:
            return _refuse(response, NOT_FOUND, self._unknown(request.entity))
        if request.state.header.frame_id not in ("", WORLD):
            return _refuse(response, UNSUPPORTED, f"frame {request.state.header.frame_id!r}: '{WORLD}' is expected")
        if request.set_twist or request.set_acceleration or not request.set_pose:
            return _refuse(response, UNSUPPORTED, "only poses are set: set_pose alone is expected")
        try:
            put(self.simulation, request.entity, pose_to_se3(request.state.pose))
        except MessageError as error:
            return _refuse(response, INVALID_POSE, str(error))
        except InputError as error:
            return _refuse(response, UNSUPPORTED, str(error))
        response.result.result = OK
        return response

    def _unknown(self, name: str) -> str:
        return f"there is no entity {name!r} (there are: {', '.join(self.simulation.models) or 'none'})"


def _refuse(response: Any, code: int, why: str) -> Any:
    response.result.result, response.result.error_message = code, why
    return response
