"""Recording and replay: a crash-safe MCAP writer, and readers for MCAP, rosbag1, rosbag2 and CARMEN logs."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.record.conversion import ConversionResult, convert, recover, write_mcap
    from roboyard.record.formats import open_recording
    from roboyard.record.inspection import (
        FrameInfo,
        RecordingInfo,
        TopicBandwidth,
        TopicRate,
        info,
        node_list,
        tf_buffer,
        tf_echo,
        tf_tree,
        topic_bw,
        topic_echo,
        topic_hz,
        topic_list,
    )
    from roboyard.record.mcap_writer import ChannelState, McapWriter
    from roboyard.record.player import RecordingPlayer, TopicSelection
    from roboyard.record.recorder import Recorder, recorded_inputs
    from roboyard.record.recording import RecordedChannel, RecordedMessage, RecordedTopic, Recording

__all__ = [
    "ChannelState",
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
    "TopicSelection",
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
    "conversion": ("ConversionResult", "convert", "recover", "write_mcap"),
    "formats": ("open_recording",),
    "inspection": ("FrameInfo", "RecordingInfo", "TopicBandwidth", "TopicRate", "info", "node_list", "tf_buffer",
        "tf_echo", "tf_tree", "topic_bw", "topic_echo", "topic_hz", "topic_list"),
    "mcap_writer": ("ChannelState", "McapWriter"),
    "player": ("RecordingPlayer", "TopicSelection"),
    "recorder": ("Recorder", "recorded_inputs"),
    "recording": ("RecordedChannel", "RecordedMessage", "RecordedTopic", "Recording"),
})  # fmt: skip
