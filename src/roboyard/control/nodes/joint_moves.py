"""The joint moves node: single joints of an arm by number, to positions or at velocities, never with a lurch."""

from __future__ import annotations

import math
from typing import Any

from roboyard.control.nodes.moving import MovingNode
from roboyard.errors import InputError
from roboyard.messages import msg


class JointMovesNode(MovingNode):
    """Moves the joints of a group one by one, as messages of a number and a value say (see `MovingNode`).

    in: move_position, move_velocity (metralabs_msgs/IDAndFloat: number of the joint from 1 on; rad, rad/s)

    What is not finite and a number that no joint has are refused.
    """

    def setup(self) -> None:
        """Listen."""
        super().setup()
        self.subscribe("move_position", msg.IDAndFloat, self._on_position, with_source=True)
        self.subscribe("move_velocity", msg.IDAndFloat, self._on_velocity, with_source=True)

    def _on_position(self, message: Any, publisher: str) -> None:
        try:
            self.go([(self._index(message), float(message.value))])
        except InputError as error:
            self.log.error(f"refused a position of {publisher}: {error}", throttle=1.0)

    def _on_velocity(self, message: Any, publisher: str) -> None:
        try:
            self.run([(self._index(message), float(message.value))])
        except InputError as error:
            self.log.error(f"refused a velocity of {publisher}: {error}", throttle=1.0)

    def _index(self, message: Any) -> int:
        index = int(message.id) - 1
        if not 0 <= index < len(self.config.joints):
            raise InputError(f"joint {message.id}", valid=f"there are 1 to {len(self.config.joints)}")
        if not math.isfinite(message.value):
            raise InputError(f"{message.value} for {self.config.joints[index]}", valid="a finite number")
        return index
