"""Things put into the world, moved and taken out of it, and faults: all by services of the run."""

from __future__ import annotations

import math
from typing import Any

from roboyard.bus import Bus
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.messages import service_type, srv
from roboyard.messages.convert import pose_to_msg
from roboyard.view.sender import Sender
from roboyard.view.show import Reply
from roboyard.view.wire import number, numbers, word

_SHAPES = {
    "box": "<box><size>{0} {1} {2}</size></box>",
    "cylinder": "<cylinder><radius>{r}</radius><length>{2}</length></cylinder>",
    "sphere": "<sphere><radius>{r}</radius></sphere>",
}
_SMALLEST, _LARGEST = 0.01, 20.0
_DENSITY = 200.0
"""Of what is put in [kg/m³]: it can be pushed, but not by a breath."""
_COLOURS = ("0.85 0.35 0.2", "0.2 0.45 0.75", "0.9 0.7 0.2", "0.3 0.6 0.35")
_INTERFACES = "simulation_interfaces/srv"


class ThingHand:
    """Changes the world.

    Args:
        bus: Of the run.
        sender: Into it.
    """

    ops = frozenset({"put", "move", "remove", "fault", "end_fault"})

    def __init__(self, bus: Bus, sender: Sender) -> None:
        self._bus, self._sender = bus, sender
        self._count = 0

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """Do what was clicked.

        Raises:
            InputError: it makes no sense.
        """
        op = said["op"]
        if op == "put":
            request = srv.SpawnEntity.Request(name=self._name(said), allow_renaming=True)
            request.entity_resource.resource_string = self._model(said, request.name)
            request.initial_pose.pose = pose_to_msg(_pose(said))
            self._sender.call("/spawn_entity", f"{_INTERFACES}/SpawnEntity", request, said, reply)
        elif op == "move":
            moved = srv.SetEntityState.Request(entity=word(said, "name"), set_pose=True)
            moved.state.pose = pose_to_msg(_pose(said))
            self._sender.call("/set_entity_state", f"{_INTERFACES}/SetEntityState", moved, said, reply)
        elif op == "remove":
            gone = srv.DeleteEntity.Request(entity=word(said, "name"))
            self._sender.call("/delete_entity", f"{_INTERFACES}/DeleteEntity", gone, said, reply)
        elif op == "fault":
            kind = "roboyard_msgs/srv/InjectFault"
            fault = service_type(kind).Request(fault=word(said, "fault", 1000))
            self._sender.call("/inject_fault", kind, fault, said, reply)
        else:
            kind = "roboyard_msgs/srv/EndFault"
            self._sender.call("/end_fault", kind, service_type(kind).Request(name=word(said, "name")), said, reply)

    def _name(self, said: dict[str, Any]) -> str:
        self._count += 1
        return f"{word(said, 'shape', 20)}_{self._count}"

    def _model(self, said: dict[str, Any], name: str) -> str:
        """SDF of a plain shape that can be pushed."""
        shape = word(said, "shape", 20)
        if shape not in _SHAPES:
            raise InputError(f"no shape {shape!r}", valid=", ".join(_SHAPES))
        size = numbers(said, "size", 3)
        if not all(_SMALLEST <= edge <= _LARGEST for edge in size):
            raise InputError(f"a size of {size} m", valid=f"{_SMALLEST:g} to {_LARGEST:g} m")
        x, y, z = size
        radius = 0.5 * x
        body = _SHAPES[shape].format(x, y, z, r=radius)
        volumes = {"box": x * y * z, "cylinder": math.pi * radius**2 * z, "sphere": 4.0 / 3.0 * math.pi * radius**3}
        mass = _DENSITY * volumes[shape]
        if shape == "box":
            inertia = [mass / 12.0 * (a * a + b * b) for a, b in ((y, z), (x, z), (x, y))]
        elif shape == "cylinder":
            across = mass / 12.0 * (3.0 * radius**2 + z * z)
            inertia = [across, across, 0.5 * mass * radius**2]
        else:
            inertia = [0.4 * mass * radius**2] * 3
        ixx, iyy, izz = inertia
        colour = _COLOURS[self._count % len(_COLOURS)]
        return (
            f"<sdf version='1.9'><model name='{name}'><link name='link'><inertial><mass>{mass}</mass><inertia>"
            f"<ixx>{ixx}</ixx><iyy>{iyy}</iyy><izz>{izz}</izz></inertia></inertial>"
            f"<collision name='shape'><geometry>{body}</geometry></collision>"
            f"<visual name='shape'><geometry>{body}</geometry><material><diffuse>{colour} 1</diffuse></material>"
            "</visual></link></model></sdf>"
        )


def _pose(said: dict[str, Any]) -> SE3:
    """x, y, z [m] and yaw [rad] of what is put somewhere."""
    x, y, z = numbers(said, "at", 3)
    return SE3.from_xyz_rpy((x, y, z), (0.0, 0.0, number(said, "yaw", -10.0, 10.0, 0.0)))
