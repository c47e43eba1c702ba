"""Recording and playing back: MCAP written crash-safe while a run goes on, and recordings of any kind read again."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.record.inputs import inputs_of
    from roboyard.record.inspect import (
        RecordingInfo,
        TopicBandwidth,
        TopicRate,
        info,
        node_list,
        topic_bw,
        topic_echo,
        topic_hz,
        topic_list,
    )
    from roboyard.record.inspect_tf import FrameInfo, tf_buffer, tf_echo, tf_tree
    from roboyard.record.reader import open_recording
    from roboyard.record.recorder import Recorder
    from roboyard.record.recording import Connection, Recorded, Recording, TopicInfo
    from roboyard.record.recovery import Recovered, convert, recover, save
    from roboyard.record.replay import Replay
    from roboyard.record.writer import ChannelWriter, McapWriter

_HOMES = {
    "ChannelWriter": "writer",
    "Connection": "recording",
    "FrameInfo": "inspect_tf",
    "McapWriter": "writer",
    "Recorded": "recording",
    "Recorder": "recorder",
    "Recording": "recording",
    "RecordingInfo": "inspect",
    "Recovered": "recovery",
    "Replay": "replay",
    "TopicBandwidth": "inspect",
    "TopicInfo": "recording",
    "TopicRate": "inspect",
    "convert": "recovery",
    "info": "inspect",
    "inputs_of": "inputs",
    "node_list": "inspect",
    "open_recording": "reader",
    "recover": "recovery",
    "save": "recovery",
    "tf_buffer": "inspect_tf",
    "tf_echo": "inspect_tf",
    "tf_tree": "inspect_tf",
    "topic_bw": "inspect",
    "topic_echo": "inspect",
    "topic_hz": "inspect",
    "topic_list": "inspect",
}

__all__ = [
    "ChannelWriter",
    "Connection",
    "FrameInfo",
    "McapWriter",
    "Recorded",
    "Recorder",
    "Recording",
    "RecordingInfo",
    "Recovered",
    "Replay",
    "TopicBandwidth",
    "TopicInfo",
    "TopicRate",
    "convert",
    "info",
    "inputs_of",
    "node_list",
    "open_recording",
    "recover",
    "save",
    "tf_buffer",
    "tf_echo",
    "tf_tree",
    "topic_bw",
    "topic_echo",
    "topic_hz",
    "topic_list",
]


def __getattr__(name: str) -> Any:
    # the type store and the compressors are imported with the first use, not with this package
    if name not in _HOMES:
        raise AttributeError(f"module 'roboyard.record' has no attribute '{name}'")
    value = getattr(import_module(f"roboyard.record.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
