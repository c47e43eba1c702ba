"""Renders a video in a second process during the run."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Literal

from roboyard.errors import RoboyardError, RunError
from roboyard.physics.visual_scene import SceneState
from roboyard.simulation.video.mp4_writer import Mp4Writer
from roboyard.simulation.video.render_video import FrameSequence, VideoSettings
from roboyard.simulation.video.states import GrowingStateSequence, StateRecorder

_NICENESS: Final = 5
"""Increment of the process's niceness: the run has priority if there are not enough cores for both."""
_POLL_PERIOD: Final = 0.1
"""Period at which a waiting run checks whether the user stops it [s]."""

RenderOutcome = Literal["done", "failed", "died"]


class RenderProcess:
    """Controls the process that renders the video.

    Args:
        path: Video file to write; its folder must exist.
        robot: Model that the camera follows; None: a view of the whole world.
        settings: Settings of the video.

    Attributes:
        n_frames: Number of rendered frames.
        error: Why there is no video, after ``finish`` has returned "failed" or "died".

    Raises:
        RunError: The process cannot be started.
    """

    def __init__(self, path: Path, robot: str | None, settings: VideoSettings) -> None:
        self.n_frames, self.error = 0, ""
        self._partial = _partial_file(path)
        self._sent = [0, 0]  # takes, and states of the last of them
        self._outcome: RenderOutcome | None = None
        self._change = threading.Condition()
        self._connection, child_end = Pipe()
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stderr_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        command = [sys.executable, "-P", "-m", __name__, str(child_end.fileno())]
        try:
            # A session of its own: Ctrl-C in the terminal is the run's to handle.
            self._process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr_file,
                pass_fds=[child_end.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            self._connection.close()
            self._stderr_file.close()
            raise RunError(f"the process that draws does not start: {error.strerror}", location=command[0]) from error
        finally:
            child_end.close()  # else the end of the process would not be noticed
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send_all, self._receive_all)]
        for thread in self._threads:
            thread.start()
        self._send("video", str(path), robot, settings)

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    def update(self, state_recorder: StateRecorder) -> None:
        """Send the states that were added since the last call; does not wait for the process."""
        while self._outcome is None:  # else nobody reads it any more
            n_sequences, n_states = self._sent
            if n_sequences and n_states < len(state_recorder.growing_sequences[n_sequences - 1].times):
                sequence = state_recorder.growing_sequences[n_sequences - 1]
                scene_state = SceneState(
                    sequence.states[n_states], sequence.mocap_positions[n_states], sequence.mocap_rotations[n_states]
                )
                self._send("state", sequence.times[n_states], scene_state)
                self._sent[1] += 1
            elif n_sequences < len(state_recorder.growing_sequences):
                self._send("sequence", state_recorder.growing_sequences[n_sequences].model)
                self._sent = [n_sequences + 1, 0]
            else:
                break

    def finish(self, on_progress: Callable[[int], None], is_stopped: Callable[[], bool]) -> RenderOutcome:
        """Wait until the video is complete.

        Args:
            on_progress: Called repeatedly with the number of rendered frames.
            is_stopped: Called repeatedly; True completes the video with the frames rendered so far.

        Returns:
            "done"; "failed": rendering or writing failed, and would fail again; "died": the process ended early.
        """
        self._send("end")
        is_stop_sent = False
        while True:
            if not is_stop_sent and is_stopped():
                is_stop_sent = True
                self._send("stop")
            with self._change:
                if self._outcome is not None:
                    break
                self._change.wait(_POLL_PERIOD)
            on_progress(self.n_frames)
        on_progress(self.n_frames)  # of the frames that were drawn since the last look
        if self._outcome == "died":
            status = self._process.wait()
            self.error = f"the process that draws it ended with exit code {status}{self._last_error_line()}"
        return self._outcome

    def close(self) -> None:
        """End the process if it still runs, and remove an incomplete file."""
        if self._process.poll() is None and self._outcome is None:
            self._process.kill()
        self._messages.put(None)
        self._process.wait()
        for thread in self._threads:
            thread.join()
        self._connection.close()
        self._stderr_file.close()
        with suppress(OSError):
            self._partial.unlink(missing_ok=True)

    def _send(self, *message: Any) -> None:
        self._messages.put(pickle.dumps(message))  # a copy of now: nothing that changes later is sent

    def _send_all(self) -> None:
        while (data := self._messages.get()) is not None:
            try:
                self._connection.send_bytes(data)
            except OSError:
                return  # the process has ended; the other thread sees that too

    def _receive_all(self) -> None:
        outcome: RenderOutcome = "died"
        try:
            while outcome == "died":
                kind, value = self._connection.recv()
                with self._change:
                    if kind == "drawn":
                        self.n_frames = value
                    else:
                        outcome, self.error = kind, value
        except (EOFError, OSError):
            pass
        with self._change:
            self._outcome = outcome
            self._change.notify_all()

    def _last_error_line(self) -> str:
        self._stderr_file.seek(0)
        lines = self._stderr_file.read().decode("utf-8", "replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""


def _partial_file(path: Path) -> Path:
    """Return the path of an incomplete video: ffmpeg may still write to it when the video is rendered again."""
    return path.with_name(f".{path.name}.part")


def main(descriptor: int) -> None:
    """Run the process: render the states that the socket ``descriptor`` receives."""
    from roboyard.compute import limit_blas_threads

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.nice(_NICENESS)
    limit_blas_threads(1)
    connection = Connection(descriptor)
    inbox: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
    threading.Thread(target=_receive_into, args=(connection, inbox), daemon=True).start()
    try:
        outcome = "done", _draw_all(inbox, lambda n_frames: _send_to_run(connection, ("drawn", n_frames)))
    except RoboyardError as error:
        outcome = "failed", str(error)
    _send_to_run(connection, outcome)


def _receive_into(connection: Connection, inbox: queue.SimpleQueue[tuple[Any, ...]]) -> None:
    try:
        while True:
            inbox.put(connection.recv())
    except (EOFError, OSError):
        inbox.put(("stop",))  # the run has ended without a word


def _send_to_run(connection: Connection, message: tuple[str, Any]) -> None:
    try:
        connection.send(message)
    except OSError:
        return  # nobody listens any more: the other thread has said so


def _draw_all(inbox: queue.SimpleQueue[tuple[Any, ...]], on_progress: Callable[[int], None]) -> str:
    """Render until the last frame or the message "stop", and rename the file if it has a frame."""
    kind, *values = inbox.get()
    if kind != "video":
        return ""
    path, robot, settings = Path(values[0]), values[1], values[2]
    partial = _partial_file(path)
    with (
        FrameSequence(robot, settings) as frames,
        Mp4Writer(partial, settings.width, settings.height, settings.fps) as writer,
    ):
        while True:
            try:
                kind, *values = inbox.get(block=not (frames.is_complete or frames.is_ready()))
            except queue.Empty:
                if not frames.is_ready():
                    break
                writer.add(frames.draw())
                on_progress(frames.n_frames)
                continue
            if kind == "stop":
                break
            if kind == "end":
                frames.is_complete = True
            elif kind == "sequence":
                sequence = GrowingStateSequence(values[0])
            else:
                sequence.add(*values)
                if len(sequence.times) == 1:
                    frames.add_sequence(sequence)
    try:
        if frames.n_frames:
            partial.replace(path)
        else:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"the video cannot be written: {error.strerror}", location=str(path)) from error
    return ""


if __name__ == "__main__":
    main(int(sys.argv[1]))
