"""Videos of simulations: `StateRecorder` captures states while a simulation runs (or `states_from_poses` makes them
from a recording); `write_video` renders them into an MP4 file.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.video.mp4_writer import Mp4Writer
    from roboyard.simulation.video.render_video import VideoSettings, write_video
    from roboyard.simulation.video.states import StateRecorder, StateSequence, states_from_poses

__all__ = ["Mp4Writer", "StateRecorder", "StateSequence", "VideoSettings", "states_from_poses", "write_video"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "states": ("StateRecorder", "StateSequence", "states_from_poses"),
    "mp4_writer": ("Mp4Writer",),
    "render_video": ("VideoSettings", "write_video"),
})  # fmt: skip
