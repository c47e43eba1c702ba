"""Carries out what the thesis's skills ask for: pictures, joints at speeds, fingers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from roboyard.bus import Node
from roboyard.geometry.arrays import Array
from roboyard.manipulation.skills import DONE, Ask, Cause, Outcome, Sighting, Wait
from roboyard.manipulation.thesis.asking import Fingers, Glance, Reach, Stand
from roboyard.manipulation.thesis.config import ThesisConfig
from roboyard.manipulation.thesis.driving import JointControl
from roboyard.manipulation.thesis.inverse import Scale
from roboyard.manipulation.thesis.looking import on_places
from roboyard.messages import msg
from roboyard.messages.convert import jpeg_to_msg
from roboyard.vision.discs.reference_detectors import ThesisDisc, detect_discs_thesis, draw_thesis_discs
from roboyard.vision.nodes.camera_subscriber import CameraImage, CameraSubscriber, CameraTopics

_CONTROL: Final = JointControl()
_REST: Final = 0.1 * _CONTROL.end_speed
"""All joints together, slower, have come to rest after the last position command [rad/s]."""
_FINGER_MM: Final = 10.0
"""Of the thesis's scale, a finger open as far as it goes."""
_FINGER_NEAR: Final = 1e-5
"""The thesis waits until both fingers are as near to where they shall be [m] ..."""
_FINGER_STILL_NS: Final = 300_000_000
"""... or, which its own gripper could not tell, do not get on for so long [ns]."""


@dataclass(frozen=True)
class ThesisDoings:
    """Names and times of what carries things out.

    Attributes:
        image: Topic of pictures, with info and depth beside it.
        info: Of their camera.
        depth: As the depth camera sees it.
        velocities: Topic brics_actuator/JointVelocities of the arm.
        positions: Topic brics_actuator/JointPositions of the arm.
        fingers: Topic brics_actuator/JointPositions of the gripper.
        look_time: For a picture [s].
        move_time: For a motion [s].
    """

    image: str
    info: str
    depth: str
    velocities: str
    positions: str
    fingers: str
    look_time: float
    move_time: float


class ThesisDoer:
    """See the module.

    Args:
        node: Who sends.
        thesis: Constants.
        scale: Of the arm.
        joints: Of the arm, in their order.
        fingers: Joints, and how far open they can be [m].
        doings: Who does it.
        ended: Told how what was asked for ended.

    Attributes:
        turning: Speed of the first joint [rad/s].
        holding: Whether the fingers feel something: nobody looks.
    """

    def __init__(
        self,
        node: Node,
        thesis: ThesisConfig,
        scale: Scale,
        joints: tuple[str, ...],
        fingers: dict[str, float],
        doings: ThesisDoings,
        ended: Callable[[Outcome], None],
    ) -> None:
        self.holding = False
        self._node, self._thesis, self._scale, self._ended, self._doings = node, thesis, scale, ended, doings
        self._joints, self._fingers = joints, fingers
        self._angles, self._speeds = np.full(len(joints), np.nan), np.full(len(joints), np.nan)
        self._open = np.full(len(fingers), np.nan)
        self._ask: Ask | None = None
        self._due_ns = 0
        self._goal = np.zeros(0)
        self._sent = False
        self._still: tuple[float, int] = (0.0, 0)
        self._velocities = node.publisher(doings.velocities, msg.JointVelocities)
        self._positions = node.publisher(doings.positions, msg.JointPositions)
        self._gripper = node.publisher(doings.fingers, msg.JointPositions)
        self._kept = node.publisher("discs/image/compressed", msg.CompressedImage)
        self._camera = CameraSubscriber(node, CameraTopics(doings.image, doings.info, doings.depth), self._on_view)
        node.subscribe("joint_states", msg.JointState, self._on_joints)

    @property
    def turning(self) -> float:
        """Speed of the first joint [rad/s]; infinite: nobody says."""
        return float(self._speeds[0]) if np.isfinite(self._speeds[0]) else np.inf

    # -- asking --------------------------------------------------------------------------------------------------------
    def start(self, ask: Ask) -> Outcome | None:
        """Begin; an outcome if that was all there was to do, else ``ended`` is told later."""
        if isinstance(ask, Stand):
            self._run(np.zeros(len(self._joints)))
            return DONE
        self._ask, self._sent = ask, False
        seconds = {Glance: self._doings.look_time, Wait: 0.0}.get(type(ask), self._doings.move_time)
        if isinstance(ask, Wait):
            seconds = ask.seconds
        self._due_ns = self._node.now_ns + round(seconds * 1e9)
        if isinstance(ask, Glance):
            self._camera.set_enabled()
            self._run(np.array([ask.speed, *[0.0] * (len(self._joints) - 1)]))
        elif isinstance(ask, Reach):
            self._camera.set_enabled(False)
            self._goal = np.zeros(0)
        elif isinstance(ask, Fingers):
            self._goal = np.clip(0.5 * ask.opening / _FINGER_MM, 0.0, 1.0) * np.array(list(self._fingers.values()))
            self._still = (np.inf, self._node.now_ns)
            self._gripper.publish(_positions(tuple(self._fingers), self._goal, "m"))
        return None

    def cancel(self, why: Outcome) -> None:
        """All joints stand, as with the thesis's `stop`."""
        if self._ask is not None:
            self._run(np.zeros(len(self._joints)))
            self._end(why)

    def step(self) -> None:
        """One round of the loops in GelenkPos and GreiferPos."""
        ask = self._ask
        if ask is None:
            return
        if self._is_there(ask):
            self._end(DONE)
        elif self._node.now_ns >= self._due_ns:
            self._end(DONE if isinstance(ask, Wait) else self._late(ask))

    def _is_there(self, ask: Ask) -> bool:
        if isinstance(ask, Reach):
            return bool(np.isfinite(self._angles).all()) and self._drive(ask)
        return isinstance(ask, Fingers) and self._closed()

    def _late(self, ask: Ask) -> Outcome:
        if isinstance(ask, Glance):
            silent = self._camera.find_stale_topic(self._due_ns - round(self._doings.look_time * 1e9))
            cause, text = next((one for one in (self._camera.error, silent) if one[0]), ("", "no picture"))
            return Outcome(Cause.CAMERA_SILENT, f"{cause}: {text}" if cause else text)
        self._run(np.zeros(len(self._joints)))
        what = "the fingers" if isinstance(ask, Fingers) else "the joints"
        return Outcome(
            Cause.TIMED_OUT, f"{what} did not come to rest where they should in {self._doings.move_time:g} s"
        )

    def _end(self, outcome: Outcome) -> None:
        self._ask = None
        self._ended(outcome)

    # -- joints --------------------------------------------------------------------------------------------------------
    def _drive(self, ask: Reach) -> bool:
        if not self._goal.size:
            self._goal = self._scale.joints(ask.degrees, self._angles)
        if self._sent:
            return float(np.abs(self._speeds).sum()) < _REST
        if _CONTROL.done(self._goal, self._angles, self._speeds):
            self._run(np.zeros(len(self._joints)))
            self._positions.publish(_positions(self._joints, self._goal, "rad"))
            self._sent = True
        else:
            self._run(_CONTROL.speeds(self._goal, self._angles))
        return False

    def _closed(self) -> bool:
        off = float(np.abs(self._goal - self._open).sum())
        if off < 2.0 * _FINGER_NEAR:
            return True
        best, since = self._still
        if off < best - _FINGER_NEAR:
            self._still = (off, self._node.now_ns)
            return False
        return self._node.now_ns - since >= _FINGER_STILL_NS

    def _run(self, speeds: Array) -> None:
        values = [
            msg.JointValue(joint_uri=name, unit="s^-1 rad", value=float(speed))
            for name, speed in zip(self._joints, speeds, strict=True)
        ]
        self._velocities.publish(msg.JointVelocities(velocities=values))

    def _on_joints(self, message: Any) -> None:
        where = dict(zip(message.name, message.position, strict=False))
        speed = dict(zip(message.name, message.velocity, strict=False))
        self._angles = np.array([where.get(name, np.nan) for name in self._joints])
        self._speeds = np.array([speed.get(name, np.nan) for name in self._joints])
        self._open = np.array([where.get(name, np.nan) for name in self._fingers])

    # -- pictures ------------------------------------------------------------------------------------------------------
    def _on_view(self, view: CameraImage) -> None:
        ask = self._ask
        if not isinstance(ask, Glance) or view.depth is None:
            return
        thesis = self._thesis
        found = detect_discs_thesis(view.image, view.depth, thesis.discs(ask.polarity, ask.mode), thesis.camera)
        seen = _sightings(found)
        if ask.on_places > 0.0:
            places = detect_discs_thesis(view.image, view.depth, thesis.discs("black", "pair"), thesis.camera)
            seen = on_places(seen, _sightings(places), ask.on_places)
        if ask.shown:
            self._kept.publish(jpeg_to_msg(draw_thesis_discs(view.image, found), view.frame_id, view.time_ns))
        self._end(Outcome(seen=seen))

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """What is under way, as plain data."""
        return {
            "ask": self._ask, "due": self._due_ns, "goal": self._goal, "sent": self._sent, "still": self._still,
            "angles": self._angles, "speeds": self._speeds, "open": self._open, "camera": self._camera.save_state(),
            "listens": self._camera.is_enabled,
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._ask, self._due_ns, self._goal = saved["ask"], saved["due"], saved["goal"]
        self._sent, self._still = saved["sent"], saved["still"]
        self._angles, self._speeds, self._open = saved["angles"], saved["speeds"], saved["open"]
        self._camera.load_state(saved["camera"])
        self._camera.set_enabled(saved["listens"])


def _positions(names: tuple[str, ...], values: Array, unit: str) -> Any:
    pairs = zip(names, values, strict=True)
    return msg.JointPositions(positions=[msg.JointValue(joint_uri=n, unit=unit, value=float(v)) for n, v in pairs])


def _sightings(found: list[ThesisDisc]) -> tuple[Sighting, ...]:
    rows = [(one.position.tolist(), one) for one in found]
    return tuple(Sighting((x, y, z), one.diameter, one.distance) for (x, y, z), one in rows)
