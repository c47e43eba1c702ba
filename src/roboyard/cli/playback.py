"""A recording played on a live bus."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from roboyard.bus import Bus
from roboyard.bus.socket import SocketServer
from roboyard.cli.lookup import unknown
from roboyard.cli.values import parse
from roboyard.errors import InputError
from roboyard.record import Recorder, Replay, open_recording
from roboyard.scenarios.control import Control, interruptible

if TYPE_CHECKING:
    from roboyard.cli.display import Display

_SLICE_NS = 100_000_000
"""How often the display is told [ns of recorded time]."""


class Playback:
    """Plays a recording; a context manager.

    Args:
        file: The recording.
        topics: Names or patterns to play; None for all.
        exclude: Names or patterns to leave out.
        start: Begin so long after the recording's start [s].
        duration: Play this much of it [s].
        rate: Recorded seconds per second; 0 as fast as possible.
        paused: Begin paused.

    Attributes:
        name: Under which it is listed.
        control: The hand on its clock.
        duration: How much is to be played [s].
        warnings: What cannot be played.

    Raises:
        RecordingError: it cannot be read, or there is nothing to play.
    """

    def __init__(
        self, file: Path, topics: Sequence[str] | None, exclude: Sequence[str], start: float | None,
        duration: float | None, *, rate: float, paused: bool,
    ) -> None:  # fmt: skip
        self._stack = ExitStack()
        try:
            recording = self._stack.enter_context(open_recording(file))
            self._start_ns = recording.start_ns + round((start or 0.0) * 1e9)
            end_ns = recording.end_ns
            if not self._start_ns <= end_ns:
                length = (end_ns - recording.start_ns) * 1e-9
                raise InputError(f"--start {start:g} is behind the end", where=str(file), valid=f"up to {length:.3f} s")
            if duration is not None:
                end_ns = min(end_ns, self._start_ns + round(duration * 1e9))
            known = recording.topics
            for pattern in topics or ():
                if not any(fnmatchcase(name, pattern) for name in known):
                    raise unknown("topic", pattern, list(known), str(file))
            self.bus = self._stack.enter_context(Bus(start_ns=self._start_ns))
            self._replay = Replay(
                self.bus, recording, topics=topics, exclude=exclude, end_ns=end_ns,
                start_ns=None if start is None else self._start_ns,
            )  # fmt: skip
            self._stack.callback(self._replay.close)
        except BaseException:
            self._stack.close()
            raise
        self.name = f"replay-{recording.metadata.get('run') or file.stem}"
        self.duration = (self._replay.end_ns - self._start_ns) * 1e-9
        self.warnings = [*recording.warnings, *self._replay.warnings]
        self.control = Control(paused=paused, pace=rate)
        self.control.bind(self.bus)

    @property
    def published(self) -> int:
        """Messages out so far."""
        return self._replay.count

    @property
    def played(self) -> float:
        """Recorded time played so far [s]."""
        return (self.bus.now_ns - self._start_ns) * 1e-9

    def add_nodes(self, uses: Sequence[str], parameters: Sequence[str]) -> None:
        """Let nodes run on it.

        Args:
            uses: Registered name, ``module:Class`` or ``file.py:Class``; a node is called as its name or class.
            parameters: ``node.key=value``.

        Raises:
            InputError and its kinds: no such node, or a parameter that it does not take.
        """
        from roboyard.scenarios.node_factory import make_node

        given = _parameters(parameters)
        for use in uses:
            name = use.rpartition(":")[2].lower()
            self.bus.add(make_node(use, given.pop(name, {}), {}, where=f"node {name}"), name)
        if given:
            raise InputError(f"--param names no node of --node: {', '.join(given)}", valid="NODE.KEY=VALUE")

    def run(self, out: Path | None, display: Display) -> None:
        """Play until the end, or until somebody stops it.

        Raises:
            NodeError: a node failed.
            RecordingError: ``out`` exists or cannot be written.
        """
        executor, control, end_ns = self.bus.executor, self.control, self._replay.end_ns
        self.bus.log_sinks.append(display.log)
        with ExitStack() as stack:
            stack.enter_context(interruptible(control))
            if out is not None:
                stack.enter_context(Recorder(self.bus, out))
            stack.callback(SocketServer(self.bus, self.name).close)
            display.started(self.bus)
            while not self._replay.done and not control.stopping:
                step = control.next_step()
                if step is not None:
                    self._step(step)
                    continue
                target_ns = min(self.bus.now_ns + _SLICE_NS, end_ns)
                executor.run_until(target_ns, control.wanted)
                if self.bus.now_ns < target_ns and not control.wanted():
                    return  # another process said so through the socket
                display.tick()

    def _step(self, seconds: float) -> None:
        """So much recorded time, or one instant if that is 0; paused before and after."""
        executor = self.bus.executor
        if seconds <= 0.0:
            executor.step()
            return
        executor.paused = False
        executor.run_until(min(self.bus.now_ns + round(seconds * 1e9), self._replay.end_ns))
        executor.paused = True

    def __enter__(self) -> Playback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _parameters(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        node, dot, name = key.partition(".")
        if not (equals and dot and node and name):
            raise InputError(f"{text!r} is no parameter", where="--param", valid="NODE.KEY=VALUE")
        found.setdefault(node.lower(), {})[name] = parse(value) if value.strip() else ""
    return found
