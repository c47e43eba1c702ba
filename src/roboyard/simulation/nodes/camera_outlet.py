"""A camera's way to the bus: caught now, made on the studio's thread, published after the declared latency."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roboyard.bus import Publisher
from roboyard.bus.executor import DELIVERY
from roboyard.bus.offload import run_timed
from roboyard.simulation.faults import FaultTable
from roboyard.simulation.nodes.camera_messages import NEEDS, CameraMessages
from roboyard.simulation.sensors.cameras.camera import Camera, CameraReading, Shot, develop

if TYPE_CHECKING:
    from roboyard.bus import Node
    from roboyard.bus.executor import ScheduledEvent

COMPRESSED = frozenset(("image/compressed", "depth/compressed"))
_Work = Future[tuple[tuple[CameraReading, dict[str, Any]], int]]
_INFOS = frozenset(("info", "depth_info", "infrared_info", "right_info"))


@dataclass(slots=True)
class Frames:
    """What became of a camera's pictures; every one that was due is in exactly one of the others.

    Attributes:
        due: As often as its rate asked for one.
        delivered: Published.
        outage: Missed: the camera had an outage.
        fault: Missed: a fault swallowed it.
        under_way: Not yet there.
    """

    due: int = 0
    delivered: int = 0
    outage: int = 0
    fault: int = 0

    @property
    def missed(self) -> int:
        """How many never came."""
        return self.outage + self.fault

    @property
    def under_way(self) -> int:
        """How many were caught and have not come yet."""
        return self.due - self.delivered - self.missed


@dataclass(slots=True)
class _Picture:
    """One on its way.

    Attributes:
        due_ns: When it arrives [ns].
        held_by: Name of the fault that holds it back; "": none does.
        kept: Whether it is for the recording.
        work: Its reading and messages, once they are made.
        event: The arrival, as the executor knows it.
    """

    due_ns: int
    held_by: str
    kept: bool
    work: _Work
    event: ScheduledEvent


class CameraOutlet:
    """Publishes what one camera sees.

    Only what somebody listens to is made, and what the recording is due; ``camera_info`` always goes out.

    Args:
        node: Whose publishers they are.
        faults: What is wrong with sensors.
        sensor: The camera.
        messages: Makes its messages.
        publishers: By output.
        record_ns: Between two pictures of the recording [ns]; 0: none.
    """

    def __init__(
        self,
        node: Node,
        faults: FaultTable,
        sensor: Camera,
        messages: CameraMessages,
        publishers: dict[str, Publisher],
        record_ns: int,
    ) -> None:
        self._node, self._faults, self._sensor, self._messages = node, faults, sensor, messages
        self._publishers, self._record_ns, self._next_record_ns = publishers, record_ns, 0
        self._latency_ns = round(sensor.sensor.latency * 1e9)
        self._waiting: dict[int, _Picture] = {}
        self._number = 0
        self.frames = Frames()

    def read(self) -> None:
        """Catch the present moment."""
        self.frames.due += 1
        if self._sensor.is_out():
            self.frames.outage += 1
            return
        now_ns = self._sensor.host.time_ns
        kept = bool(self._record_ns) and now_ns >= self._next_record_ns
        if kept:
            # A stamp is up to a physics step before its event.
            self._next_record_ns = now_ns + self._record_ns - self._sensor.host.timestep_ns
        outputs = self._outputs(kept)
        if outputs <= _INFOS:  # nobody looks: the camera says when and how it would have
            work = _ready(CameraReading(now_ns, self._sensor.spec))
        else:
            work = self._sensor.host.studio.submit(
                _made, self._messages, self._sensor.shoot(), self._sensor.spec, outputs
            )
        if self._latency_ns:
            self._expect(self._node.now_ns + self._latency_ns, "", kept, work)
        else:
            self._arrived(work, "", kept)

    def _outputs(self, kept: bool) -> frozenset[str]:
        """What is to be made now; compressed pictures only for the recording, whoever else listens."""
        there = self._publishers.keys()
        asked = {name for name in there - COMPRESSED if self._publishers[name].topic.subscriptions}
        return frozenset(asked | (_INFOS & there) | (COMPRESSED & there if kept else set()))

    def _expect(self, due_ns: int, held_by: str, kept: bool, work: _Work) -> None:
        self._number += 1
        number, delay_ns = self._number, due_ns - self._node.now_ns
        event = self._node.call_after(
            delay_ns * 1e-9, lambda: self._arrive(number), restored_by_node=True, priority=DELIVERY
        )
        self._waiting[number] = _Picture(due_ns, held_by, kept, work, event)

    def _arrive(self, number: int) -> None:
        item = self._waiting.pop(number)
        self._arrived(item.work, item.held_by, item.kept)

    def _arrived(self, work: _Work, after: str, kept: bool) -> None:
        """Wait for the picture if need be, let it through the faults, and publish it."""
        (reading, messages), spent_ns = work.result()
        if not after:
            what = f"picture {self._sensor.robot}/{self._sensor.sensor.name}"
            self._node.bus.offload.record_duration(self._node.full_name, what, self._latency_ns, spent_ns)
        passage = self._faults.pass_on(self._sensor, reading, after)
        if passage is None:
            self.frames.fault += 1
            return
        if passage.held_by:
            self._expect(self._node.now_ns + passage.delay_ns, passage.held_by, kept, _ready(passage.reading))
            return
        if passage.reading is not reading or not messages:  # a fault changed it, or it was restored
            messages = self._messages.make(passage.reading, self._outputs(kept))
        self.frames.delivered += 1
        for name, message in messages.items():
            if name in self._publishers:
                self._publishers[name].publish(message)

    def close(self) -> None:
        """What is on its way does not arrive."""
        for item in self._waiting.values():
            item.event.cancel()
            item.work.cancel()
        self._waiting.clear()

    def save_state(self, sequence: Mapping[ScheduledEvent | None, int]) -> list[tuple[int, int, str, Any]]:
        """What is on its way, finished: its place in the executor's queue, due time [ns], the fault that holds it.

        Last, its reading and whether it is for the recording.
        """
        return [
            (sequence[item.event], item.due_ns, item.held_by, (item.work.result()[0][0], item.kept))
            for item in self._waiting.values()
        ]

    def load_state(self, due_ns: int, held_by: str, what: Any) -> None:
        """Expect again what ``save`` gave."""
        reading, kept = what
        self._expect(due_ns, held_by, bool(kept), _ready(reading))

    def counts(self) -> dict[str, int]:
        """What became of its pictures so far, and when the recording's next is due [ns], as plain data."""
        f = self.frames
        return {
            "due": f.due,
            "delivered": f.delivered,
            "outage": f.outage,
            "fault": f.fault,
            "next": self._next_record_ns,
        }

    def recount(self, saved: Mapping[str, int]) -> None:
        """Counterpart of `counts`."""
        self.frames = Frames(saved["due"], saved["delivered"], saved["outage"], saved["fault"])
        self._next_record_ns = saved["next"]


def _ready(reading: CameraReading) -> _Work:
    """A reading that is there already, without messages."""
    work: _Work = Future()
    work.set_result(((reading, {}), 0))
    return work


def _made(
    room: Any, messages: CameraMessages, shot: Shot, spec: Any, outputs: frozenset[str]
) -> tuple[tuple[CameraReading, dict[str, Any]], int]:
    """In the studio: the reading and its messages, and how long it took [ns]."""

    def work() -> tuple[CameraReading, dict[str, Any]]:
        needed = frozenset().union(*(NEEDS.get(name, frozenset()) for name in outputs))
        reading = develop(room, shot, spec, needed) if needed else CameraReading(shot.time_ns, spec)
        return reading, messages.make(reading, outputs)

    return run_timed(work, ())
