"""Recording and playing back: MCAP written crash-safe while a run goes on, and recordings of any kind read again."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

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

__getattr__, __dir__ = lazy_exports(__name__, {
    "inputs": ("inputs_of",),
    "inspect": ("RecordingInfo", "TopicBandwidth", "TopicRate", "info", "node_list", "topic_bw", "topic_echo",
        "topic_hz", "topic_list"),
    "inspect_tf": ("FrameInfo", "tf_buffer", "tf_echo", "tf_tree"),
    "reader": ("open_recording",),
    "recorder": ("Recorder",),
    "recording": ("Connection", "Recorded", "Recording", "TopicInfo"),
    "recovery": ("Recovered", "convert", "recover", "save"),
    "replay": ("Replay",),
    "writer": ("ChannelWriter", "McapWriter"),
})  # fmt: skip
