"""Which topics can be drawn, and what of them is sent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from roboyard.errors import RoboyardError
from roboyard.view.drawings import DRAWINGS
from roboyard.view.legs import GAIT, PLAN, plan_drawing, support_drawing
from roboyard.view.surfaces import SURFACES
from roboyard.view.wire import ViewMessage, packed

PAINTERS = {**DRAWINGS, **SURFACES, GAIT: support_drawing, PLAN: plan_drawing}
PICTURES = frozenset({"sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"})
_PICTURE_PERIOD = 0.2
"""Of pictures of one camera [wall s]: they are the dearest to send."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The newest message of a topic.

    Attributes:
        type: Of the message.
        message: Itself.
        time_ns: When it was published [ns].
        place: x, y, z, w, x, y, z of its frame in the world.
    """

    type: str
    message: Any
    time_ns: int
    place: list[float]


def frame_of(message: Any) -> str:
    """The frame of a message's coordinates; "" where it does not say."""
    header = getattr(message, "header", None)
    if header is None and getattr(message, "markers", None):
        header = message.markers[0].header
    return "" if header is None else str(header.frame_id)


class Board:
    """Newest messages, and their frames made when somebody wants them.

    Attributes:
        heard: By topic.
    """

    def __init__(self) -> None:
        self.heard: dict[str, Heard] = {}
        self._frames: dict[str, tuple[Heard, ViewMessage]] = {}
        self._sent: dict[str, Heard] = {}
        self._pictured: dict[str, float] = {}

    def clear(self) -> None:
        """Forget all that was heard."""
        self.heard.clear()
        self._frames.clear()
        self._sent.clear()

    def forget_sent(self) -> None:
        """Somebody new looks: all that is wanted is news again."""
        self._sent.clear()

    def frame(self, topic: str) -> ViewMessage | None:
        """The frame of a topic's newest message; None where there is none, or it cannot be drawn."""
        heard = self.heard.get(topic)
        if heard is None:
            return None
        known = self._frames.get(topic)
        if known is not None and known[0] is heard:
            return known[1]
        try:
            drawing = PAINTERS[heard.type](heard.message)
        except (RoboyardError, ValueError, TypeError, IndexError, AttributeError, KeyError) as error:
            frame = ViewMessage(
                packed({"op": "draw", "topic": topic, "shape": "none", "why": str(error)[:200]}), topic, topic
            )
        else:
            head = {"op": "draw", "topic": topic, "t": heard.time_ns * 1e-9, "pose": heard.place, **drawing.head}
            frame = ViewMessage(packed(head, drawing.arrays), topic, topic)
        self._frames[topic] = (heard, frame)
        return frame

    def news(self, wants: Collection[str], now: float) -> list[ViewMessage]:
        """Frames of what was heard since the last call and is wanted.

        Args:
            wants: Topics.
            now: Wall time [s].
        """
        found = []
        for topic in wants:
            heard = self.heard.get(topic)
            if heard is None or self._sent.get(topic) is heard:
                continue
            if heard.type in PICTURES:
                if now < self._pictured.get(topic, 0.0):
                    continue
                self._pictured[topic] = now + _PICTURE_PERIOD
            self._sent[topic] = heard
            frame = self.frame(topic)
            if frame is not None:
                found.append(frame)
        return found
