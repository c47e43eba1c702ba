"""Services of ours, called from ROS 1."""

from __future__ import annotations

from roboyard.bridges.asking import ask
from roboyard.bridges.gateway import Gateway
from roboyard.bridges.loop import Loop
from roboyard.bridges.ros1.types import Ros1Service
from roboyard.errors import MessageError, RoboyardError


class Offered:
    """One service.

    Args:
        name: Its name.
        ours: Its type's name on the bus.
        kind: Its type in ROS 1.
        loop: Where the connections live.
        gateway: The bus.
    """

    def __init__(self, name: str, ours: str, kind: Ros1Service, loop: Loop, gateway: Gateway) -> None:
        self.name = name
        self.kind = kind
        self._ours = ours
        self._loop = loop
        self._gateway = gateway

    async def answer(self, request: bytes, source: str) -> tuple[bool, bytes]:
        """Whether there is an answer, and its bytes, or those of a sentence why not."""
        try:
            data = self.kind.request.decode(request)
            answer = await ask(self._gateway, self._loop, self.name, self._ours, source, data)
            return True, self.kind.response.encode(answer)
        except MessageError as error:
            self._gateway.complain("malformed", f"{self.name}, called by {source}: {error}")
            return False, str(error).encode()
        except RoboyardError as error:
            return False, str(error).encode()
