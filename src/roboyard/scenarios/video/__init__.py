"""Films of runs: states in, an MP4 out.

`Film` gathers a simulation's states while it runs (or `states_from_poses` makes them from a recording);
`write_video` takes the pictures afterwards and writes the file.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roboyard.scenarios.video.film import Film, Take, states_from_poses
    from roboyard.scenarios.video.mp4 import Mp4Writer
    from roboyard.scenarios.video.shoot import VideoSettings, write_video

__all__ = ["Film", "Mp4Writer", "Take", "VideoSettings", "states_from_poses", "write_video"]

_HOMES = {
    "Film": "film",
    "Mp4Writer": "mp4",
    "Take": "film",
    "VideoSettings": "shoot",
    "states_from_poses": "film",
    "write_video": "shoot",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
