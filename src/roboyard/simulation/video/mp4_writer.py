"""Writes images into an MP4 file (H.264) with ffmpeg, of the extra `video` or of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, MissingExtraError, RunError


def find_ffmpeg() -> str:
    """Return the path of ffmpeg: ``IMAGEIO_FFMPEG_EXE``, else that of imageio-ffmpeg, else that in ``PATH``.

    Raises:
        MissingExtraError: imageio-ffmpeg is not installed, and ``PATH`` has no ffmpeg.
        ConfigError: imageio-ffmpeg has no ffmpeg for this machine.
    """
    try:
        import imageio_ffmpeg
    except ImportError as error:
        found = os.environ.get("IMAGEIO_FFMPEG_EXE") or shutil.which("ffmpeg")
        if found:
            return found
        alternative = "an ffmpeg in PATH or named by IMAGEIO_FFMPEG_EXE"
        raise MissingExtraError("writing a video", "video", alternative=alternative) from error
    try:
        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError as error:
        suggestion = "pip install imageio-ffmpeg, or IMAGEIO_FFMPEG_EXE set to an ffmpeg"
        raise ConfigError(
            f"writing a video needs ffmpeg, and no program was found: {error}", valid=suggestion
        ) from error


class Mp4Writer:
    """Writes one video; close it, or use it in a ``with`` block.

    The file can be played however the program ends: Ctrl-C does not reach ffmpeg, and it completes the file when its
    input ends, even if this process is killed.

    Args:
        path: File to write; its folder must exist.
        width: Width of the images [px], even.
        height: Height of the images [px], even.
        fps: Frames per second.

    Raises:
        ConfigError: The size is odd, the rate is out of range, or there is no ffmpeg.
        RunError: ffmpeg does not start, for example because the folder does not exist.
    """

    def __init__(self, path: Path | str, width: int, height: int, fps: float) -> None:
        if width % 2 or height % 2 or width <= 0 or height <= 0:
            raise ConfigError(f"a video of {width} × {height} pixels", valid="even numbers")
        if not 0.1 <= fps <= 240:
            raise ConfigError(f"a video of {fps} pictures a second", valid="0.1 … 240")
        self.path, self.n_frames, self._shape = Path(path), 0, (height, width, 3)
        if not self.path.parent.is_dir():
            raise RunError("the folder for the video does not exist", location=str(self.path))
        command = [
            find_ffmpeg(), "-y", "-loglevel", "error", "-nostdin",
            "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}", "-i", "pipe:0",
            "-an", "-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-pix_fmt", "yuv420p", "-threads", "2",
            "-movflags", "+faststart", "-f", "mp4", str(self.path),
        ]  # fmt: skip
        self._stderr_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the writer
        try:
            # A session of its own: Ctrl-C in the terminal must not end ffmpeg before it has completed the file.
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr_file,
                start_new_session=True,
            )
        except OSError as error:
            self._stderr_file.close()
            raise RunError(f"ffmpeg does not start: {error.strerror}", location=command[0]) from error

    def add(self, image: NDArray[np.uint8]) -> None:
        """Append a frame (height, width, 3).

        Raises:
            RunError: The writer is closed, or ffmpeg has ended (disk full, folder removed).
        """
        if self._process is None or self._process.stdin is None:
            raise RunError("the video is closed already", location=str(self.path))
        if image.shape != self._shape or image.dtype != np.uint8:
            raise RunError(f"a picture {image.shape} in a video of {self._shape}", location=str(self.path))
        try:
            self._process.stdin.write(np.ascontiguousarray(image).data)
        except OSError as error:
            self._end()
            raise self._failure() from error
        self.n_frames += 1

    def close(self) -> None:
        """Complete the file.

        Raises:
            RunError: ffmpeg could not write it.
        """
        if self._process is None:
            return
        status = self._end()
        if status != 0:
            raise self._failure()
        self._stderr_file.close()

    def _end(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.stdin is not None:
            try:
                process.stdin.close()
            except OSError:
                process.kill()  # what is left in the pipe cannot be taken; do not wait for it
        return process.wait()

    def _failure(self) -> RunError:
        self._stderr_file.seek(0)
        lines = self._stderr_file.read().decode("utf-8", "replace").strip().splitlines()
        self._stderr_file.close()
        return RunError(
            f"the video could not be written: {lines[-1] if lines else 'ffmpeg stopped'}", location=str(self.path)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._end()
            self._stderr_file.close()
