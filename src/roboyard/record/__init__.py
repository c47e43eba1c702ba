"""Recording and playing back: MCAP written crash-safe while a run goes on, and recordings of any kind read again."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.record.inputs import recorded_inputs
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
    from roboyard.record.recording import RecordedChannel, RecordedMessage, RecordedTopic, Recording
    from roboyard.record.recovery import ConversionResult, convert, recover, write_mcap
    from roboyard.record.replay import RecordingPlayer
    from roboyard.record.writer import ChannelWriter, McapWriter

__all__ = [
    "ChannelWriter",
    "ConversionResult",
    "FrameInfo",
    "McapWriter",
    "RecordedChannel",
    "RecordedMessage",
    "RecordedTopic",
    "Recorder",
    "Recording",
    "RecordingInfo",
    "RecordingPlayer",
    "TopicBandwidth",
    "TopicRate",
    "convert",
    "info",
    "node_list",
    "open_recording",
    "recorded_inputs",
    "recover",
    "tf_buffer",
    "tf_echo",
    "tf_tree",
    "topic_bw",
    "topic_echo",
    "topic_hz",
    "topic_list",
    "write_mcap",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "inputs": ("recorded_inputs",),
    "inspect": ("RecordingInfo", "TopicBandwidth", "TopicRate", "info", "node_list", "topic_bw", "topic_echo",
        "topic_hz", "topic_list"),
    "inspect_tf": ("FrameInfo", "tf_buffer", "tf_echo", "tf_tree"),
    "reader": ("open_recording",),
    "recorder": ("Recorder",),
    "recording": ("RecordedChannel", "RecordedMessage", "Recording", "RecordedTopic"),
    "recovery": ("ConversionResult", "convert", "recover", "write_mcap"),
    "replay": ("RecordingPlayer",),
    "writer": ("ChannelWriter", "McapWriter"),
})  # fmt: skip
