"""What came into a run from outside, read back from its recording, so that the run can be repeated."""

from __future__ import annotations

from roboyard.bus.inputs import INPUT_TOPIC, ExternalInput
from roboyard.errors import RecordingError
from roboyard.record.recording import Recording

_TYPE = "roboyard_msgs/msg/Input"


def recorded_inputs(recording: Recording) -> list[tuple[int, ExternalInput]]:
    """The recorded inputs with their times [ns], for ``bus.inputs.schedule``; empty when there were none.

    Raises:
        RecordingError: ``/inputs`` carries something else, or the file is damaged.
    """
    topic = recording.topics.get(INPUT_TOPIC)
    if topic is None:
        return []
    if topic.type != _TYPE:
        raise RecordingError(f"{INPUT_TOPIC} carries {topic.type}", location=str(recording.path), valid=_TYPE)
    return [
        (item.time_ns, ExternalInput(m.kind, m.target, m.type, m.source, m.data.tobytes()))
        for item in recording.messages([INPUT_TOPIC])
        for m in (item.message,)
    ]
