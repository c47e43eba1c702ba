"""What came into a run from outside, read back from its recording, so that the run can be repeated."""

from __future__ import annotations

from roboyard.bus.inputs import TOPIC, Input
from roboyard.errors import RecordingError
from roboyard.record.recording import Recording

_TYPE = "roboyard_msgs/msg/Input"


def inputs_of(recording: Recording) -> list[tuple[int, Input]]:
    """The recorded inputs with their times [ns], for ``bus.inputs.schedule``; empty when there were none.

    Raises:
        RecordingError: ``/inputs`` carries something else, or the file is damaged.
    """
    topic = recording.topics.get(TOPIC)
    if topic is None:
        return []
    if topic.type != _TYPE:
        raise RecordingError(f"{TOPIC} carries {topic.type}", where=str(recording.path), valid=_TYPE)
    return [
        (item.time_ns, Input(m.kind, m.target, m.type, m.source, m.data.tobytes()))
        for item in recording.messages([TOPIC])
        for m in (item.message,)
    ]
