"""Films of runs: states in, an MP4 out.

`Film` gathers a simulation's states while it runs (or `states_from_poses` makes them from a recording);
`write_video` takes the pictures afterwards and writes the file.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.video.film import Film, Take, states_from_poses
    from roboyard.scenarios.video.mp4 import Mp4Writer
    from roboyard.scenarios.video.shoot import VideoSettings, write_video

__all__ = ["Film", "Mp4Writer", "Take", "VideoSettings", "states_from_poses", "write_video"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "film": ("Film", "Take", "states_from_poses"),
    "mp4": ("Mp4Writer",),
    "shoot": ("VideoSettings", "write_video"),
})  # fmt: skip
